"""The transaction index on the reader's side: every finished transaction that the log still holds.

Sequence numbers are dense and each segment's header says with which one it starts, so a transaction is found by
arithmetic, and it is known how many a sealed segment must have: fewer are damage, never an end. Of the last segment
the rows are seen that are whole. Rows are read in portions, so that a long log costs no more memory than a short one.
"""

from __future__ import annotations

import bisect
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tailrace.errors import DamageError, DefiniteError
from tailrace.log.files.layout import index_path, put_aside, segment_path, segment_positions
from tailrace.log.files.record import Array
from tailrace.log.files.segment import SegmentGoneError, SegmentHeader, SegmentReader
from tailrace.log.index.details import detail_column, list_words, split_details
from tailrace.log.index.index import TRANSACTION, list_owners, load_rows, sound_transactions

T = TypeVar("T")

PORTION_ROWS = 1 << 16
PORTION_WORDS = 1 << 20
"""How many rows are read at a time, and about how many words of their lists."""
NEWEST_ROWS = 1 << 10
_SHOWN = (
    *("seq", "xid", "commit_ordinal", "end_ordinal", "commit_time_us", "first_position", "commit_position"),
    *("changes", "bytes"),
)
"""Columns of the index that `transaction_table` passes on as they are."""
_NO_ROWS = np.zeros(0, dtype=TRANSACTION)
_NO_LISTS = np.zeros(0, dtype=np.uint64)


class TransactionIndex:
    """The index over the segments that were there when it was made."""

    def __init__(self, path: Path, portion_words: int = PORTION_WORDS) -> None:
        self.path = path
        self._portion_words = portion_words
        self.positions = segment_positions(path)
        self._headers: dict[int, SegmentHeader] = {}

    def header(self, position: int) -> SegmentHeader:
        if position not in self._headers:
            with SegmentReader(segment_path(self.path, position)) as segment:
                self._headers[position] = segment.header()[0]
        return self._headers[position]

    def read(self, after: int, upto: int, with_details: bool = False) -> tuple[Array, Array]:
        """Rows with after < seq <= upto, and their lists' values in the same order, details only if asked for.

        DefiniteError when one of them is not there.
        """
        found = list(self.portions(after, upto, with_details))
        rows = np.concatenate([_NO_ROWS, *(part[0] for part in found)])
        if len(rows) != max(0, upto - after):
            if self.positions and not segment_path(self.path, self.positions[-1]).exists():
                raise SegmentGoneError(segment_path(self.path, self.positions[-1]))
            message = f"the log in {self.path} holds only {len(rows)} of the transactions {after + 1} to {upto}"
            if self.positions and after >= self.header(self.positions[0]).base.seq:
                raise DamageError(message, put_aside(self.path))
            raise DefiniteError(message, f"tailrace log verify {shlex.quote(str(self.path))}")
        return rows, np.concatenate([_NO_LISTS, *(part[1] for part in found)])

    def portions(self, after: int, upto: int, with_details: bool = False) -> Iterator[tuple[Array, Array]]:
        """The same bit by bit; ends early where the last segment's index does."""
        for position in self._between(after, upto):
            base = self.header(position).base.seq
            low, high = max(after, base), min(upto, self._last_seq(position))
            while low < high:
                rows, lists = self._sound_rows(position, low - base, min(high - low, PORTION_ROWS))
                if len(rows) == 0:
                    break
                yield rows, lists if with_details else split_details(rows, lists)[0]
                low += len(rows)
            if low < high and position != self.positions[-1]:
                raise self._damage(position, low - base)

    def newest(self) -> int:
        """The last sequence number that can be seen."""
        base = self.header(self.positions[-1]).base.seq
        return base + sum(len(rows) for rows, _ in self.portions(base, 1 << 62))

    def row(self, seq: int) -> Array:
        return self.read(seq - 1, seq)[0]

    def first_position_between(self, after: int, upto: int) -> int:
        """Where the oldest record lies of all these finished transactions; far away when there is none.

        DefiniteError when one of them is not there: it may be the one that counts.
        """
        after = max(after, self.header(self.positions[0]).base.seq)
        oldest, seen = 1 << 62, 0
        for rows, _ in self.portions(after, upto):
            oldest = min(oldest, int(rows["first_position"].min()))
            seen += len(rows)
        if seen < upto - after:
            raise self._damage(self.positions[-1], after + seen - self.header(self.positions[-1]).base.seq)
        return oldest

    def oldest_seq(self) -> int:
        """The first transaction from which on every one is wholly here."""
        start = self.positions[0]
        oldest = self.header(start).base.seq + 1
        for position in self.positions:
            header = self.header(position)
            if header.base.floor >= start:
                break
            for rows, _ in self.portions(header.base.seq, self._last_seq(position)):
                cut = rows["seq"][rows["first_position"] < start]
                oldest = max(oldest, int(cut.max(initial=0)) + 1)
        return oldest

    def newest_at(self, column: str, value: int, upto: int) -> int:
        """The newest seq up to `upto` whose `column`, which never falls, is at most `value`."""
        base = self.header(self.positions[0]).base.seq
        # Mostly asked for what has just been logged: one read of the newest rows tells.
        last = max(base, upto - NEWEST_ROWS)
        newest = self.read(last, upto)[0][column]
        if len(newest) and newest[0] <= value:
            return last + int(newest.searchsorted(value, side="right"))
        return base + bisect.bisect_right(
            range(base + 1, last + 1), value, key=lambda seq: int(self.row(seq)[column][0])
        )

    def position_stop(self, position: int) -> int:
        """Where the segment ends; far away for the last one."""
        following = bisect.bisect_right(self.positions, position)
        return self.positions[following] if following < len(self.positions) else 1 << 62

    def _last_seq(self, position: int) -> int:
        stop = self.position_stop(position)
        return self.header(stop).base.seq if stop < 1 << 62 else 1 << 62

    def _between(self, after: int, upto: int) -> list[int]:
        """Segments in which transactions of this range may have committed."""
        if after >= upto:
            return []
        start = bisect.bisect_right(self.positions, after, key=lambda position: self.header(position).base.seq)
        stop = bisect.bisect_left(self.positions, upto, key=lambda position: self.header(position).base.seq)
        return self.positions[max(0, start - 1) : stop]

    def _sound_rows(self, position: int, skip: int, count: int) -> tuple[Array, Array]:
        """The segment's rows from the given one on, up to the first that is not as it was written; their lists."""
        rows = load_rows(index_path(self.path, position, ".transactions"), TRANSACTION, skip, count)
        if len(rows) == 0:
            return rows, _NO_LISTS
        start = int(rows["lists_start"][0])
        ends = rows["lists_start"] + list_words(rows) - start
        # Long details make a shorter portion.
        rows = rows[: max(1, int(np.searchsorted(ends, self._portion_words, side="right")))]
        words = int(ends[len(rows) - 1])
        # A torn last row says nonsense here; then all lists are looked at.
        words = words if words >= 0 else 1 << 48
        lists = load_rows(index_path(self.path, position, ".lists"), np.dtype("<u8"), start, words)
        sound = rows[: sound_transactions(rows, lists)]
        return sound, lists[: int(list_words(sound).sum())]

    def _damage(self, position: int, row: int) -> DefiniteError:
        if not segment_path(self.path, position).exists():
            return SegmentGoneError(segment_path(self.path, position))
        return index_damage(self.path, position, ".transactions", row * TRANSACTION.itemsize)


def steady(index: TransactionIndex, look: Callable[[TransactionIndex], T]) -> tuple[TransactionIndex, T]:
    """What `look` finds; looks again, at the segments that are left, when retention has removed one meanwhile."""
    while True:
        try:
            return index, look(index)
        except SegmentGoneError:
            left = TransactionIndex(index.path)
            if left.positions[:1] in ([], index.positions[:1]):
                raise
            index = left


def index_damage(path: Path, position: int, suffix: str, offset: int) -> DefiniteError:
    """An index file that must be longer than it is."""
    file = index_path(path, position, suffix)
    hint = f"tailrace log rebuild-index {shlex.quote(str(path))}"
    return DamageError(f"index {file} is damaged at byte {offset}", hint)


def transaction_table(rows: Array, lists: Array) -> pa.Table:
    """Rows of the index and their lists, details included, as a table for others to read."""
    lists, details = split_details(rows, lists)
    _, is_aborted = list_owners(rows)
    columns = {name: pa.array(np.ascontiguousarray(rows[name])) for name in _SHOWN}
    columns["relations"] = _list_column(rows["relations"], lists[~is_aborted]).cast(pa.list_(pa.uint32()))
    columns["streamed"] = pa.array(rows["streamed"] != 0)
    columns["aborted"] = _list_column(rows["aborted"], lists[is_aborted])
    columns["detail"] = detail_column(rows, details)
    return pa.table(columns)


def _list_column(counts: Array, values: Array) -> pa.ListArray:
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
