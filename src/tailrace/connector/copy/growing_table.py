"""A lake table that is filled by windows and follows the log meanwhile.

What holds after every version: each row equals the source's row at the table's transaction; a row that is missing lies
in a range that no window has brought yet. So a change of a row that is not there needs nothing, and a window needs only
to bring its rows to the table's transaction: those that the state it was read under does not show yet are replayed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailrace.changes.folding import Folded
from tailrace.changes.window_rows import Missed, ReconciledPortion, Staged, WindowPortion, unseen_changes
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.window_reader import TableWindow
from tailrace.connector.publish.batch import Batch, TablePart
from tailrace.connector.publish.following_table import Follower, Move, RunRewrites
from tailrace.errors import TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import Draft, LakeTable, TableVersion, WritePart
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.rows.exact import is_ours
from tailrace.model.rows.text_key import TextKey
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes
from tailrace.source.door.codec import Codec
from tailrace.source.door.values import View

PORTION = 100_000
"""Transactions that are looked at together."""


@dataclass(frozen=True)
class Unseen:
    """The transactions of a stretch of the log that a state of the source does not show. One that waits for a standby
    is logged before any query shows it, so a state stands at no one place of the log."""

    seqs: np.ndarray
    upto: int
    """The last transaction of the stretch."""
    is_exact: bool = True
    """Otherwise some of them may be shown."""

    @classmethod
    def between(
        cls, codec: type[Codec], reader: LogReader, view: View, stretch: tuple[int, int], *, is_exact: bool = True
    ) -> Unseen:
        """Of the transactions after < seq <= upto (`stretch`)."""
        after, upto = stretch
        seqs = [np.empty(0, np.int64)]
        for first in range(after, upto, PORTION):
            transactions = reader.transactions(first, min(upto, first + PORTION))
            seqs.append(transactions.column("seq").to_numpy()[codec.unseen(view, transactions)])
        return cls(np.concatenate(seqs), upto, is_exact)

    @property
    def settled(self) -> int:
        """The last transaction such that it and all before it are shown."""
        return int(self.seqs.min()) - 1 if len(self.seqs) else self.upto


@dataclass(frozen=True)
class WindowPart:
    """What is planned for a window's rows."""

    draft: Draft
    portions: tuple[WindowPortion, ...]
    """Work for tasks."""
    growth: Growth


@dataclass
class GrowingTable(Follower):
    """One thread at a time."""

    growth: Growth
    text_key: TextKey | None = None
    """What of its key this copy has as text."""
    durable_seq: int = 0
    """The table needs nothing of the log up to this transaction again, whatever happens to us."""
    added_at: float = 0.0
    """When the last window was published, on the clock that only runs forwards."""

    def landed(self) -> TableVersion:
        """The version that has every row."""
        return self.following.newest()

    def make_durable(self) -> None:
        super().make_durable()
        # Not its own number: who opens the table after a crash knows the stamp alone.
        self.durable_seq = self.following.standing.stamp.seq or 0

    def plan(self, batch: Batch, sizes: TaskSizes) -> TablePart:
        """Its part of a batch. Whether its rows came from parts of the table that are gone is asked when it has all of
        them and joins the live tables: the source is not looked at for these batches."""
        return self.following.plan(batch, self.following.logged_in(batch, sizes), sizes, self._open_draft)

    def take(self, part: TablePart, folded: Folded, upto: int, rewrite: RunRewrites) -> None:
        """Make one version of what tasks have written, if they have written any; then take the shape of the move."""
        if part.draft is not None and not folded.is_nothing:
            parts = self.following.parts_of(part.draft, folded, rewrite)
            self._commit(part.draft, parts, self.growth, replaces_all=folded.is_truncated)
            failpoint("publish.table")
        self.following.reach(upto, part.move)

    def restamp(self, position: SourcePosition) -> None:
        """Where nothing concerned the table for a while, its stamp is old. With this it says how far the table is, and
        the log need not keep what is before that."""
        stamp = self.following.standing.stamp
        if stamp.seq != self.seq:
            self.following.restamp(replace(stamp, position=position, seq=self.seq))

    def expect(self, window: TableWindow, batch: Batch) -> None:
        """Before the table is brought to a batch's end for a window: it takes the shape that the window was read in. A
        transient error if it is past that already."""
        if batch.upto < self.seq:
            raise TransientError(f"{self.table} is ahead of what was read", table=str(self.table))
        if window.is_moved:
            self.following.move = Move(window.schema, batch.position)

    def plan_window(self, batch: Batch, window: TableWindow, unseen: Unseen, sizes: TaskSizes) -> WindowPart:
        """What is to be done with a window's rows. The table is at the batch's last transaction. A transient error when
        its shape is not the one that the window was read with."""
        self.following.require_standing()
        self._require_shape(window.schema)
        growth = self.growth.with_window(window.done, window.rows, window.held_seconds, window.chunks)
        # The next window is read while this one is published: the time of both counts once.
        growth = replace(growth, seconds=growth.seconds + time.monotonic() - max(window.begun, self.added_at))
        growth = growth.without_again(window.again) if window.again is not None else growth
        draft = self._open_draft(window.schema, Stamp(batch.position, self.relation, self.copy, self.seq))
        missed = unseen_changes(batch.reader, window.schema, unseen.seqs, self.following.codec.decode, sizes)
        pieces = portions(window, missed, draft.write, sizes.portion_bytes, is_exact=unseen.is_exact)
        return WindowPart(draft, pieces, growth)

    def take_window(self, part: WindowPart, results: list[ReconciledPortion]) -> None:
        """Make one version of what tasks have made of the window's rows."""
        growth, parts = part.growth, list[Any]()
        for reconciled in results:
            growth = growth.with_again(reconciled.again)
            parts += reconciled.parts
        self._commit(part.draft, parts, growth)
        self.added_at = time.monotonic()
        failpoint("window.published")

    def _require_shape(self, schema: TableSchema) -> None:
        """The rows were read in the table's shape. It has another one when the source changed it in between."""
        if not has_shape(self.following.stored, self.following.standing.version, schema):
            raise TransientError(f"{self.table} changed its shape while it was read", table=str(self.table))

    def _open_draft(self, schema: TableSchema, stamp: Stamp) -> Draft:
        return self.following.stored.publish(schema, stamp, is_growing=True, tells_all=bool(self.growth.order))

    def _commit(self, draft: Draft, parts: list[Any], growth: Growth, *, replaces_all: bool = False) -> None:
        """Rows and how far the copy is, in one version. Without a growth, the table is whole."""
        growth = growth.with_again(draft.again(parts))
        stamp = replace(draft.stamp, growth=None if growth.is_whole else growth.to_json())
        self.following.commit(draft, parts, stamp, replaces_all=replaces_all)
        # Only now: a commit that meets another writer's is tried again from the growth before.
        self.growth = growth


def has_shape(stored: LakeTable, version: int, schema: TableSchema) -> bool:
    """Whether a version has the schema's columns."""
    present = {(column.name, column.type) for column in stored.columns(version) if not is_ours(column)}
    return present == {(column.name, column.type) for column in schema.columns}


def portions(
    window: TableWindow, missed: Missed | None, write: WritePart, portion_bytes: int, *, is_exact: bool
) -> tuple[WindowPortion, ...]:
    """A window's chunks, neighbours together as long as they are smaller than this."""
    return tuple(
        WindowPortion(str(window.schema.table), window.schema, tuple(chunks), missed, write, is_exact, window.again)
        for chunks in _together(window.staged, portion_bytes)
    )


def _together(staged: Sequence[Staged], portion_bytes: int) -> list[list[Staged]]:
    groups: list[list[Staged]] = []
    room = 0
    for chunk in staged:
        if chunk.bytes > room:
            groups.append([])
            room = portion_bytes
        groups[-1].append(chunk)
        room -= chunk.bytes
    return groups
