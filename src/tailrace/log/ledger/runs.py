"""Runs: a batch's records, grouped by transaction, all at once.

Within one transaction's records, in order, a run starts at a BEGIN, after a COMMIT or ROLLBACK, or with the batch:

    batch    b7 i7 b8 i7 i8 c7 i8 | i8 c8
    runs     [b7 i7 i7 c7] [b8 i8 i8]   [i8 c8]

A run that begins and commits is a whole transaction. Only the other runs need to be looked at one by one. There are
never more of those than transactions active at the batch's edges, rolled back or begun again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.log.files.record import COUNTED_MAX, RECORD_BYTES_FIXED, Array, Columns, distinct, offsets
from tailrace.model.kind import Kind

# As NumPy's own numbers: comparing a column with an enum member costs several times more.
_BEGIN, _COMMIT, _ROLLBACK, _ROLLBACK_SUB, _UNDO, _SCHEMA = (
    np.uint8(kind) for kind in (Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK, Kind.ROLLBACK_SUB, Kind.UNDO, Kind.SCHEMA)
)


@dataclass(frozen=True)
class Pairs:
    """Distinct (run, value), sorted."""

    run: Array
    value: Array

    def of(self, run: int) -> Array:
        return self.value[np.searchsorted(self.run, run) : np.searchsorted(self.run, run, side="right")]


@dataclass(frozen=True)
class RunCounts:
    """What each run has: one entry a run."""

    records: Array
    changes: Array
    bytes: Array
    undos: Array


@dataclass(frozen=True)
class Runs:
    """One entry a run, ordered by transaction and then by time."""

    xid: Array
    has_begin: Array
    """Starts with a BEGIN."""
    leading: Array
    """The first run of its transaction in this batch."""
    outcome: Array
    """COMMIT, ROLLBACK, or 0 when it is still open."""
    quiet: Array
    """Nothing but rollbacks: harmless for a transaction that is not known."""
    first_row: Array
    last_row: Array
    counts: RunCounts
    relations: Pairs
    aborted: Pairs
    order: Array | slice
    """The batch's rows, as the runs have them."""

    def __len__(self) -> int:
        return len(self.xid)

    def of_row(self, rows: int) -> Array:
        """For each of the batch's rows its run, -1 outside transactions."""
        run = np.full(rows, -1, dtype=np.int64)
        run[self.order] = np.repeat(np.arange(len(self)), self.counts.records)
        return run


def group(columns: Columns) -> Runs:
    """The runs of a batch."""
    return whole_transactions(columns) or any_records(columns)


def whole_transactions(columns: Columns) -> Runs | None:
    """The runs of a batch that is nothing but whole transactions of plain changes, one after the other, else None.

    Most batches of most sources are. Few columns have to be gone through then, and none has to be sorted.
    """
    kind, xid, relation = columns.kind, columns.xid, columns.relation
    first, last = np.flatnonzero(kind == _BEGIN), np.flatnonzero(kind == _COMMIT)
    count = len(first)
    if count == 0 or len(last) != count or np.count_nonzero(kind <= _SCHEMA) != 2 * count:
        return None
    turns = np.flatnonzero(xid[1:] != xid[:-1])
    if first[0] != 0 or last[-1] != len(xid) - 1 or not np.array_equal(first[1:], last[:-1] + 1):
        return None
    if not np.array_equal(turns, last[:-1]) or not xid[first].all() or relation[first].any() or relation[last].any():
        return None
    start = offsets(columns.payload)
    changes = last - first - 1
    fresh = np.flatnonzero((relation[1:] != relation[:-1]) & (relation[1:] != 0)) + 1
    run = np.repeat(np.arange(count), last - first + 1)
    nothing = np.zeros(count, dtype=np.int64)
    return Runs(
        xid=xid[first],
        has_begin=np.ones(count, dtype=bool),
        leading=np.ones(count, dtype=bool),
        outcome=kind[last],
        quiet=nothing > 0,
        first_row=first,
        last_row=last,
        counts=RunCounts(
            records=last - first + 1,
            changes=changes,
            bytes=(start[last] - start[first + 1]).astype(np.int64) + RECORD_BYTES_FIXED * changes,
            undos=nothing,
        ),
        relations=_pairs(run[fresh], relation[fresh], count),
        aborted=Pairs(nothing[:0], nothing[:0].astype(np.uint64)),
        order=slice(None),
    )


def any_records(columns: Columns) -> Runs:
    order = _by_transaction(columns.xid)
    xid, kind = columns.xid[order], columns.kind[order]
    relation, size = columns.relation[order], columns.size[order]
    ends = (kind == _COMMIT) | (kind == _ROLLBACK)
    leads = _differs(xid)
    starts = leads | (kind == _BEGIN)
    starts[1:] |= ends[:-1]
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(xid))[: len(first)] - 1
    run = np.cumsum(starts) - 1
    row = np.arange(len(columns.xid))[order]
    change = kind > _SCHEMA
    changes = _sum(change, first, last)
    table = np.where(change, relation, 0)
    fresh = np.flatnonzero((_differs(table) | starts) & (table != 0))
    quiet = np.flatnonzero((kind >= _ROLLBACK) & (kind <= _UNDO))
    aborting = quiet[kind[quiet] == _ROLLBACK_SUB]
    return Runs(
        xid=xid[first],
        has_begin=kind[first] == _BEGIN,
        leading=leads[first],
        outcome=np.where(ends[last], kind[last], 0),
        quiet=_count(run[quiet], len(first)) == last - first + 1,
        first_row=row[first],
        last_row=row[last],
        counts=RunCounts(
            records=last - first + 1,
            changes=changes,
            bytes=_sum(np.where(change, size, 0), first, last) + RECORD_BYTES_FIXED * changes,
            undos=_count(run[quiet[kind[quiet] == _UNDO]], len(first)),
        ),
        relations=_pairs(run[fresh], table[fresh], len(first)),
        aborted=_pairs(run[aborting], columns.sub_xid[order][aborting], len(first)),
        order=order,
    )


def _by_transaction(xid: Array) -> Array | slice:
    """Rows inside transactions, ordered by xid and then by time."""
    if len(xid) and xid[0] and (xid[1:] >= xid[:-1]).all():
        return slice(None)
    inside = np.flatnonzero(xid)
    return inside[np.argsort(xid[inside], kind="stable")]


def _differs(values: Array) -> Array:
    """Whether each value differs from the one before it; the first does."""
    differs = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs


def _sum(values: Array, first: Array, last: Array) -> Array:
    """The sum over each run."""
    total = np.cumsum(values, dtype=np.int64)
    return total[last] - total[first] + values[first]


def _count(runs: Array, count: int) -> Array:
    return np.bincount(runs, minlength=count)


def _pairs(run: Array, value: Array, runs: int) -> Pairs:
    values = distinct(value)
    if values.max(initial=0) < COUNTED_MAX and runs * len(values) < COUNTED_MAX:
        return _counted_pairs(run, value.astype(np.int64), values)
    order = np.lexsort((value, run))
    run, value = run[order], value[order].astype(np.uint64)
    fresh = _differs(run) | _differs(value)
    return Pairs(run[fresh], value[fresh])


def _counted_pairs(run: Array, value: Array, values: Array) -> Pairs:
    rank = np.zeros(values.max(initial=0) + 1, dtype=np.int64)
    rank[values] = np.arange(len(values))
    present = np.flatnonzero(np.bincount(run * len(values) + rank[value]))
    run, place = np.divmod(present, max(1, len(values)))
    return Pairs(run, values[place].astype(np.uint64))
