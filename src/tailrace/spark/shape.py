"""Which shape a table's records have at each position of the log, and the one shape a read gives them all.

A table's shape may change inside a range. Each record is decoded with the shape in force at its
position and brought to the target shape: the newest one, with the columns dropped on the way behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.lake.evolve import require_followable
from tailrace.log.reader import SchemaVersion
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres.pgoutput import decode, decoded_schema


@dataclass(frozen=True)
class TableShape:
    """All a reader must know to decode one table; a value that travels to executors."""

    target: TableSchema
    versions: tuple[tuple[int, TableSchema], ...]
    """Position from which each shape holds, oldest first."""

    @property
    def relations(self) -> frozenset[int]:
        return frozenset({self.target.relation})

    def decode(self, records: pa.Table) -> Iterator[pa.RecordBatch]:
        """Records of this table, typed as the target shape says, in order of position."""
        starts = np.array([position for position, _ in self.versions])
        which = np.searchsorted(starts, records.column("position").to_numpy(), side="right") - 1
        if len(which) and which.min() < 0:
            raise DefiniteError(f"{self.target.table}: the log lacks the shape of its oldest records")
        for index in np.unique(which):
            part = records.filter(pa.array(which == index)).combine_chunks()
            for batch in part.to_batches():
                yield conform(decode(batch, self.versions[index][1]), self.target)


def shape_of(
    versions: Iterable[SchemaVersion], table: TableId, between: tuple[int, int], relation: int | None = None
) -> TableShape | None:
    """The table's shape for a read of these positions; None if the log never saw the table.

    A table that was dropped and made anew has another relation: without `relation`, the newest counts.
    """
    start, end = between
    before_end = [v for v in versions if v.position < end]
    if relation is None:
        relation = next((v.relation for v in reversed(before_end) if v.schema.table == table), None)
    mine = [v for v in before_end if v.relation == relation]
    if not mine:
        return None
    if mine[-1].schema.table != table:
        raise DefiniteError(
            f"table {table} was renamed to {mine[-1].schema.table}", "run the same command again to copy it anew"
        )
    # Of those before the range only the last is still in force in it.
    first = max((index for index, v in enumerate(mine) if v.position <= start), default=0)
    mine = mine[first:]
    return TableShape(_target([v.schema for v in mine]), tuple((v.position, v.schema) for v in mine))


def _target(schemas: list[TableSchema]) -> TableSchema:
    newest = schemas[-1]
    columns: dict[str, Column] = {column.name: column for column in newest.columns}
    for older, newer in itertools.pairwise(schemas):
        require_followable(older.columns, newer)
    if not newest.key or any(schema.key != newest.key for schema in schemas):
        raise DefiniteError(f"{newest.table}: the primary key changed", "start a new lake in an empty folder")
    for schema in reversed(schemas[:-1]):
        for column in schema.columns:
            columns.setdefault(column.name, column)
    return replace(newest, columns=tuple(columns.values()))


def conform(batch: pa.RecordBatch, target: TableSchema) -> pa.RecordBatch:
    """Decoded changes with the target's columns; those their own shape lacked are null."""
    wanted = decoded_schema(target)
    if batch.schema.equals(wanted):
        return batch
    arrays = [_column(batch, field) for field in wanted if field.name != "_before"]
    before = batch.column("_before")
    fields = [_field(before, field) for field in wanted.field("_before").type]
    struct = pa.StructArray.from_arrays(fields, fields=list(wanted.field("_before").type), mask=before.is_null())
    arrays.insert(wanted.get_field_index("_before"), struct)
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    return batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, field.type)


def _field(struct: pa.StructArray, field: pa.Field) -> pa.Array:
    index = struct.type.get_field_index(field.name)
    return pa.compute.struct_field(struct, [index]) if index >= 0 else pa.nulls(len(struct), field.type)
