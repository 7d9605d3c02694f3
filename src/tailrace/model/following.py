"""How a copy follows its table to another shape: by what identifies a column, which a rename keeps.

Whether it may, because old rows are what they would be, is for the source to say (`Codec.why_copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tailrace.errors import ResyncError
from tailrace.model.rows.exact import is_ours, lake_column, ours
from tailrace.model.rows.lake_types import is_limited
from tailrace.model.table import Column, TableSchema


@dataclass(frozen=True)
class Steps:
    """What turns one shape into another, in this order."""

    drop: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)
    """No new name is still another column's."""
    add: tuple[Column, ...] = ()
    """Null in the rows that are there."""

    def __bool__(self) -> bool:
        return bool(self.drop or self.rename or self.add)


def steps(present: Sequence[Column], schema: TableSchema) -> Steps:
    """From the columns that are present to the schema's. `ResyncError` where a copy cannot follow.

    The column for values that others cannot hold (`model.rows.exact`) stays, under a name that no other column has.
    """
    exact, present = ours(present), [column for column in present if not is_ours(column)]
    wanted = {column.identity: column for column in schema.columns}
    kept = {column.identity: column for column in present if column.identity in wanted}
    for identity, before in kept.items():
        if before.type != wanted[identity].type:
            was, now = before.source_type or before.type, wanted[identity].source_type
            raise ResyncError.of(schema.table, f"column {wanted[identity].name} was {was} and is now {now}")
    rename = {old.name: wanted[each].name for each, old in kept.items() if old.name != wanted[each].name}
    if set(rename.values()) & {column.name for column in kept.values()}:
        raise ResyncError.of(schema.table, "columns exchanged their names")
    drop = tuple(column.name for column in present if column.identity not in wanted)
    if exact is not None:
        _require_same_names(present, {*drop, *rename}, schema)
        name = lake_column(schema.names).name
        rename |= {exact.name: name} if exact.name != name else {}
    return Steps(drop, rename, tuple(column for column in schema.columns if column.identity not in kept))


def _require_same_names(present: Sequence[Column], moved: set[str], schema: TableSchema) -> None:
    """Rows keep values of a column under its name. One that is another column's later would have them."""
    for column in present:
        if column.name in moved and is_limited(column.type):
            reason = f"column {column.name} was renamed or dropped, and rows may keep values of it under its name"
            raise ResyncError.of(schema.table, reason)


def typed_like(schema: TableSchema, columns: Sequence[Column]) -> TableSchema:
    """The schema with the lake types that these columns have, where they are the same columns of the same source types.

    Which lake type a source's type has may depend on a person's choice, and on the version of Tailrace that made the
    copy. Every value can be text, so a copy keeps the types that it was made with.
    """
    known = {column.identity: column for column in columns}

    def typed(column: Column) -> Column:
        other = known.get(column.identity, column)
        is_same = other.source_type == column.source_type and "string" in (other.type, column.type)
        return replace(column, type=other.type) if is_same and other.type != column.type else column

    found = tuple(map(typed, schema.columns))
    return schema if found == schema.columns else replace(schema, columns=found)
