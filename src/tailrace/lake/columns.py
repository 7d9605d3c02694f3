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


def of_comment(name: str, type_: str, text: str) -> Column:
    """A lake table's column, with what its comment says of the source's."""
    match = _COMMENT.fullmatch(text)
    source_type, number = (match.group(1), int(match.group(2))) if match else ("", 0)
    return Column(name, type_, source_type, number)


def lake_columns(shape: StructType) -> list[Column]:
    """A lake table's columns, with what their comments say of the source's."""
    return [of_comment(each.name, each.dataType.simpleString(), each.metadata.get("comment", "")) for each in shape]
