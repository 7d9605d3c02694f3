"""A lake table that is filled by windows and follows the log meanwhile.

What holds after every version: each row equals the source's row at the table's transaction; a row that is missing lies
in a range that no window has brought yet. So a change of a row that is not there needs nothing, and a window needs only
to bring its rows to the table's transaction: those that the state it was read under does not show yet are replayed.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tailrace.changes.reconcile import reconciled
from tailrace.changes.tail import Tail, unseen_tail
from tailrace.connector._publishing import DRIVER_DECODED_BYTES_MAX, LiveTable, Move, named
from tailrace.errors import TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import Draft, Part, TableVersion, WritePart
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.change import row_schema
from tailrace.model.exact import is_ours, together
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableSchema
from tailrace.model.text_key import TextKey
from tailrace.snapshot.growth import Growth
from tailrace.snapshot.windows import Staged, TableWindow, read_staged
from tailrace.spark.compaction import ExecutorTail
from tailrace.spark.sharing import shared_out

SHARED_ROWS_MIN = 50_000
"""Fewer rows of a window are reconciled and written one portion after another."""
PORTION_BYTES_MIN = 8 << 20
"""Chunks that are smaller than this together are reconciled in one piece, and become one file."""


@dataclass(frozen=True)
class Unseen:
    """The transactions that a window's state does not show, of those up to the table's."""

    seqs: np.ndarray
    is_exact: bool
    """Otherwise some of them may be shown."""

    def settled(self, upto: int) -> int:
        """The last transaction up to `upto` such that it and all before it are shown."""
        return int(self.seqs.min()) - 1 if len(self.seqs) else upto


@dataclass
class GrowingTable(LiveTable):
    """One thread at a time."""

    growth: Growth = field(default_factory=lambda: Growth(None))
    durable_seq: int = 0
    """What the log has up to this transaction, the table does not need again, whatever happens to us."""
    text_key: TextKey | None = None
    """What of its key this copy has as text."""
    added_at: float = 0.0
    """When the last window was published, on the clock that only runs forwards."""

    def require_parts(self, reader: LogReader, upto: int) -> None:
        """Looks at the table are not taken for its batches. Asked when it has all its rows and follows the log."""

    def landed(self) -> TableVersion:
        """The version that has every row."""
        return TableVersion(self.standing.version, self.stamp)

    def make_durable(self) -> None:
        super().make_durable()
        # Not its own number: who opens the table after a crash knows the stamp alone.
        self.durable_seq = self.stamp.seq or 0 if self.stamp else 0

    def restamp(self, position: SourcePosition) -> None:
        """Where nothing concerned the table for a while, its stamp is old. With this it says how far the table is, and
        the log need not keep what is before that."""
        assert self.stamp is not None
        if self.stamp.seq != self.seq:
            stamp = replace(self.stamp, position=position, seq=self.seq)
            self._tried(lambda: self._restamp(stamp))

    def _restamp(self, stamp: Stamp) -> None:
        self._require_standing()
        self.standing, self.stamp = named(self.stored.restamp(stamp), stamp), stamp

    def add(self, reader: LogReader, window: TableWindow, unseen: Unseen, upto: int, position: SourcePosition) -> None:
        """Bring the table to transaction `upto` and the window's rows with it. One version for each.

        A transient error when the table's shape is not the one that the window was read with."""
        if upto < self.seq:
            raise TransientError(f"{self.table} is ahead of what was read", table=str(self.table))
        if window.is_moved:
            self.move = Move(window.schema, position)
        self.apply(reader, upto, position)
        growth = self.growth.with_window(window.done, window.rows, window.held_seconds, window.chunks)
        # The next window is read while this one is published: the time of both counts once.
        growth = replace(growth, seconds=growth.seconds + time.monotonic() - max(window.begun, self.added_at))
        growth = growth.without_again(window.again) if window.again is not None else growth
        stamp = Stamp(position, self.relation, self.copy, self.seq)
        self._tried(lambda: self._add(reader, window, unseen, growth, stamp))
        self.added_at = time.monotonic()
        failpoint("window.published")

    def _add(self, reader: LogReader, window: TableWindow, unseen: Unseen, growth: Growth, stamp: Stamp) -> None:
        self._require_standing()
        self._require_shape(window.schema)
        tail = unseen_tail(reader, window.schema, unseen.seqs, self.decode, DRIVER_DECODED_BYTES_MAX)
        staged = [] if tail is not None and tail.truncated else window.staged
        draft = self.stored.publish(window.schema, stamp, is_growing=True, tells_all=bool(self.growth.order))
        folded = self._folded(staged, _Folding(window.schema, _blob(tail), unseen.is_exact, draft.write, window.again))
        for _, again in folded:
            growth = growth.with_again(again)
        self._commit(draft, [part for part, _ in folded], growth, stamp)
        self.is_untidy = True

    def _require_shape(self, schema: TableSchema) -> None:
        """The rows were read in the table's shape. It has another one when the source changed it in between."""
        present = self.stored.columns(self.standing.version)
        found = {(column.name, column.type) for column in present if not is_ours(column)}
        if found != {(column.name, column.type) for column in schema.columns}:
            raise TransientError(f"{self.table} changed its shape while it was read", table=str(self.table))

    def _folded(self, staged: Sequence[Staged], fold: _Folding) -> list[tuple[Part, pa.Table | None]]:
        shares = portions(staged)
        if sum(each.rows for each in staged) < SHARED_ROWS_MIN:
            return [fold(each) for each in shares]
        return shared_out(self.spark, shares, len(shares), fold)

    def _fold(self, tail: Tail | ExecutorTail, schema: TableSchema, stamp: Stamp) -> None:
        draft = self.stored.publish(
            schema, stamp, replaces_all=tail.truncated, is_growing=True, tells_all=bool(self.growth.order)
        )
        self._commit(draft, tail.folded(draft.write), self.growth, stamp)

    def _commit(self, draft: Draft, parts: list[Part], growth: Growth, stamp: Stamp) -> None:
        """Rows and how far the copy is, in one version. Without a growth, the table is whole."""
        growth = growth.with_again(draft.again(parts))
        stamp = replace(stamp, growth=None if growth.is_whole else growth.to_json())
        self.standing = named(draft.commit(parts, stamp), stamp)
        self.growth, self.stamp = growth, stamp


@dataclass(frozen=True)
class _Folding:
    """Reconciles and writes some chunks; may travel to executors. Any thread."""

    schema: TableSchema
    states: bytes | None
    is_exact: bool
    write: WritePart
    wanted: pa.Table | None
    """The keys that were read again, if that is what was read."""

    def __call__(self, staged: Sequence[Staged]) -> tuple[Part, pa.Table | None]:
        states = pickle.loads(self.states) if self.states is not None else None
        rows = together([read_staged(each) for each in staged], row_schema(self.schema))
        found = reconciled(rows, states, self.schema, is_exact=self.is_exact, wanted=self.wanted)
        return self.write(found.states.to_batches()), found.again


def portions(staged: Sequence[Staged]) -> list[list[Staged]]:
    """Neighbours together, as long as they are small."""
    found: list[list[Staged]] = []
    room = 0
    for each in staged:
        if each.bytes > room:
            found.append([])
            room = PORTION_BYTES_MIN
        found[-1].append(each)
        room -= each.bytes
    return found


def _blob(tail: Tail | None) -> bytes | None:
    return None if tail is None else pickle.dumps(tail.states)
