"""What each change does to which key: the first half of compaction, row by row and stateless.

An event concerns exactly one key: an update that changes the key becomes a delete of the old key and an upsert of
the new one, so events can be dealt out by key.

    KEY        struct of the key columns
    SEQ, POS   order of the change; PART orders the two events of one change
    DELETED    the key has no row after this event
    FRESH      before this event the key had no row: an insert, or a row moved here
    FROM       the key this row had before, where the row moved and left columns out
    UNCHANGED  columns the source left out (unchanged TOAST values)
    …          the table's columns, and `EXACT` where the changes have it; null in deletes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import BEFORE, DELETED, EVENT_METADATA, FRESH, FROM, KEY, OP, PART, POS, SEQ, UNCHANGED
from tailrace.model.rows.exact import EXACT
from tailrace.model.rows.key import differs


def events(changes: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """The events of `changes`; truncates are not events and are left out.

    Every change is an event where it stands, so its columns are not copied; what a row left behind under its old key
    comes after them.
    """
    columns = [*columns, EXACT] if EXACT in changes.column_names else columns
    operations = changes.column(OP).combine_chunks()
    before = changes.column(BEFORE).combine_chunks()
    old = [pc.struct_field(before, [before.type.get_field_index(name)]) for name in key]
    old_key = pa.StructArray.from_arrays(old, list(key))
    # A key value stored out of line is left out of the new tuple like any other, and sent in the old one. A delete has
    # no new tuple.
    new = [pc.coalesce(changes.column(name).combine_chunks(), value) for name, value in zip(key, old, strict=True)]
    new_key = pa.StructArray.from_arrays(new, list(key))
    is_delete = pc.equal(operations, "d").to_numpy(zero_copy_only=False)
    is_upsert = pc.is_in(operations, pa.array(["c", "u"])).to_numpy(zero_copy_only=False)
    moves = is_upsert & pc.is_valid(before).to_numpy(zero_copy_only=False) & differs(old_key, new_key)
    fresh = pc.equal(operations, "c").to_numpy(zero_copy_only=False) | moves
    found = _with_meta(
        changes.select([SEQ, POS, UNCHANGED, *columns]),
        new_key,
        (is_delete, fresh, is_upsert),
        _moved_from(old_key, moves & changes.column(UNCHANGED).is_valid().to_numpy()),
    ).select([*EVENT_METADATA, *columns])
    if not (is_delete | is_upsert).all():
        found = found.filter(pa.array(is_delete | is_upsert))
    left = np.flatnonzero(moves)
    return pa.concat_tables([found, _left_behind(changes, old_key, left, found.schema)]) if len(left) else found


def _moved_from(old_key: pa.StructArray, partial: np.ndarray) -> pa.Array:
    if not partial.any():
        return pa.nulls(len(old_key), old_key.type)
    return old_key.take(pa.array(np.arange(len(old_key)), mask=~partial))


def _left_behind(changes: pa.Table, old_key: pa.StructArray, rows: np.ndarray, schema: pa.Schema) -> pa.Table:
    """The deletes of keys that rows moved away from."""
    places = changes.select([SEQ, POS]).take(pa.array(rows))
    empty = [pa.nulls(len(rows), schema.field(name).type) for name in (UNCHANGED, *schema.names[len(EVENT_METADATA) :])]
    part = pa.table([*places.columns, *empty], names=[SEQ, POS, UNCHANGED, *schema.names[len(EVENT_METADATA) :]])
    gone, none = np.ones(len(rows), bool), np.zeros(len(rows), bool)
    nothing = pa.nulls(len(rows), old_key.type)
    return _with_meta(part, old_key.take(pa.array(rows)), (gone, none, none), nothing).select(schema.names)


def _with_meta(
    part: pa.Table, key: pa.StructArray, flags: tuple[np.ndarray, np.ndarray, np.ndarray], moved_from: pa.Array
) -> pa.Table:
    """`flags` say which rows are deletes, which are fresh, and which come second in their change."""
    deleted, fresh, second = flags
    return (
        part.append_column(KEY, key)
        .append_column(DELETED, pa.array(deleted))
        .append_column(FRESH, pa.array(fresh))
        .append_column(FROM, moved_from)
        .append_column(PART, pa.array(second.astype(np.int8)))
    )
