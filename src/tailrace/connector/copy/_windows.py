"""Copies by windows, made in a thread beside the stream: short reads, no slot, nothing written to the source.

    begin   an empty version of a new copy, at the last transaction such that it and all before it show in one state
    read    the next rows of the tables, under another brief state; while the rows before are being published
    grow    follow the log to that state, reconcile the rows with what it did not show, publish them
    land    no row is missing: the table can join the others

What survives a crash is in each table's newest version: the rows, and how far they go. One group at most is read again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np

from tailrace.connector.copy._full_snapshot import CancelledError
from tailrace.connector.copy._growing_table import Unseen
from tailrace.connector.copy._window_publisher import Adding, durably
from tailrace.connector.copy._window_reader import WindowReader, WindowSizes
from tailrace.connector.copy._window_start import Beginning, Begun, Start, begin, resume, unseen, was_stopped
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.read_ahead import (
    PATIENCE_SECONDS,
    GivenUpError,
    ReadGroup,
    ReadTable,
    await_log,
    beside,
)
from tailrace.connector.messages import owned
from tailrace.connector.publish.applier import LakeParts
from tailrace.connector.publish.batch import Batch, Publisher
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import TableVersion
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim, Problem, View

CANCEL_SECONDS = 10.0
PAUSED_SECONDS = 1.0
BACKOFF = Backoff(2.0, 30.0)

logger = logging.getLogger(__name__)


class WindowCopy:
    """Copies of some tables, under way. The thread that made it may ask and tell; one more does the work."""

    def __init__(
        self, parts: LakeParts, source: Source, claim: Claim, settings: ConnectorSettings, publisher: Publisher
    ) -> None:
        self._parts = parts
        self._adding = Adding(publisher)
        self._beginning = Beginning(parts, source, claim)
        sizes = WindowSizes(settings.readers_max, settings.sizes.window_bytes, settings.window_rows)
        self._windows = WindowReader(source, claim, parts.engine, parts.home.windows, sizes)
        self._once, self._retries = settings.once, settings.retries
        self._lock = threading.Lock()
        self._new: dict[TableId, Start] = {}
        self._fresh: set[TableId] = set()
        """Those of the new ones that have nothing yet: they will begin after what is settled."""
        self._unwanted: set[TableId] = set()
        self._tables: dict[TableId, ReadTable] = {}
        self._paused: set[TableId] = set()
        self._cut_short: set[TableId] = set()
        self._is_ending, self._stopping = False, threading.Event()
        self._settled: int | None = None
        """Every transaction up to this one shows in every state from now on."""
        self._landed: dict[TableId, TableVersion] = {}
        self.brought: dict[TableId, Growth] = {}
        """How far each table is, whole or not."""
        self._failed: dict[TableId, tuple[int, TailraceError]] = {}
        self.trouble: TailraceError | None = None
        """What is tried again."""
        self._waits_for: Problem | None = None
        self.error: BaseException | None = None
        """What ended it."""
        self._thread = threading.Thread(target=owned(self._run), name="windows", daemon=True)

    def add(self, tables: Mapping[TableId, Start]) -> None:
        """Copy these tables too. Nothing happens if it is ending: they are left for another one."""
        with self._lock:
            if self._is_ending:
                return
            self._new |= tables
            self._unwanted -= set(tables)
        if not self._thread.ident:
            self._thread.start()

    def drop(self, table: TableId) -> None:
        """What is there of this copy is no longer wanted."""
        with self._lock:
            self._new.pop(table, None)
            self._unwanted.add(table)

    def cut_short(self, tables: Collection[TableId]) -> None:
        """Read no more of these. One that has rows for all that were not read becomes whole, any other fails."""
        with self._lock:
            self._cut_short = set(tables)

    def pause(self, tables: Collection[TableId]) -> None:
        """Read nothing more of these for now, and of no others than these; they still follow the log."""
        with self._lock:
            self._paused = set(tables)

    @property
    def tables(self) -> dict[TableId, int]:
        """The tables under way, with the numbers of their copies."""
        with self._lock:
            under_way = {table: each.grown.copy for table, each in self._tables.items() if table not in self._unwanted}
            return {**under_way, **{table: start.copy for table, start in self._new.items()}}

    @property
    def waits_for(self) -> Problem | None:
        """What holds it up at the source, or one of its tables."""
        with self._lock:
            held_up = [each.problem for each in self._tables.values() if each.problem is not None]
        return self._waits_for or next(iter(held_up), None)

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    @property
    def needed_after(self) -> int:
        """The log must keep every transaction after this."""
        with self._lock:
            found = [each.grown.durable_seq for each in self._tables.values()]
            found += [version.stamp.seq or 0 for version in self._landed.values() if version.stamp]
            found += [0 for table in self._new if table not in self._fresh]
            return min([self._settled if self._settled is not None else 0, *found])

    def taken(self) -> tuple[dict[TableId, TableVersion], dict[TableId, tuple[int, TailraceError]]]:
        """Tables that have become whole since the last time, and tables of which this copy cannot be made. What follows
        a table that is whole is needed from the log until it has joined."""
        with self._lock:
            found = self._landed, self._failed
            self._landed, self._failed = {}, {}
        return found

    def progress(self) -> list[TableProgress]:
        with self._lock:
            tables = list(self._tables.values())
        return [each.progress() for each in tables]

    def cancel(self) -> None:
        """Returns when it has ended, or after a while. What is in the lake stays, and is continued."""
        self._stopping.set()
        if self._thread.ident:
            self._thread.join(CANCEL_SECONDS)

    # The thread.

    def _run(self) -> None:
        failures, since = 0, 0.0
        while not self._stopping.is_set():
            try:
                self._work()
                return
            except CancelledError:
                return
            except TransientError as error:
                failures = 1 if self.trouble is None else failures + 1
                since = time.monotonic() if self.trouble is None else since
                if isinstance(error, GivenUpError) or (self._once and time.monotonic() - since > PATIENCE_SECONDS):
                    self.error = error
                    return
                seconds = BACKOFF.seconds(failures)
                self.trouble = TransientError(f"{error.message}; trying again in {seconds:.0f} s", error.hint)
                logger.warning("windows tried again", extra={"reason": error.message})
                self._stopping.wait(seconds)
            except BaseException as error:
                self.error = error
                return

    def _work(self) -> None:
        """Until every table has landed or failed."""
        with self._lock:
            for each in self._tables.values():
                each.begin_again()
        reader = LogReader(self._parts.home.log)
        if self._tables:
            # A log at its quota gets no further before tables have what it keeps for them.
            self._follow(reader, at_once=True)
        read: ReadGroup | None = None
        try:
            while self._has_work():
                self._begin(reader, has_read=read is not None)
                ahead = beside(self._read)
                try:
                    if read is not None:
                        self._grow(reader, read)
                finally:
                    if read is not None:
                        read.group.forget()
                    read = None
                    read = ahead.result()
                self.trouble = None
                if read is None and self._tables and not self._readable():
                    self._follow(reader)
                    self._stopping.wait(PAUSED_SECONDS)
        finally:
            if read is not None:
                read.group.forget()

    def _has_work(self) -> bool:
        """Forgets what is not wanted any more."""
        self._check()
        with self._lock:
            for table in self._unwanted & set(self._tables):
                del self._tables[table]
            self._unwanted.clear()
            short = [self._tables[table] for table in self._cut_short & set(self._tables)]
        for each in short:
            if each.grown.growth.condition is None:
                self._fail(each, was_stopped(each.grown.table))
            elif each.grown.growth.done != each.grown.growth.last:
                with self._lock:
                    each.cut_short()
        with self._lock:
            self._is_ending = not self._tables and not self._new
            return not self._is_ending

    def _check(self) -> None:
        if self._stopping.is_set():
            raise CancelledError("stopped")

    def _pause(self, seconds: float) -> None:
        self._check()
        self._stopping.wait(seconds)

    def _wait(self, problem: Problem | None) -> None:
        """A `Waiting` of the source's door."""
        self._waits_for = problem or self._waits_for
        self._check()

    def _begin(self, reader: LogReader, *, has_read: bool) -> None:
        """Let new tables grow: from where they stand, if their copy was begun before, or from nothing."""
        with self._lock:
            new = dict(self._new)
        if not new:
            return
        self._take_in(new, resume(self._beginning, reader, new))
        with self._lock:
            fresh = {table: start for table, start in new.items() if self._new.get(table) == start}
        if fresh:
            if not has_read:
                # Rows that are read and not in the lake yet may not show what every later state does.
                self._settle(reader)
            with self._lock:
                self._fresh = {table for table, start in fresh.items() if start.condition is None}
            wait = partial(await_log, reader, wait=self._pause)
            self._take_in(fresh, begin(self._beginning, reader, fresh, self._wait, wait))
            self._waits_for = None

    def _take_in(self, new: Mapping[TableId, Start], begun: Begun) -> None:
        with self._lock:
            for table, found in begun.items():
                if self._new.get(table) != new[table]:
                    continue
                del self._new[table]
                self._fresh.discard(table)
                if isinstance(found, TailraceError):
                    self._failed[table] = new[table].copy, found
                else:
                    self._tables[table] = ReadTable(found, read_upto=found.growth.done)

    def _settle(self, reader: LogReader) -> int:
        """No new table needs what every later state shows. Returns the log's last transaction."""
        view = self._beginning.source.view()
        upto = reader.refresh().seq
        self._settled = Unseen(self._unseen(reader, view, upto), is_exact=True).settled(upto)
        return upto

    def _readable(self) -> dict[TableId, tuple[ReadTable, int]]:
        with self._lock:
            tables = {table: each for table, each in self._tables.items() if table not in self._paused}
            return {table: (each, each.beginnings) for table, each in tables.items() if each.is_to_read}

    def _read(self) -> ReadGroup | None:
        """The next group; None where all is read that may be read now."""
        chosen = self._readable()
        if not chosen:
            return None
        try:
            group = self._windows.read([each.wanted() for each, _ in chosen.values()], self._wait)
        except (DefiniteError, TransientError) as error:
            found = next((each for table, (each, _) in chosen.items() if str(table) == error.table), None)
            if found is None:
                raise
            # A table that was rewritten while it was read must not hold up the others.
            if isinstance(error, TransientError):
                self._rest(found, error)
            else:
                self._fail(found, error)
            return None
        self._waits_for = None
        with self._lock:
            for table, (each, beginnings) in chosen.items():
                if table in group.tables and each.beginnings == beginnings:
                    each.took(group.tables[table])
        return ReadGroup(group, chosen)

    def _rest(self, each: ReadTable, error: TransientError) -> None:
        logger.warning("window read again", extra={"table": str(each.grown.table), "reason": error.message})
        with self._lock:
            each.rest(error, self._retries.window)
        if self._once and time.monotonic() - each.rests_since > PATIENCE_SECONDS:
            raise GivenUpError(error.message, error.hint, error.table)

    def _grow(self, reader: LogReader, read: ReadGroup) -> None:
        """Put a group into the lake. A table that fails is given up, or begins again where the lake has it: the group
        that is being read meanwhile is then not for it."""
        group = read.group
        await_log(reader, group.position, self._pause)
        upto = reader.seq_at(group.position.ordinal)
        missed = Unseen(self._unseen(reader, group.point.view, upto), group.point.is_exact)
        failpoint("window.read")
        for table, reason in group.failed.items():
            self._fail(read.tables[table][0], reason)
        chosen = {
            table: (each, group.tables[table])
            for table, (each, beginnings) in read.tables.items()
            if table in group.tables and self._tables.get(table) is each and each.beginnings == beginnings
        }
        # Not where `upto` committed: no transaction of the log has what was done before changes were sent.
        batch = Batch.read(reader, upto, group.position, [each.grown for each, _ in chosen.values()])
        windows = {table: (each.grown, window) for table, (each, window) in chosen.items()}
        for table, error in self._adding.add(batch, windows, missed).items():
            each, window = chosen[table]
            if self._settled_with(each, error):
                each.added(window)
        # Their turn has not come yet. What is read of them meanwhile is read under a later state than this group.
        self._stamp(reader, upto, [each for each in list(self._tables.values()) if each.is_to_stamp])
        self._settled = missed.settled(upto)

    def _follow(self, reader: LogReader, *, at_once: bool = False) -> None:
        """Without anything to read, the log need not keep what the tables can have."""
        self._stamp(reader, self._settle(reader), list(self._tables.values()), at_once=at_once)

    def _stamp(self, reader: LogReader, upto: int, tables: Sequence[ReadTable], *, at_once: bool = False) -> None:
        """Bring tables to a transaction, without more rows."""
        if not tables:
            return
        self._check()
        growing = [each.grown for each in tables]
        batch = Batch.read(reader, upto, reader.position_of(upto), growing)
        errors = self._adding.publisher.bring(growing, batch)
        for each in tables:
            restamp = partial(each.restamp, upto, batch.position, at_once=at_once)
            self._settled_with(each, errors[each.grown.table] or durably(each.grown, restamp))

    def _settled_with(self, each: ReadTable, error: TailraceError | None) -> bool:
        """What becomes of a table whose part was done, or failed: an error is the table's own."""
        if error is None:
            self.brought[each.grown.table] = each.grown.growth
            self._land(each)
        elif isinstance(error, TransientError):
            self._begin_again(each, error)
        else:
            logger.warning("window failed", extra={"table": str(each.grown.table), "reason": error.message})
            self._fail(each, error)
        return error is None

    def _begin_again(self, each: ReadTable, error: TransientError) -> None:
        """From where the lake has it, after a while: what was in the way may last, and is no reason to give up."""
        with self._lock:
            each.begin_again()
        self._rest(each, error)

    def _fail(self, each: ReadTable, error: TailraceError) -> None:
        with self._lock:
            if self._tables.get(each.grown.table) is each:
                del self._tables[each.grown.table]
                self._failed[each.grown.table] = each.grown.copy, error

    def _land(self, each: ReadTable) -> None:
        """If it is whole."""
        if not each.grown.growth.is_whole:
            return
        with self._lock:
            if self._tables.get(each.grown.table) is not each:
                return
            del self._tables[each.grown.table]
            self._landed[each.grown.table] = each.grown.landed()
        failpoint("window.landed")

    def _unseen(self, reader: LogReader, view: View, upto: int) -> np.ndarray:
        after = self._settled if self._settled is not None else reader.oldest_seq - 1
        return unseen(self._parts.codec, reader, view, (after, upto))
