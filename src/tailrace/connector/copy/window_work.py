"""The work of a copy by windows, in one thread, with one more that reads ahead:

    begin   an empty version of a new copy, at the last transaction such that it and all before it show in one state
    read    the next rows of the tables, under another brief state; while the rows before are being published
    grow    follow the log to that state, reconcile the rows with what it did not show, publish them
    land    no row is missing: the table can join the others

What survives a crash is in each table's newest version: the rows, and how far they go. At most one window is read
again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from tailrace.connector.copy.growing_table import Unseen
from tailrace.connector.copy.running_copy import HowToCopy
from tailrace.connector.copy.window_publisher import WindowPublisher, durably
from tailrace.connector.copy.window_reader import Window, WindowReader, WindowSizes
from tailrace.connector.copy.window_start import WindowStarter, was_stopped
from tailrace.connector.copy.window_tables import WindowTable, WindowTables
from tailrace.connector.messages import beside
from tailrace.connector.publish.batch import Batch, Publisher
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.source.door.values import Problem
from tailrace.stop import Stop

PAUSED_SECONDS = 1.0
LOG_SECONDS = 0.02
"""How often the log is looked at that has yet to get somewhere."""
STUCK_SECONDS = 15.0

logger = logging.getLogger(__name__)


class GivenUpError(TransientError):
    """A table could not be read for so long that a run which is to end by itself ends."""


class WindowWork:
    """One thread calls `run`; any may look at what is public."""

    def __init__(self, how: HowToCopy, publisher: Publisher, tables: WindowTables) -> None:
        self._how = how
        self._tables = tables
        self._publisher = WindowPublisher(publisher)
        self._starter = WindowStarter(how.parts, how.source, how.claim)
        engine, home = how.parts.engine, how.parts.home
        self._reader = WindowReader(how.source, how.claim, engine, home.windows, WindowSizes.of(how.settings))
        self.stop = Stop(how.stop)
        self.trouble: TransientError | None = None
        """What is tried again. Over when a round of the work has been done."""
        self.waits_for: Problem | None = None
        """What holds it up at the source."""
        self.settled: int | None = None
        """Every transaction up to this one shows in every state from now on."""

    def run(self) -> None:
        """Until every table has landed or failed. Called again after a transient error, it begins again from what the
        lake has."""
        for table in self._tables.growing:
            self._tables.begin_again(table)
        log = LogReader(self._how.parts.home.log)
        if tables := self._tables.growing:
            # A log at its quota gets no further before tables have what it keeps for them.
            self._stamp(log, self._settle(log), tables, at_once=True)
        window: Window | None = None
        try:
            while self._has_work():
                self._begin(log, has_read=window is not None)
                ahead = beside(self._read)
                try:
                    if window is not None:
                        self._grow(log, window)
                finally:
                    if window is not None:
                        window.forget()
                    window = None
                    window = ahead.result()
                self.trouble = None
                if window is None and not self._tables.readable() and (tables := self._tables.growing):
                    # Without anything to read, the log need not keep what the tables can have.
                    self._stamp(log, self._settle(log), tables)
                    self.stop.wait(PAUSED_SECONDS)
        finally:
            if window is not None:
                window.forget()

    def _has_work(self) -> bool:
        self.stop.check()
        for table in self._tables.forget_unwanted():
            if table.grown.growth.condition is None:
                self._tables.fail(table, was_stopped(table.grown.table))
            else:
                self._tables.cut(table)
        return not self._tables.end_if_done()

    def _pause(self, seconds: float) -> None:
        self.stop.check()
        self.stop.wait(seconds)

    def _wait(self, problem: Problem | None) -> None:
        """A `Waiting` of the source's door."""
        self.waits_for = problem or self.waits_for
        self.stop.check()

    def _begin(self, log: LogReader, *, has_read: bool) -> None:
        """Let new tables grow: from where they stand, if their copy was begun before, or from nothing."""
        new = self._tables.new()
        if not new:
            return
        self._tables.admit(new, self._starter.resume(log, new))
        fresh = {table: start for table, start in self._tables.new().items() if new.get(table) == start}
        if fresh:
            if not has_read:
                # Rows that are read and not in the lake yet may not show what every later state does.
                self._settle(log)
            # A table that has not begun does not need transactions that every later state shows. One of which rows
            # stay continues from an older cut, and needs more.
            self._tables.note_fresh([table for table, start in fresh.items() if start.condition is None])
            wait = partial(await_log, log, wait=self._pause)
            self._tables.admit(fresh, self._starter.begin(log, fresh, self._wait, wait))
            self.waits_for = None

    def _settle(self, log: LogReader) -> int:
        """Ask the source what it shows. Returns the log's last transaction."""
        view = self._how.source.view()
        # After the view: the log may have more than it shows, and nothing that it shows is missed.
        unseen = Unseen.between(self._how.parts.codec, log, view, (self._after(log), log.refresh().seq))
        self.settled = unseen.settled
        return unseen.upto

    def _after(self, log: LogReader) -> int:
        """Transactions up to this one need not be looked at: every state shows them."""
        return self.settled if self.settled is not None else log.oldest_seq - 1

    def _read(self) -> Window | None:
        """The next window; None where all is read that may be read now."""
        wanted = self._tables.readable()
        if not wanted:
            return None
        try:
            window = self._reader.read(wanted, self._wait)
        except (DefiniteError, TransientError) as error:
            asked = next((rows for rows in wanted if str(rows.table) == error.table), None)
            if asked is None:
                raise
            # A table that was rewritten while it was read must not hold up the others.
            table = self._tables.find(asked)
            if table is not None and isinstance(error, TransientError):
                self._rest(table, error)
            elif table is not None:
                self._tables.fail(table, error)
            return None
        self.waits_for = None
        self._tables.note_read(window)
        return window

    def _rest(self, table: WindowTable, error: TransientError) -> None:
        logger.warning("window read again", extra={"table": str(table.grown.table), "reason": error.message})
        settings = self._how.settings
        self._tables.rest(table, error, settings.retries.window)
        if settings.once and time.monotonic() - table.rests_since > settings.retries.patience_seconds:
            raise GivenUpError(error.message, error.hint, error.table)

    def _grow(self, log: LogReader, window: Window) -> None:
        """Put a window into the lake. A table that fails is given up, or begins again where the lake has it: the window
        that is being read meanwhile is then not for it."""
        await_log(log, window.position, self._pause)
        stretch = self._after(log), log.seq_at(window.position.ordinal)
        point, codec = window.point, self._how.parts.codec
        unseen = Unseen.between(codec, log, point.view, stretch, is_exact=point.is_exact)
        failpoint("window.read")
        for asked, reason in window.failed:
            if table := self._tables.find(asked):
                self._tables.fail(table, reason)
        chosen = {
            name: (table, part)
            for name, part in window.tables.items()
            if (table := self._tables.find(part.asked)) is not None
        }
        # Not where `upto` committed: no transaction of the log has what was done before changes were sent.
        batch = Batch.read(log, unseen.upto, window.position, [table.grown for table, _ in chosen.values()])
        windows = {name: (table.grown, part) for name, (table, part) in chosen.items()}
        for name, error in self._publisher.add(batch, windows, unseen).items():
            table, part = chosen[name]
            if self._settle_outcome(table, error):
                table.note_added(part)
        # Their turn has not come yet. What is read of them meanwhile is read under a later state than this window.
        self._stamp(log, unseen.upto, [table for table in self._tables.growing if self._is_to_stamp(table)])
        # Only now: until here, tables might have had to begin again before it.
        self.settled = unseen.settled

    def _is_to_stamp(self, table: WindowTable) -> bool:
        return time.monotonic() - table.stamped_at > self._how.settings.retries.restamp_seconds

    def _stamp(self, log: LogReader, upto: int, tables: Sequence[WindowTable], *, at_once: bool = False) -> None:
        """Bring tables to a transaction, without more rows. Their stamps say so at once, or after a while."""
        if not tables:
            return
        self.stop.check()
        growing = [table.grown for table in tables]
        batch = Batch.read(log, upto, log.position_of(upto), growing)
        errors = self._publisher.publisher.bring(growing, batch)

        def stamp(table: WindowTable) -> None:
            if table.grown.seq == upto and (at_once or self._is_to_stamp(table)):
                table.grown.restamp(batch.position)
                table.stamped_at = time.monotonic()

        for table in tables:
            error = errors[table.grown.table] or durably(table.grown, partial(stamp, table))
            self._settle_outcome(table, error)

    def _settle_outcome(self, table: WindowTable, error: TailraceError | None) -> bool:
        """What becomes of a table whose part was done, or failed: an error is the table's own."""
        if error is None:
            # Its version is durable by now: the log may forget what the table has.
            if self._tables.note_grown(table):
                failpoint("window.landed")
        elif isinstance(error, TransientError):
            # From where the lake has it, after a while: what was in the way may last, and is no reason to give up.
            self._tables.begin_again(table)
            self._rest(table, error)
        else:
            logger.warning("window failed", extra={"table": str(table.grown.table), "reason": error.message})
            self._tables.fail(table, error)
        return error is None


def await_log(reader: LogReader, position: SourcePosition, wait: Callable[[float], None]) -> None:
    """Until capture has got there; it does so also when nothing is ever committed again."""
    moved_at, head = time.monotonic(), reader.refresh().ordinal
    while head < position.ordinal:
        wait(LOG_SECONDS)
        ordinal = reader.refresh().ordinal
        if ordinal > head:
            moved_at, head = time.monotonic(), ordinal
        elif time.monotonic() - moved_at > STUCK_SECONDS:
            # Perhaps the log is at its quota because of what these rows need of it: without them, it may continue.
            raise TransientError("the log does not reach the position at which the rows were read")
