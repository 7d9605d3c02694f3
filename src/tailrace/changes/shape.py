"""Which shape each record of a table has, and the one shape a read gives them all.

A table's shape may change inside a range. One rule says which shape a record has, by transaction: the newest one that
the record's own transaction announced before it; else the newest one that was valid for all at its position. A
shape is valid for all from the commit of the transaction that announced it. So a transaction that is streamed
while others commit sees its own changes of shape at once, and they do not.

    position     1        2            3          4          5
                 A shape  B insert     A insert   A commit   C insert
    its shape             old          A's                   A's

Each record is decoded with its shape and brought to the target: the newest one, followed by the columns that were
dropped inside the range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError
from tailrace.log.reader import SchemaVersion
from tailrace.log.record import Array
from tailrace.model.change import BEFORE, Decode, change_schema
from tailrace.model.following import require_followable
from tailrace.model.table import Column, TableId, TableSchema


@dataclass(frozen=True)
class TableShape:
    """All a reader must know to decode one table; a value that travels to executors."""

    target: TableSchema
    versions: tuple[SchemaVersion, ...]
    """The shapes that records of the range may have."""
    decode_batch: Decode
    """The source's."""

    @property
    def relations(self) -> frozenset[int]:
        return frozenset({self.target.relation})

    def decode(self, records: pa.Table) -> Iterator[pa.RecordBatch]:
        """Records of this table, typed as the target shape says; in order of position within each shape."""
        which = version_of(self.versions, records.column("xid").to_numpy(), records.column("position").to_numpy())
        if len(which) and which.min() < 0:
            raise DefiniteError(
                f"{self.target.table}: the log lacks the shape of its oldest records",
                f"tailrace tables resync LAKE {self.target.table}",
                str(self.target.table),
            )
        for index in np.unique(which):
            part = records.filter(pa.array(which == index)).combine_chunks()
            for batch in part.to_batches():
                yield conform(self.decode_batch(batch, self.versions[index].schema), self.target)


def version_of(versions: Sequence[SchemaVersion], xid: Array, position: Array) -> Array:
    """For each record, the index of its shape in `versions`; -1 where there is none."""
    order = sorted(range(len(versions)), key=lambda index: (versions[index].since, versions[index].position))
    since = np.array([versions[index].since for index in order], dtype=np.int64)
    at = np.searchsorted(since, position, side="right") - 1
    which = np.where(at >= 0, np.array([*order, -1])[at], -1)
    own = sorted((v.position, index) for index, v in enumerate(versions) if v.xid)
    for start, index in own:
        version = versions[index]
        # An xid may come again later; its transaction ended where the shape became valid for all.
        which[(xid == version.xid) & (position >= start) & (position <= version.since)] = index
    return which


def shape_of(
    versions: Iterable[SchemaVersion],
    table: TableId,
    between: tuple[int, int],
    decode: Decode,
    relation: int | None = None,
) -> TableShape | None:
    """The table's shape for a read of these positions; None if the log never saw the table.

    A table that was dropped and created again has another relation: without `relation`, the newest counts.
    """
    start, end = between
    known = sorted((v for v in versions if v.since < end), key=lambda v: (v.since, v.position))
    if relation is None:
        relation = next((v.relation for v in reversed(known) if v.schema.table == table), None)
    mine = [v for v in known if v.relation == relation]
    if not mine:
        return None
    if mine[-1].schema.table != table:
        raise DefiniteError(
            f"table {table} was renamed to {mine[-1].schema.table}",
            "run tailrace sync again: it copies the table under its new name",
            str(table),
        )
    # Of those valid before the range only the last is still in force in it.
    first = max((index for index, v in enumerate(mine) if v.since <= start), default=0)
    mine = mine[first:]
    return TableShape(_target([v.schema for v in mine]), tuple(mine), decode)


def _target(schemas: list[TableSchema]) -> TableSchema:
    newest = schemas[-1]
    columns: dict[str, Column] = {column.name: column for column in newest.columns}
    for older, newer in itertools.pairwise(schemas):
        require_followable(older.columns, newer)
    if not newest.key or any(schema.key != newest.key for schema in schemas):
        table = newest.table
        raise DefiniteError(f"{table}: the primary key changed", f"tailrace tables resync LAKE {table}", str(table))
    for schema in reversed(schemas[:-1]):
        for column in schema.columns:
            columns.setdefault(column.name, column)
    return replace(newest, columns=tuple(columns.values()))


def conform(batch: pa.RecordBatch, target: TableSchema) -> pa.RecordBatch:
    """Decoded changes with the target's columns; those their own shape lacked are null."""
    wanted = change_schema(target)
    if batch.schema.equals(wanted):
        return batch
    arrays = [_column(batch, field) for field in wanted if field.name != BEFORE]
    before = batch.column(BEFORE)
    fields = [_field(before, field) for field in wanted.field(BEFORE).type]
    struct = pa.StructArray.from_arrays(fields, fields=list(wanted.field(BEFORE).type), mask=before.is_null())
    arrays.insert(wanted.get_field_index(BEFORE), struct)
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    return batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, field.type)


def _field(struct: pa.StructArray, field: pa.Field) -> pa.Array:
    index = struct.type.get_field_index(field.name)
    return pc.struct_field(struct, [index]) if index >= 0 else pa.nulls(len(struct), field.type)
