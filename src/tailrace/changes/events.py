"""What each change does to which key: the first half of compaction, row by row and stateless.

A change is a row as the Spark source gives it (`_op, _seq, _pos, …, _before, _unchanged`, then the
table's columns). An event concerns exactly one key: an update that changes the key becomes a
delete of the old key and an upsert of the new one, so events can be dealt out by key.

    _key        struct of the key columns
    _seq, _pos  order of the change; _part orders the two events of one change
    _deleted    the key has no row after this event
    _fresh      before this event the key had no row: an insert, or a row moved here
    _from       the key this row had before, where the row moved and left columns out
    _unchanged  columns the source left out (unchanged TOAST values)
    …           the table's columns; null in deletes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

META = ("_key", "_seq", "_pos", "_part", "_deleted", "_fresh", "_from", "_unchanged")


def events(changes: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """The events of `changes`; truncates are not events and are left out."""
    operations = changes.column("_op").combine_chunks()
    old_key = _struct([pc.struct_field(changes.column("_before"), name) for name in key], key)
    # A key value stored out of line is left out of the new tuple like any other, and sent in the old one.
    new_key = _struct([pc.coalesce(changes.column(name), pc.struct_field(old_key, name)) for name in key], key)
    has_old = pc.is_valid(changes.column("_before")).to_numpy()
    is_delete = pc.equal(operations, "d").to_numpy(zero_copy_only=False)
    is_upsert = pc.is_in(operations, pa.array(["c", "u"])).to_numpy(zero_copy_only=False)
    moves = is_upsert & has_old & _differs(old_key, new_key, key)
    deletes = np.flatnonzero(is_delete | moves)
    upserts = np.flatnonzero(is_upsert)
    deleted = _part(changes, deletes, 0, columns, keep_columns=False)
    upserted = _part(changes, upserts, 1, columns, keep_columns=True)
    moved = pa.array(moves[upserts])
    partial = pc.is_valid(upserted.column("_unchanged")).combine_chunks()
    nulls = pa.nulls(len(upserts), new_key.type)
    parts = [
        _with_meta(
            deleted,
            old_key.take(pa.array(deletes)),
            np.ones(len(deletes), bool),
            np.zeros(len(deletes), bool),
            pa.nulls(len(deletes), new_key.type),
        ),
        _with_meta(
            upserted,
            new_key.take(pa.array(upserts)),
            np.zeros(len(upserts), bool),
            (pc.equal(operations, "c").to_numpy(zero_copy_only=False) | moves)[upserts],
            pc.if_else(pc.and_(moved, partial), old_key.take(pa.array(upserts)), nulls),
        ),
    ]
    return pa.concat_tables(parts).select([*META, *columns])


def _struct(fields: Sequence[pa.ChunkedArray], names: Sequence[str]) -> pa.StructArray:
    arrays = [field.combine_chunks() if isinstance(field, pa.ChunkedArray) else field for field in fields]
    return pa.StructArray.from_arrays(arrays, list(names))


def _differs(old: pa.StructArray, new: pa.StructArray, key: Sequence[str]) -> np.ndarray:
    differs = np.zeros(len(old), bool)
    for name in key:
        same = pc.equal(pc.struct_field(old, name), pc.struct_field(new, name))
        differs |= ~pc.fill_null(same, False).to_numpy(zero_copy_only=False)
    return differs


def _part(changes: pa.Table, rows: np.ndarray, part: int, columns: Sequence[str], *, keep_columns: bool) -> pa.Table:
    taken = changes.select(["_seq", "_pos", "_unchanged", *columns]).take(pa.array(rows))
    if not keep_columns:
        empty = [pa.nulls(len(rows), taken.schema.field(name).type) for name in ("_unchanged", *columns)]
        taken = pa.table([taken.column("_seq"), taken.column("_pos"), *empty], names=taken.column_names)
    return taken.append_column("_part", pa.array(np.full(len(rows), part, np.int8)))


def _with_meta(
    part: pa.Table, key: pa.StructArray, deleted: np.ndarray, fresh: np.ndarray, moved_from: pa.Array
) -> pa.Table:
    return (
        part.append_column("_key", key)
        .append_column("_deleted", pa.array(deleted))
        .append_column("_fresh", pa.array(fresh))
        .append_column("_from", moved_from)
    )
