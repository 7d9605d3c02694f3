"""The transaction index on the reader's side: every finished transaction that the log still holds.

Sequence numbers are dense and each segment's header says with which one it starts, so a transaction is found by
arithmetic. Rows are checked as they are read; of the last segment only those that are whole are seen.
"""

from __future__ import annotations

import bisect
from pathlib import Path

import numpy as np

from tailrace.errors import DefiniteError
from tailrace.log.index import TRANSACTION, load_rows, sound_transactions
from tailrace.log.layout import index_path, segment_path, segment_positions
from tailrace.log.record import Array
from tailrace.log.segment import SegmentHeader, SegmentReader

_NO_ROWS = np.zeros(0, dtype=TRANSACTION)
_NO_LISTS = np.zeros(0, dtype=np.uint64)


class TransactionIndex:
    """The index as of the moment it was made, plus what `extend` adds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions = segment_positions(path)
        self._headers: dict[int, SegmentHeader] = {}

    def header(self, position: int) -> SegmentHeader:
        if position not in self._headers:
            with SegmentReader(segment_path(self.path, position)) as segment:
                self._headers[position] = segment.header()[0]
        return self._headers[position]

    def read(self, after: int, upto: int) -> tuple[Array, Array]:
        """Rows with after < seq <= upto, and their lists' values in the same order.

        DefiniteError when one of them is not there.
        """
        found = [self._segment_rows(position, after, upto) for position in self._between(after, upto)]
        rows = np.concatenate([_NO_ROWS, *(part[0] for part in found)])
        if len(rows) != max(0, upto - after):
            raise DefiniteError(
                f"the log in {self.path} holds only {len(rows)} of the transactions {after + 1} to {upto}",
                f"tailrace log verify {self.path}",
            )
        return rows, np.concatenate([_NO_LISTS, *(part[1] for part in found)])

    def rows(self, after: int, upto: int) -> Array:
        """Rows with after < seq <= upto."""
        return self.read(after, upto)[0]

    def newest(self) -> int:
        """The last sequence number that can be seen."""
        last = self.positions[-1]
        base = self.header(last).base.seq
        rows, _ = self._segment_rows(last, base, 1 << 62)
        return base + len(rows)

    def row(self, seq: int) -> Array:
        return self.rows(seq - 1, seq)

    def first_position_after(self, after: int) -> int:
        """Where the oldest record lies of all finished transactions behind `after`; far away when there is none."""
        oldest = 1 << 62
        for position in self._between(max(after, self.header(self.positions[0]).base.seq), 1 << 62):
            rows, _ = self._segment_rows(position, after, 1 << 62)
            oldest = min(oldest, int(rows["first_position"].min(initial=oldest)))
        return oldest

    def oldest_seq(self) -> int:
        """The first transaction from which on every one is wholly here."""
        start = self.positions[0]
        oldest = self.header(start).base.seq + 1
        for position in self.positions:
            if self.header(position).base.floor >= start:
                break
            rows, _ = self._segment_rows(position, 0, 1 << 62)
            cut = rows["seq"][rows["first_position"] < start]
            oldest = max(oldest, int(cut.max(initial=0)) + 1)
        return oldest

    def newest_at(self, column: str, value: int, upto: int) -> int:
        """The newest seq up to `upto` whose `column`, which never falls, is at most `value`."""
        first = self.header(self.positions[0]).base.seq + 1
        count = bisect.bisect_right(range(first, upto + 1), value, key=lambda seq: int(self.row(seq)[column][0]))
        return first - 1 + count

    def _between(self, after: int, upto: int) -> list[int]:
        """Segments in which transactions of this range may have committed."""
        if after >= upto:
            return []
        start = bisect.bisect_right(self.positions, after, key=lambda position: self.header(position).base.seq)
        stop = bisect.bisect_left(self.positions, upto, key=lambda position: self.header(position).base.seq)
        return self.positions[max(0, start - 1) : stop]

    def _segment_rows(self, position: int, after: int, upto: int) -> tuple[Array, Array]:
        """The segment's sound rows in the range, and their lists."""
        base = self.header(position).base.seq
        skip = max(0, after - base)
        count = min(upto - base - skip, 1 << 48)
        rows = load_rows(index_path(self.path, position, ".transactions"), TRANSACTION, skip, count)
        if len(rows) == 0:
            return rows, _NO_LISTS
        start = int(rows["lists_start"][0])
        words = int(rows["lists_start"][-1] + rows["relations"][-1] + rows["aborted"][-1]) - start
        # A torn last row says nonsense here; then all lists are looked at.
        words = words if words >= 0 else 1 << 48
        lists = load_rows(index_path(self.path, position, ".lists"), np.dtype("<u8"), start, words)
        sound = rows[: sound_transactions(rows, lists)]
        return sound, lists[: int((sound["relations"] + sound["aborted"]).sum())]
