"""Finished: for the records of a range, the finished transaction each belongs to.

A record belongs to the transaction of its xid that had begun at its position and had not committed before it. An xid
may come again, when the source sent a transaction twice or has wrapped around; positions tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.log.files.record import Array, Columns
from tailrace.log.index.index import list_owners
from tailrace.log.index.transactions import TransactionIndex
from tailrace.log.playback.ranges import ByteRange
from tailrace.model.kind import Kind

_BEGIN, _COMMIT, _ROLLBACK = (np.uint8(kind) for kind in (Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK))


@dataclass(frozen=True)
class Finished:
    """Transactions that have records in a range, ordered by xid and commit."""

    rows: Array
    seq: Array
    commit_ordinal: Array
    commit_time_us: Array
    """Of each row, side by side in memory: they are looked up for every record."""
    byte_range: ByteRange
    xids: Array
    """Distinct, sorted."""
    keys: Array
    """For each row, the rank of its xid and its commit position within the range, as one number."""
    aborted_keys: Array
    """Row and aborted sub-transaction as one number, sorted."""
    aborted_subs: Array
    """Distinct aborted sub-transactions, sorted."""

    @classmethod
    def of_range(cls, index: TransactionIndex, byte_range: ByteRange, after: int, upto: int) -> Finished:
        within = (max(after, byte_range.after), min(upto, byte_range.upto))
        wanted = [within, *_neighbours(byte_range.spanning, after, upto)]
        found = [index.read(low, max(low, high)) for low, high in wanted]
        rows = np.concatenate([part[0] for part in found])
        lists = np.concatenate([part[1] for part in found])
        owner, is_aborted = list_owners(rows)
        order = np.lexsort((rows["commit_position"], rows["xid"]))
        place = np.empty(len(rows), dtype=np.int64)
        place[order] = np.arange(len(rows))
        rows = rows[order]
        xids, rank = np.unique(rows["xid"], return_inverse=True)
        subs, code = np.unique(lists[is_aborted], return_inverse=True)
        return cls(
            rows=rows,
            seq=rows["seq"].copy(),
            commit_ordinal=rows["commit_ordinal"].copy(),
            commit_time_us=rows["commit_time_us"].copy(),
            byte_range=byte_range,
            xids=xids,
            keys=_key(rank, rows["commit_position"], byte_range),
            aborted_keys=np.sort(place[owner[is_aborted]] * len(subs) + code),
            aborted_subs=subs,
        )

    @property
    def has_undos(self) -> bool:
        return bool((self.rows["undos"] > 0).any())

    def find(self, columns: Columns, position: Array) -> Array:
        """For each record, its row in `rows`, or -1."""
        if len(self.rows) == 0:
            return np.full(len(columns.xid), -1)
        # Neighbours of one xid belong together unless a begin, an end or a gap parts them: one of each is looked up.
        starts = columns.kind == _BEGIN
        starts[1:] |= (columns.kind[:-1] == _COMMIT) | (columns.kind[:-1] == _ROLLBACK)
        starts[1:] |= (columns.xid[1:] != columns.xid[:-1]) | (position[1:] != position[:-1] + 1)
        starts[:1] = True
        first = np.flatnonzero(starts)
        xid, at = columns.xid[first], position[first]
        rank = np.minimum(np.searchsorted(self.xids, xid), len(self.xids) - 1)
        row = np.searchsorted(self.keys, _key(rank, at, self.byte_range))
        row = np.minimum(row, len(self.rows) - 1)
        hit = (self.rows["xid"][row] == xid) & (self.rows["first_position"][row] <= at)
        hit &= self.rows["commit_position"][row] >= at
        return np.repeat(np.where(hit, row, -1), np.diff(np.append(first, len(columns.xid))))

    def is_aborted(self, columns: Columns, found: Array) -> Array:
        """Whether each record is of an aborted sub-transaction of its transaction."""
        if len(self.aborted_keys) == 0:
            return np.zeros(len(found), dtype=bool)
        code = np.minimum(np.searchsorted(self.aborted_subs, columns.sub_xid), len(self.aborted_subs) - 1)
        key = found * len(self.aborted_subs) + code
        at = np.minimum(np.searchsorted(self.aborted_keys, key), len(self.aborted_keys) - 1)
        hit: Array = (self.aborted_subs[code] == columns.sub_xid) & (self.aborted_keys[at] == key)
        return hit

    def undo_seq(self, found: Array) -> Array:
        """Each record's sequence number where its transaction has undone changes, 0 elsewhere."""
        if len(self.rows) == 0:
            return np.zeros(len(found), dtype=np.int64)
        row = np.maximum(found, 0)
        return np.where((found >= 0) & (self.rows["undos"][row] > 0), self.rows["seq"][row], 0)


def _neighbours(seqs: tuple[int, ...], after: int, upto: int) -> list[tuple[int, int]]:
    """Ascending sequence numbers within (after, upto] as half-open intervals of neighbours."""
    chosen = np.array([seq for seq in seqs if after < seq <= upto], dtype=np.int64)
    parts = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1) if len(chosen) else []
    return [(int(part[0]) - 1, int(part[-1])) for part in parts]


def _key(rank: Array, position: Array, byte_range: ByteRange) -> Array:
    span = byte_range.position_stop - byte_range.position
    within: Array = rank * (span + 1) + np.clip(position - byte_range.position, 0, span)
    return within
