"""Which changes of a table's shape a copy can follow, and which would leave it silently different.

A table's shape may change without any row being sent: a rename, a new type, a column dropped and created again, a
default that old rows show. The lake's rows would then differ from the source's, so these are definite errors of
that table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tailrace.errors import DefiniteError
from tailrace.model.table import Column, TableId, TableSchema

_TEXT = re.compile(r"(?:character varying|varchar)(?:\((\d+)\))?|text")


def added_columns(present: Sequence[Column], schema: TableSchema) -> list[Column]:
    """Columns of the source that are not `present` in the lake. A definite error where old rows are not
    what they would be with those columns merely added."""
    require_followable(present, schema)
    names = {column.name for column in present}
    added = [column for column in schema.columns if column.name not in names]
    for column in added:
        if column.missing is not None:
            raise _refusal(
                schema.table,
                f"column {column.name} was added with {column.missing!r} for rows that were already there",
            )
    return added


def require_followable(present: Iterable[Column], schema: TableSchema) -> None:
    """A definite error unless the columns that stayed are the same columns."""
    by_name = {column.name: column for column in schema.columns}
    by_number = {column.number: column for column in schema.columns if column.number}
    for before in present:
        renamed = by_number.get(before.number)
        if renamed is not None and renamed.name != before.name:
            raise _refusal(schema.table, f"column {before.name} was renamed to {renamed.name}")
        after = by_name.get(before.name)
        if after is None:
            continue
        if before.number and after.number and before.number != after.number:
            raise _refusal(schema.table, f"column {before.name} was dropped and created again")
        if before.type != after.type or not _keeps_values(before.source_type, after.source_type):
            was = before.source_type or before.type
            raise _refusal(schema.table, f"column {before.name} was {was} and is now {after.source_type}")


def _refusal(table: TableId, what: str) -> DefiniteError:
    return DefiniteError(f"{table}: {what}", f"tailrace tables resync LAKE {table}", str(table))


def _keeps_values(before: str, after: str) -> bool:
    """Whether every stored value looks the same under the new type. Longer or unlimited text does."""
    if not before or before == after:
        return True
    old, new = _TEXT.fullmatch(before), _TEXT.fullmatch(after)
    if old is None or new is None:
        return False
    return new.group(1) is None or (old.group(1) is not None and int(new.group(1)) >= int(old.group(1)))
