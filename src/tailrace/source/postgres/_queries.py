"""Named SQL: each `.sql` file beside this module holds queries headed by `-- name: purpose`."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import LiteralString, cast

_HEADING = re.compile(r"^-- (\w+): .*$", re.MULTILINE)


def load(file_name: str) -> dict[str, LiteralString]:
    """The file's queries by name."""
    text = (files(__package__) / file_name).read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    # The text ships with the package, so it is as trusted as a literal.
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}
