"""How a copy follows its table to another shape: by what identifies a column, which a rename keeps.

Whether it may, because old rows are what they would be, is for the source to say (`Source.why_copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tailrace.errors import ResyncError
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
    """From the columns that are present to the schema's. `ResyncError` where a copy cannot follow."""
    wanted = {column.identity: column for column in schema.columns}
    kept = {column.identity: column for column in present if column.identity in wanted}
    for identity, before in kept.items():
        if before.type != wanted[identity].type:
            was, now = before.source_type or before.type, wanted[identity].source_type
            raise ResyncError.of(schema.table, f"column {wanted[identity].name} was {was} and is now {now}")
    rename = {old.name: wanted[each].name for each, old in kept.items() if old.name != wanted[each].name}
    if set(rename.values()) & {column.name for column in kept.values()}:
        raise ResyncError.of(schema.table, "columns exchanged their names")
    return Steps(
        drop=tuple(column.name for column in present if column.identity not in wanted),
        rename=rename,
        add=tuple(column for column in schema.columns if column.identity not in kept),
    )
