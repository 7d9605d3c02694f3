"""What a lake column says of its origin, in its comment: the source's type and the source's number for it.

So a change of shape is noticed even if it happened before the table's first change was logged.
"""

from __future__ import annotations

import re

from pyspark.sql.types import StructType

from tailrace.model.table import Column

_COMMENT = re.compile(r"(.*) \(column (\d+)\)", re.DOTALL)


def comment(column: Column) -> str:
    """The comment of a source column's copy."""
    return f"{column.source_type} (column {column.number})"


def lake_columns(shape: StructType) -> list[Column]:
    """A lake table's columns, with what their comments say of the source's."""
    found = []
    for field in shape:
        match = _COMMENT.fullmatch(field.metadata.get("comment", ""))
        source_type, number = (match.group(1), int(match.group(2))) if match else ("", 0)
        found.append(Column(field.name, field.dataType.simpleString(), source_type, number))
    return found
