"""What each change does to which key: the first half of compaction, row by row and stateless.

An event concerns exactly one key: an update that changes the key becomes a delete of the old key and an upsert of
the new one, so events can be dealt out by key.

    KEY        struct of the key columns
    SEQ, POS   order of the change; PART orders the two events of one change
    DELETED    the key has no row after this event
    FRESH      before this event the key had no row: an insert, or a row moved here
    FROM       the key this row had before, where the row moved and left columns out
    UNCHANGED  columns the source left out (unchanged TOAST values)
    …          the table's columns; null in deletes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import BEFORE, DELETED, EVENT_METADATA, FRESH, FROM, KEY, OP, PART, POS, SEQ, UNCHANGED
from tailrace.model.key import differs


def events(changes: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """The events of `changes`; truncates are not events and are left out."""
    operations = changes.column(OP).combine_chunks()
    before = changes.column(BEFORE).combine_chunks()
    old = [pc.struct_field(before, [before.type.get_field_index(name)]) for name in key]
    old_key = pa.StructArray.from_arrays(old, list(key))
    # A key value stored out of line is left out of the new tuple like any other, and sent in the old one.
    new = [pc.coalesce(changes.column(name).combine_chunks(), value) for name, value in zip(key, old, strict=True)]
    new_key = pa.StructArray.from_arrays(new, list(key))
    has_old = pc.is_valid(before).to_numpy(zero_copy_only=False)
    is_delete = pc.equal(operations, "d").to_numpy(zero_copy_only=False)
    is_upsert = pc.is_in(operations, pa.array(["c", "u"])).to_numpy(zero_copy_only=False)
    moves = is_upsert & has_old & differs(old_key, new_key)
    deletes = np.flatnonzero(is_delete | moves)
    upserts = np.flatnonzero(is_upsert)
    deleted = _part(changes, deletes, 0, columns, keep_columns=False)
    upserted = _part(changes, upserts, 1, columns, keep_columns=True)
    moved = pa.array(moves[upserts])
    partial = pc.is_valid(upserted.column(UNCHANGED)).combine_chunks()
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
    return pa.concat_tables(parts).select([*EVENT_METADATA, *columns])


def _part(changes: pa.Table, rows: np.ndarray, part: int, columns: Sequence[str], *, keep_columns: bool) -> pa.Table:
    taken = changes.select([SEQ, POS, UNCHANGED, *columns]).take(pa.array(rows))
    if not keep_columns:
        empty = [pa.nulls(len(rows), taken.schema.field(name).type) for name in (UNCHANGED, *columns)]
        taken = pa.table([taken.column(SEQ), taken.column(POS), *empty], names=taken.column_names)
    return taken.append_column(PART, pa.array(np.full(len(rows), part, np.int8)))


def _with_meta(
    part: pa.Table, key: pa.StructArray, deleted: np.ndarray, fresh: np.ndarray, moved_from: pa.Array
) -> pa.Table:
    return (
        part.append_column(KEY, key)
        .append_column(DELETED, pa.array(deleted))
        .append_column(FRESH, pa.array(fresh))
        .append_column(FROM, moved_from)
    )
