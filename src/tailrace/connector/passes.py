"""Passes of publishing: how live tables follow the log, from one cut to the next.

    look     at the source's tables, after the last transaction of the batch
    plan     what of the log is each table's                  the applier, from metadata
    engine   decode, compact, write                           one job for all tables
    commit   one version a table
    cut      all tables at one transaction

Nothing is published that no look has vouched for: what a statement does to all rows at once is not in the log.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tailrace.connector.copy.copies import Copies
from tailrace.connector.events import CutPublished, Event
from tailrace.connector.pace import due_after
from tailrace.connector.publish.applier import Applier
from tailrace.connector.run_opening import Opened
from tailrace.connector.tables.decisions import became_live, is_live
from tailrace.errors import ResyncError, TransientError
from tailrace.lake.door import TableVersion
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState

RETRY_SECONDS = 2.0


class Passes:
    """The live tables of one run, pass by pass. One thread."""

    def __init__(self, opened: Opened, applier: Applier, tell: Callable[[Event], None]) -> None:
        self._settings = opened.settings
        self._parts = opened.parts
        self._book = opened.book
        self._look = opened.look
        self._vouching = opened.vouching
        self._troubles = opened.troubles
        self._reader = opened.reader
        self._applier = applier
        self._tell = tell
        self._look_due = 0.0
        self._due = -math.inf
        """When the next publish is due."""
        self._is_held = False
        """A table that the newest cut has is ahead of the log: the next cut must have it too."""

    def look_if_due(self) -> None:
        if self._look.is_due(is_urgent=self._vouching.wants_look):
            self._take_look()

    def leave(self) -> None:
        """Tables that are no longer live, or are to be another copy, stop following the log."""
        for table, live in self._applier.tables.items():
            record = self._book[table]
            if record.state in (TableState.ERRORED, TableState.REMOVED) or record.copy != live.copy:
                self._applier.leave(table)

    def join(self, copies: Copies) -> None:
        """Tables whose position the log has got to follow it from now on."""
        head = self._reader.refresh()
        for table, (version, shown_seq) in list(copies.waiting.items()):
            stamp = version.stamp
            assert stamp is not None
            if head.ordinal >= stamp.position.ordinal:
                del copies.waiting[table]
                self._join(table, version, shown_seq)
            elif stamp.seq is None:
                # All that the log has now is older than the snapshot.
                copies.waiting[table] = (version, head.seq)
        copied = {table: version.stamp.copy for table, (version, _) in copies.waiting.items() if version.stamp}
        self._is_held = any(self._applier.is_in_cut(table, copy) for table, copy in copied.items())

    def _join(self, table: TableId, version: TableVersion, shown_seq: int | None) -> None:
        assert version.stamp is not None
        try:
            self._applier.join(self._reader, table, self._book[table], version, shown_seq)
            self._move(table)
            if version.stamp.seq is not None:
                # It has rows from the stream, and the process that published them may have died before the next look
                # at the table.
                self._applier.tables[table].require_parts(self._reader, version.stamp.seq)
            self._due = -math.inf
        except ResyncError as error:
            self._book.table_failed(table, error)

    def publish_if_due(self, final_seq: int | None) -> None:
        """One pass, if the log has more than the newest cut and it is time. `final_seq` is the last transaction that a
        run with `once` publishes, as soon as it is known."""
        head = self._reader.refresh()
        if self._is_held or self._applier.is_level(head.seq, head.ordinal):
            return
        if self._applier.has_changes(self._reader):
            # It may be due only later: Spark starts meanwhile.
            self._parts.engine.start_soon()
        if self._is_due(final_seq):
            self._publish(head.seq, final_seq)

    def _is_due(self, final_seq: int | None) -> bool:
        if not self._settings.once:
            return time.monotonic() >= self._due
        # Everything at once at the end, unless a log at its quota takes the rest only when what it has is published.
        return final_seq is not None or self._troubles.has_report

    def _publish(self, head_seq: int, final_seq: int | None) -> None:
        begun, applier = time.monotonic(), self._applier
        upto = applier.next_seq(self._reader, self._settings.batch_bytes_max)
        upto = upto if final_seq is None else min(upto, final_seq)
        # After the batch's last transaction is known: what was done to a whole table before it shows in this look.
        if not self._take_look():
            return
        # After the look: it may have sent tables away.
        self.leave()
        before = applier.cut
        cut = applier.advance(self._reader, applier.stops_at(self._reader, upto))
        every_seconds = self._settings.publish_every_seconds
        self._due = due_after(begun, time.monotonic(), every_seconds, is_behind=upto < head_seq)
        # Tables that had to follow to another shape have done so, or have left.
        self._vouching.trust(*self._look.found)
        if cut is not None:
            self._vouching.published(cut)
            took_seconds = time.monotonic() - begun
            transactions = None if before is None else max(0, cut.seq - before.seq)
            self._tell(CutPublished(cut, self._parts.codec.format(cut.position), took_seconds, transactions))
            self._make_live(cut)

    def _make_live(self, cut: PublishedCut) -> None:
        """Tables whose first cut this is. Stored after the cut: one that is in it and not LIVE yet joins again."""
        live = [each for each in self._applier.tables.values() if str(each.table) in cut.tables]
        new = [each for each in live if not is_live(self._book[each.table], each.relation)]
        self._book.set({each.table: became_live(self._book[each.table], each.relation) for each in new})

    def _take_look(self) -> bool:
        """Look at the tables; live ones that moved harmlessly are to follow. False if there was no answer: nothing is
        published until there is one."""
        if time.monotonic() < self._look_due:
            return False
        try:
            self._look.take_again(self._book.resume())
        except TransientError as error:
            self._look_due = time.monotonic() + RETRY_SECONDS
            self._troubles.looking = error
            return False
        self._troubles.looking = None
        for table in self._applier.tables:
            self._move(table)
        is_settled, mark = self._look.found
        self._vouching.trust(is_settled, mark)
        if not is_settled:
            # Live reads wait until tables have followed.
            self._due = -math.inf
        return True

    def _move(self, table: TableId) -> None:
        schema = self._look.moved(table)
        if schema is not None:
            self._applier.move(table, schema, self._look.position)
