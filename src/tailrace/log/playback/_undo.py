"""Undo: which changes were taken back one by one.

An UNDO takes back the newest change of its transaction, sub-transaction and table that is not undone yet. Read
backwards this needs no stack: an UNDO adds one to a count, a change found while the count is not zero is undone and
takes one off. So a part of the log can be resolved on its own, given the counts at its end.
"""

from __future__ import annotations

import numpy as np

from tailrace.log.files.record import Array, Columns
from tailrace.model.kind import Kind

Key = tuple[int, int, int]
"""Sequence number, sub-transaction, table."""
Pending = dict[Key, int]
"""For each key, the UNDOs that have not met their change yet, reading backwards."""


def resolve(columns: Columns, seq: Array, pending: Pending) -> Array:
    """Which rows are undone. `seq` is each row's transaction, 0 where it has no UNDO to look for.

    `pending` holds the counts at the end of the batch and is brought to those at its start.
    """
    undone = np.zeros(len(seq), dtype=bool)
    is_undo = columns.kind == Kind.UNDO
    rows = np.flatnonzero((seq > 0) & (is_undo | (columns.kind > Kind.SCHEMA)))
    order = rows[np.lexsort((-rows, columns.relation[rows], columns.sub_xid[rows], seq[rows]))]
    keys = np.stack([seq[order].astype(np.uint64), columns.sub_xid[order], columns.relation[order].astype(np.uint64)])
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)])
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=False):
        key = (int(keys[0, start]), int(keys[1, start]), int(keys[2, start]))
        group = order[start:stop]
        if key in pending or is_undo[group].any():
            undone[group], pending[key] = _resolve_key(is_undo[group], pending.get(key, 0))
    return undone


def _resolve_key(is_undo: Array, count: int) -> tuple[Array, int]:
    """Rows of one key, newest first: which changes are undone, and the count that remains."""
    level = count + np.cumsum(np.where(is_undo, 1, -1))
    counts = level - np.minimum(0, np.minimum.accumulate(level))
    before = np.append(count, counts[:-1])
    return ~is_undo & (before > 0), int(counts[-1])
