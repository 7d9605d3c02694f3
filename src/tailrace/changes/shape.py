"""Which shape each record of a table has, and the one shape a read gives them all.

A table's shape may change inside a range. One rule says which shape a record has, by transaction: the newest one that
the record's own transaction announced before it; else the newest one that was valid for all at its position. A
shape is valid for all from the commit of the transaction that announced it. So a transaction that is streamed
while others commit sees its own changes of shape at once, and they do not.

    position     1        2            3          4          5
                 A shape  B insert     A insert   A commit   C insert
    its shape             old          A's                   A's

Each record is decoded with its shape and brought to the target, the newest one. A column is recognised by its
identity, not by its name. Its lake type is the target's, also where the shape in the log was written under another rule
(`model.following.typed_like`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError, ResyncError
from tailrace.log.files.record import Array
from tailrace.log.schema_versions import SchemaVersion
from tailrace.model.change import BEFORE, UNCHANGED, Decode, WhyCopy, change_schema
from tailrace.model.following import steps, typed_like
from tailrace.model.rows.column_names import folded
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE, exact_of, renamed, with_exact, without_exact
from tailrace.model.table import TableId, TableSchema


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
            raise ResyncError.of(self.target.table, "the log lacks the shape of its oldest records")
        for index in np.unique(which):
            part = records.filter(pa.array(which == index)).combine_chunks()
            for batch in part.to_batches():
                own = typed_like(self.versions[index].schema, self.target.columns)
                _require_followable(own, self.target)
                yield conform(self.decode_batch(batch, own), own, self.target)


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
    if not mine[-1].schema.columns:
        raise ResyncError.of(table, "it has no columns any more")
    return TableShape(mine[-1].schema, tuple(mine), decode)


def require_same(shape: TableShape, definition: Mapping[str, Any] | None, why_copy: WhyCopy) -> None:
    """`ResyncError` if a shape in the range says that a copy made under `definition` may be wrong."""
    for version in shape.versions:
        new = version.schema.definition
        reason = why_copy(definition, new) if definition is not None and new is not None else None
        if reason is not None:
            raise ResyncError.of(shape.target.table, reason)


def _require_followable(own: TableSchema, target: TableSchema) -> None:
    """Asked of shapes that records have: one that a table had before it was copied is of no concern."""
    if own.key_identities != target.key_identities:
        raise ResyncError.of(target.table, "its key changed")
    steps(own.columns, target)


def with_dropped(shape: TableShape) -> TableShape:
    """The same, with the columns that were dropped inside the range after the others, unless a name is taken."""
    columns = {folded(column.name): column for column in shape.target.columns}
    known = {column.identity for column in shape.target.columns}
    for version in reversed(shape.versions):
        for column in version.schema.columns:
            if column.identity not in known:
                columns.setdefault(folded(column.name), column)
    return replace(shape, target=replace(shape.target, columns=tuple(columns.values())))


def without_key(shape: TableShape) -> TableShape:
    """The same, for who tells no row from another: a key may change, and have values that its columns cannot hold."""
    versions = tuple(replace(each, schema=replace(each.schema, key=())) for each in shape.versions)
    return replace(shape, target=replace(shape.target, key=()), versions=versions)


def conform(batch: pa.RecordBatch, own: TableSchema, target: TableSchema) -> pa.RecordBatch:
    """Changes decoded with their own shape, with the target's columns; those their shape lacked are null."""
    wanted = change_schema(target)
    if without_exact(batch).schema.equals(wanted):
        return batch
    names = {column.identity: column.name for column in own.columns}
    sources = {column.name: names.get(column.identity, "") for column in target.columns}
    before = batch.column(BEFORE)
    fields = [_field(before, sources[field.name], field.type) for field in wanted.field(BEFORE).type]
    struct = pa.StructArray.from_arrays(fields, fields=list(wanted.field(BEFORE).type), mask=before.is_null())
    arrays = {BEFORE: struct, UNCHANGED: _renamed(batch.column(UNCHANGED), sources)}
    for field in wanted:
        if field.name not in arrays:
            arrays[field.name] = _column(batch, sources.get(field.name, field.name), field.type)
    found = pa.RecordBatch.from_arrays([arrays[field.name] for field in wanted], schema=wanted)
    targets = {source: name for name, source in sources.items() if source}
    for name in (EXACT, EXACT_BEFORE):
        maps = exact_of(batch, name)
        found = with_exact(found, None if maps is None else renamed(maps, targets), name)
    return found


def _renamed(lists: pa.ListArray, sources: dict[str, str]) -> pa.ListArray:
    """Lists of column names with the target's names; those of columns that are gone are left out."""
    targets = {source: name for name, source in sources.items() if source}
    if lists.null_count == len(lists):
        return lists
    renamed = [[targets[name] for name in names or () if name in targets] for names in lists.to_pylist()]
    return pa.array([names or None for names in renamed], lists.type)


def _column(batch: pa.RecordBatch, name: str, type_: pa.DataType) -> pa.Array:
    index = batch.schema.get_field_index(name)
    return batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, type_)


def _field(struct: pa.StructArray, name: str, type_: pa.DataType) -> pa.Array:
    index = struct.type.get_field_index(name)
    return pc.struct_field(struct, [index]) if index >= 0 else pa.nulls(len(struct), type_)
