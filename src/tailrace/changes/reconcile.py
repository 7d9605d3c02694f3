"""Rows read by a window, brought up to date by the log.

A chunk is read under a state S of the source and published at transaction L. Up to L lie transactions that S does not
show, some of them logged before the chunk was read. Replayed over the chunk, they give its rows as of L:

    log      ... t7 (not in S) ... L
    chunk    k1   k2   k3              -> k1, k2 as t7 left it; t7 deleted k3

The chunk is always the complete side, so an update that leaves a large column out is filled from it, also where the
row moved to another key by it. One row cannot be told: it moved, left columns out, and its old row is in another chunk.
A table that follows the log has it, or has noted its key, to be read again. When it is read again, the state may still
not show the move that it is read for: then it is noted once more.

Any other key that the chunk does not have needs nothing: the table follows the log, which brings it. A key of the chunk
that is gone at L needs nothing either: a table that has followed the log to L does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED
from tailrace.model.rows.exact import exact_of, filled, together, with_exact
from tailrace.model.rows.key import key_codes
from tailrace.model.rows.nested import replaced
from tailrace.model.table import TableSchema


@dataclass(frozen=True)
class Reconciled:
    """A chunk as of a later transaction."""

    states: pa.Table
    """Whole rows of the chunk's keys, and of keys that they moved to, in the shape that `LakeTable.publish` takes."""
    again: pa.Table
    """Of the keys that were read again, those that had a row at that transaction which still cannot be told."""


def reconciled(
    rows: pa.Table,
    states: pa.Table | None,
    schema: TableSchema,
    *,
    is_exact: bool,
    is_truncated: bool = False,
    wanted: pa.Table | None = None,
) -> Reconciled:
    """`rows` as they are after the changes that `states` come to (`changes.tail.unseen_tail`), both in the schema's
    shape; None stands for no changes. `is_truncated`: the table was emptied before the states. `wanted`: the rows are
    those of these keys, which are read again.

    Not `is_exact`: the rows may show the first of these changes already. A replay then does no harm, but the row under
    a moved row's old key may be another one by now, and is not trusted.
    """
    assert schema.key
    rows = rows.slice(0, 0) if is_truncated else rows
    if states is None or not states.num_rows:
        return Reconciled(_as_states(rows, schema), rows.slice(0, 0).select(list(schema.key)))
    own, old = _places(rows, states, schema)
    moved = states.column(ORIGIN).is_valid().to_numpy()
    filler = np.where(moved, old if is_exact else -1, own)
    is_unknown = moved & (filler < 0)
    is_there = (moved | (own >= 0)) & ~states.column(DELETED).to_numpy() & ~is_unknown
    changed = _filled(states.filter(pa.array(is_there)), rows, filler[is_there])
    plain = pa.schema([rows.schema.field(name) for name in schema.names])
    changed = with_exact(changed.select(list(schema.names)).cast(plain), exact_of(changed))
    found = together([rows, changed], plain).combine_chunks().take(pa.array(_order(rows.num_rows, own, is_there)))
    unknown = states.filter(pa.array(is_unknown)).select(list(schema.key))
    return Reconciled(_as_states(found, schema), _among(unknown, wanted, schema))


def _order(rows: int, own: np.ndarray, is_there: np.ndarray) -> np.ndarray:
    """Which of the rows and of the changed ones after them there are, each changed one at the place of the row that it
    replaces: a chunk comes in the order of the key, and who writes it need not sort what is in order."""
    at, left = np.arange(rows), np.ones(rows, bool)
    left[own[own >= 0]] = False
    changed = own[is_there]
    numbers = rows + np.arange(len(changed))
    at[changed[changed >= 0]] = numbers[changed >= 0]
    left[changed[changed >= 0]] = True
    return np.concatenate([at[left], numbers[changed < 0]])


def _among(keys: pa.Table, wanted: pa.Table | None, schema: TableSchema) -> pa.Table:
    """Those of the keys that were wanted."""
    if wanted is None or not keys.num_rows:
        return keys.slice(0, 0)
    parts = [
        pa.concat_arrays(
            [each.column(name).combine_chunks().cast(keys.schema.field(name).type) for each in (keys, wanted)]
        )
        for name in schema.key
    ]
    codes, _ = key_codes(pa.StructArray.from_arrays(parts, list(schema.key)))
    return keys.filter(pa.array(np.isin(codes[: keys.num_rows], codes[keys.num_rows :])))


def _places(rows: pa.Table, states: pa.Table, schema: TableSchema) -> tuple[np.ndarray, np.ndarray]:
    """Of each state: which row has its key, and which has the key it moved from; -1 where none does."""
    origins = states.column(ORIGIN).combine_chunks()
    moved = np.flatnonzero(origins.is_valid().to_numpy(zero_copy_only=False))
    origins = pa.Table.from_struct_array(origins.take(pa.array(moved)))
    parts = [
        pa.concat_arrays([table.column(name).combine_chunks() for table in (rows, states, origins)])
        for name in schema.key
    ]
    codes, count = key_codes(pa.StructArray.from_arrays(parts, list(schema.key)))
    of_rows, of_states, of_origins = np.split(codes, [rows.num_rows, rows.num_rows + states.num_rows])
    row_at = np.full(count, -1, np.int64)
    row_at[of_rows] = np.arange(rows.num_rows)
    old = np.full(states.num_rows, -1, np.int64)
    old[moved] = row_at[of_origins]
    return row_at[of_states], old


def _filled(states: pa.Table, rows: pa.Table, filler: np.ndarray) -> pa.Table:
    """The states with the columns that were left out, each from its row of the chunk."""
    left_out = states.column(UNCHANGED).combine_chunks()
    names, parents = pc.list_flatten(left_out), pc.list_parent_indices(left_out)
    places: dict[str, np.ndarray] = {}
    for name in pc.unique(names).to_pylist():
        wants = np.zeros(states.num_rows, bool)
        wants[parents.filter(pc.equal(names, name)).to_numpy()] = True
        places[name] = np.where(wants, filler, -1)
        values = rows.column(name).take(pa.array(filler[wants])).combine_chunks()
        index = states.schema.get_field_index(name)
        column = states.column(index).combine_chunks()
        states = states.set_column(index, name, replaced(column, wants, values))
    return with_exact(states, filled(exact_of(states), places, exact_of(rows), states.num_rows))


def _as_states(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Whole rows as states; whether the table has them is not known."""
    no, count = pa.array(np.zeros(rows.num_rows, bool)), rows.num_rows
    key = pa.struct([rows.schema.field(name) for name in schema.key])
    return (
        with_exact(rows.select(list(schema.names)), exact_of(rows))
        .append_column(DELETED, no)
        .append_column(FRESH, no)
        .append_column(UNCHANGED, pa.nulls(count, pa.list_(pa.string())))
        .append_column(ORIGIN, pa.nulls(count, key))
    )
