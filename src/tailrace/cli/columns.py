"""Lake types that a person chooses for columns, as options of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.errors import DefiniteError

_PRECISION_MAX = 38
_DECIMAL = re.compile(r"(.+)=(\d+),(\d+)", re.DOTALL)


def choices(as_text: Sequence[str] | None, as_decimal: Sequence[str] | None) -> list[str]:
    """What a source is told of `--as-text PATTERN` and `--as-decimal PATTERN=38,10`."""
    return [*(as_text or ()), *map(_decimal, as_decimal or ())]


def _decimal(given: str) -> str:
    found = _DECIMAL.fullmatch(given)
    if found is None or not int(found[3]) <= int(found[2]) <= _PRECISION_MAX or int(found[2]) == 0:
        raise DefiniteError(
            f"--as-decimal {given} has no precision and scale",
            "write PATTERN=PRECISION,SCALE, with up to 38 digits in all: public.orders.amount=38,10",
        )
    return f"{found[1]}=decimal({int(found[2])},{int(found[3])})"
