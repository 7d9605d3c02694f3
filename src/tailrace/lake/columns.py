"""What a lake column says of its origin, in its comment: the source's type and the source's number for it.

So a change of shape is noticed even if it happened before the table's first change was logged.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tailrace.model.exact import is_ours, lake_column
from tailrace.model.table import Column

_EXACT = "values that their columns cannot hold, as the source writes them (kept by tailrace)"
_COMMENT = re.compile(r"(.*) \(column (\d+)\)", re.DOTALL)


def comment(column: Column) -> str:
    """The comment of a source column's copy."""
    return _EXACT if is_ours(column) else f"{column.source_type} (column {column.number})"


def described(name: str, lake_type: str, text: str) -> Column:
    """A lake column with what its comment says of the source's."""
    if text == _EXACT:
        return replace(lake_column(()), name=name)
    match = _COMMENT.fullmatch(text)
    source_type, number = (match.group(1), int(match.group(2))) if match else ("", 0)
    return Column(name, lake_type, source_type, number)
