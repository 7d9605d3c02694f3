"""Which columns a lake table lacks, and which changes of shape cannot be followed.

A table's shape may change without any row being sent: a rename, a new type, a column dropped and made
anew, a default that old rows show. The lake's rows would then differ from the source's, so these
are definite errors. A lake column carries the source's type and number in its comment, so a
change is noticed even if it happened before the first change was logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql.types import StructType

from tailrace.errors import DefiniteError
from tailrace.model.table import Column, TableSchema

HINT = "start a new lake in an empty folder"
_COMMENT = re.compile(r"(.*) \(column (\d+)\)")
_TEXT = re.compile(r"(?:character varying|varchar)(?:\((\d+)\))?|text")


def comment(column: Column) -> str:
    """What a lake column says of its origin."""
    return f"{column.source_type} (column {column.number})"


def lake_columns(shape: StructType) -> list[Column]:
    """A lake table's columns, with what their comments say of the source's."""
    found = []
    for field in shape:
        match = _COMMENT.fullmatch(field.metadata.get("comment", ""))
        source_type, number = (match.group(1), int(match.group(2))) if match else ("", 0)
        found.append(Column(field.name, field.dataType.simpleString(), source_type, number))
    return found


def added_columns(present: Sequence[Column], schema: TableSchema) -> list[Column]:
    """Columns of the source that are not `present` in the lake. A definite error where old rows are not
    what they would be with those columns merely added."""
    require_followable(present, schema)
    names = {column.name for column in present}
    added = [column for column in schema.columns if column.name not in names]
    for column in added:
        if column.missing is not None:
            raise DefiniteError(
                f"{schema.table}: column {column.name} was added with {column.missing!r} for rows "
                "that were already there",
                HINT,
            )
    return added


def require_followable(present: Iterable[Column], schema: TableSchema) -> None:
    """A definite error unless the columns that stayed are the same columns."""
    by_name = {column.name: column for column in schema.columns}
    by_number = {column.number: column for column in schema.columns if column.number}
    for before in present:
        renamed = by_number.get(before.number)
        if renamed is not None and renamed.name != before.name:
            raise DefiniteError(f"{schema.table}: column {before.name} was renamed to {renamed.name}", HINT)
        after = by_name.get(before.name)
        if after is None:
            continue
        if before.number and after.number and before.number != after.number:
            raise DefiniteError(f"{schema.table}: column {before.name} was dropped and made anew", HINT)
        if before.type != after.type or not _keeps_values(before.source_type, after.source_type):
            was = before.source_type or before.type
            raise DefiniteError(f"{schema.table}: column {before.name} was {was} and is now {after.source_type}", HINT)


def _keeps_values(before: str, after: str) -> bool:
    """Whether every stored value looks the same under the new type. Longer or unlimited text does."""
    if not before or before == after:
        return True
    old, new = _TEXT.fullmatch(before), _TEXT.fullmatch(after)
    if old is None or new is None:
        return False
    return new.group(1) is None or (old.group(1) is not None and int(new.group(1)) >= int(old.group(1)))
