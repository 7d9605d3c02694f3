"""Which columns a lake table lacks, and which changes of shape cannot be followed."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.errors import DefiniteError
from tailrace.model.table import Column, TableSchema


def added_columns(present: Mapping[str, str], schema: TableSchema) -> list[Column]:
    """Columns of the source that are not `present` (name to lake type) in the lake.

    A changed type, or a new column that gave the rows already there a value, is a definite error:
    the lake's rows would differ from the source's without any change having been sent.
    """
    hint = "start a new lake in an empty folder"
    for column in schema.columns:
        if column.name in present and present[column.name] != column.type:
            raise DefiniteError(
                f"{schema.table}: column {column.name} was {present[column.name]} and is now {column.type}", hint
            )
    added = [column for column in schema.columns if column.name not in present]
    for column in added:
        if column.missing is not None:
            raise DefiniteError(
                f"{schema.table}: column {column.name} was added with the default {column.missing!r} for rows "
                "that were already there",
                hint,
            )
    return added
