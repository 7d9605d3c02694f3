"""The lake type that a person has chosen for a column, instead of the one that the rule has for its type.

A choice is a pattern for columns, which are then text, or a pattern with a type after it: `orders.*=decimal(38,10)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.model.table import TableId
from tailrace.source.postgres.catalog.patterns import names_column

TEXT = "string"
_WITH_TYPE = re.compile(r"(.+)=(decimal\(\d+,\d+\))", re.DOTALL)


def parted(choice: str) -> tuple[str, str]:
    """The pattern and the lake type."""
    found = _WITH_TYPE.fullmatch(choice)
    return (found[1], found[2]) if found is not None else (choice, TEXT)


def chosen_type(choices: Sequence[str], table: TableId, column: str) -> str | None:
    """The lake type that was chosen for a column, if any; of several choices the last counts."""
    for choice in reversed(choices):
        pattern, lake = parted(choice)
        if names_column([pattern], table, column):
            return lake
    return None
