"""A lake table that is filled by windows and follows the log meanwhile.

What holds after every version: each row equals the source's row at the table's transaction; a row that is missing lies
in a range that no window has brought yet. So a change of a row that is not there needs nothing, and a window needs only
to bring its rows to the table's transaction: those that the state it was read under does not show yet are replayed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tailrace.changes.window_rows import Missed, Portion, Reconciled, Staged, unseen_changes
from tailrace.connector.copy._window_reader import TableWindow
from tailrace.connector.copy.growth import Growth
from tailrace.connector.publish.batch import Batch
from tailrace.connector.publish.live_table import LiveTable, Move, named
from tailrace.errors import TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import Draft, TableVersion, WritePart
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.exact import is_ours
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableSchema
from tailrace.model.text_key import TextKey
from tailrace.settings import TaskSizes


@dataclass(frozen=True)
class WindowPart:
    """What is planned for a window's rows."""

    draft: Draft
    portions: tuple[Portion, ...]
    """Work for tasks."""
    growth: Growth


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

    def expect(self, window: TableWindow, batch: Batch) -> None:
        """Before the table is brought to a batch's end for a window: it takes the shape that the window was read in. A
        transient error if it is past that already."""
        if batch.upto < self.seq:
            raise TransientError(f"{self.table} is ahead of what was read", table=str(self.table))
        if window.is_moved:
            self.move = Move(window.schema, batch.position)

    def plan_window(self, batch: Batch, window: TableWindow, unseen: Unseen, sizes: TaskSizes) -> WindowPart:
        """What is to be done with a window's rows. The table is at the batch's last transaction. A transient error when
        its shape is not the one that the window was read with."""
        self._require_standing()
        self._require_shape(window.schema)
        growth = self.growth.with_window(window.done, window.rows, window.held_seconds, window.chunks)
        # The next window is read while this one is published: the time of both counts once.
        growth = replace(growth, seconds=growth.seconds + time.monotonic() - max(window.begun, self.added_at))
        growth = growth.without_again(window.again) if window.again is not None else growth
        stamp = Stamp(batch.position, self.relation, self.copy, self.seq)
        draft = self._draft(window.schema, stamp)
        missed = unseen_changes(batch.reader, window.schema, unseen.seqs, self.decode, sizes)
        pieces = portions(window, missed, draft.write, sizes.portion_bytes, is_exact=unseen.is_exact)
        return WindowPart(draft, pieces, growth)

    def take_window(self, part: WindowPart, found: list[Reconciled]) -> None:
        """Make one version of what tasks have made of the window's rows."""
        growth, parts = part.growth, list[Any]()
        for each in found:
            growth = growth.with_again(each.again)
            parts += each.parts
        self._commit_grown(part.draft, parts, growth)
        self.is_untidy = True
        self.added_at = time.monotonic()
        failpoint("window.published")

    def _require_shape(self, schema: TableSchema) -> None:
        """The rows were read in the table's shape. It has another one when the source changed it in between."""
        present = self.stored.columns(self.standing.version)
        found = {(column.name, column.type) for column in present if not is_ours(column)}
        if found != {(column.name, column.type) for column in schema.columns}:
            raise TransientError(f"{self.table} changed its shape while it was read", table=str(self.table))

    def _draft(self, schema: TableSchema, stamp: Stamp) -> Draft:
        return self.stored.publish(schema, stamp, is_growing=True, tells_all=bool(self.growth.order))

    def _commit(self, draft: Draft, parts: list[Any], *, replaces_all: bool) -> None:
        self._commit_grown(draft, parts, self.growth, replaces_all=replaces_all)

    def _commit_grown(self, draft: Draft, parts: list[Any], growth: Growth, *, replaces_all: bool = False) -> None:
        """Rows and how far the copy is, in one version. Without a growth, the table is whole."""
        growth = growth.with_again(draft.again(parts))
        stamp = replace(draft.stamp, growth=None if growth.is_whole else growth.to_json())
        self.standing = named(draft.commit(parts, stamp, replaces_all=replaces_all), stamp)
        self.growth, self.stamp = growth, stamp


def portions(
    window: TableWindow, missed: Missed | None, write: WritePart, portion_bytes: int, *, is_exact: bool
) -> tuple[Portion, ...]:
    """A window's chunks, neighbours together as long as they are smaller than this."""
    return tuple(
        Portion(str(window.schema.table), window.schema, tuple(each), missed, write, is_exact, window.again)
        for each in _together(window.staged, portion_bytes)
    )


def _together(staged: Sequence[Staged], portion_bytes: int) -> list[list[Staged]]:
    found: list[list[Staged]] = []
    room = 0
    for each in staged:
        if each.bytes > room:
            found.append([])
            room = portion_bytes
        found[-1].append(each)
        room -= each.bytes
    return found
