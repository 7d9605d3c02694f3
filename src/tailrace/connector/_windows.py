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
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from tailrace.connector._apply import FAILURES_MAX, LakeParts
from tailrace.connector._beginning import Beginning, Start, begin, unseen
from tailrace.connector._growing import GrowingTable, Unseen
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import TableVersion
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.snapshot.full import CancelledError, TableProgress
from tailrace.snapshot.windows import Group, TableWindow, Wanted, WindowReader
from tailrace.source.door import Claim, Cursor, Problem, Source, View
from tailrace.spark.task_errors import is_spark_gone, unexpected

CANCEL_SECONDS = 10.0
LOG_SECONDS = 0.02
"""How often the log is looked at that has yet to get somewhere."""
STUCK_SECONDS = 15.0
PAUSED_SECONDS = 1.0
RETRY_SECONDS = 1.0
RETRY_SECONDS_MAX = 30.0

logger = logging.getLogger(__name__)


@dataclass
class _Table:
    """A table that grows."""

    grown: GrowingTable
    rows_estimated: int
    read_upto: Cursor | None
    """How far it is read; what of it is in the lake, its growth says."""
    has_read: bool = False
    is_again_read: bool = False
    """The keys that its growth wants again are being read."""
    failures: int = 0
    """In a row."""
    beginnings: int = 0
    """What was asked for before the last of them does not count."""

    @property
    def is_read(self) -> bool:
        growth = self.grown.growth
        is_through = self.read_upto == growth.last and (self.has_read or growth.windows > 0)
        return is_through and (growth.again is None or self.is_again_read)

    def wanted(self) -> Wanted:
        """What is to be read next."""
        growth = self.grown.growth
        again = None if self.is_again_read else growth.again
        between = self.read_upto, growth.last
        which = self.grown.table, self.grown.copy
        return Wanted(*which, between, self.grown.definition, again, growth.order, growth.condition)

    def begin_again(self) -> None:
        """What was read and is not in the lake is forgotten."""
        self.read_upto, self.has_read, self.is_again_read = self.grown.growth.done, False, False
        self.beginnings += 1

    def has_asked(self, window: TableWindow) -> None:
        """A window of it was read, and is to be put into the lake next."""
        self.read_upto, self.has_read = window.done, True
        self.is_again_read |= window.again is not None


@dataclass
class _Reading:
    """A group that is being read, and for which tables as they were then."""

    group: Future[Group]
    tables: list[tuple[_Table, int]]
    """Each with its beginnings."""

    def done(self) -> Group:
        """The group, without tables that have begun again meanwhile. Raises what reading failed with."""
        group = self.group.result()
        for each, beginnings in self.tables:
            table = each.grown.table
            if each.beginnings != beginnings:
                group.tables.pop(table, None)
            elif table in group.tables:
                each.has_asked(group.tables[table])
        return group


class WindowCopy:
    """Copies of some tables, under way. The thread that made it may ask and tell; one more does the work."""

    def __init__(self, parts: LakeParts, source: Source, claim: Claim, settings: ConnectorSettings) -> None:
        self._parts = parts
        self._source = source
        self._beginning = Beginning(parts, source, claim)
        self._windows = WindowReader(
            source, claim, parts.spark, parts.home.windows, settings.readers_max, settings.window_rows
        )
        self._lock = threading.Lock()
        self._new: dict[TableId, Start] = {}
        self._unwanted: set[TableId] = set()
        self._tables: dict[TableId, _Table] = {}
        self._paused: set[TableId] = set()
        self._is_ending = False
        self._stopping = threading.Event()
        self._settled: int | None = None
        """Every transaction up to this one shows in every state from now on."""
        self._landed: dict[TableId, TableVersion] = {}
        self.brought: dict[TableId, tuple[int, int]] = {}
        """How many rows of each table are in the lake, and by how many windows; whole or not."""
        self._failed: dict[TableId, TailraceError] = {}
        self.trouble: TailraceError | None = None
        """What is tried again."""
        self.waits_for: Problem | None = None
        """What holds it up at the source."""
        self.error: BaseException | None = None
        """What ended it."""
        self._thread = threading.Thread(target=self._run, name="windows", daemon=True)

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

    def pause(self, tables: Collection[TableId]) -> None:
        """Read nothing more of these for now, and of no others than these; they go on following the log."""
        with self._lock:
            self._paused = set(tables)

    @property
    def tables(self) -> dict[TableId, int]:
        """The tables under way, with the numbers of their copies."""
        with self._lock:
            under_way = {table: each.grown.copy for table, each in self._tables.items() if table not in self._unwanted}
            return {**under_way, **{table: start.copy for table, start in self._new.items()}}

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    @property
    def needed_after(self) -> int:
        """The log must keep every transaction after this."""
        with self._lock:
            found = [each.grown.durable_seq for each in self._tables.values()]
            found += [version.stamp.seq or 0 for version in self._landed.values() if version.stamp]
            return min([self._settled if self._settled is not None else 0, *found, *(0 for _ in self._new)])

    def taken(self) -> tuple[dict[TableId, TableVersion], dict[TableId, TailraceError]]:
        """Tables that have become whole since the last time, and tables that cannot be copied. What follows a table
        that is whole is needed from the log until it has joined."""
        with self._lock:
            found = self._landed, self._failed
            self._landed, self._failed = {}, {}
        return found

    def progress(self) -> list[TableProgress]:
        with self._lock:
            tables = list(self._tables.items())
        return [
            TableProgress(table, growth.rows, *[max(each.rows_estimated, growth.rows)] * 2)
            for table, each in tables
            if (growth := each.grown.growth)
        ]

    @property
    def seconds_max(self) -> float:
        """The longest that a transaction was open at the source."""
        return self._windows.seconds_max

    def cancel(self) -> None:
        """Returns when it has ended, or after a while. What is in the lake stays, and is gone on from."""
        self._stopping.set()
        if self._thread.ident:
            self._thread.join(CANCEL_SECONDS)

    # The thread.

    def _run(self) -> None:
        failures = 0
        with ThreadPoolExecutor(1, thread_name_prefix="windows") as pool:
            while not self._stopping.is_set():
                try:
                    self._work(pool)
                    return
                except CancelledError:
                    return
                except TransientError as error:
                    failures += 1
                    seconds = min(RETRY_SECONDS * 2**failures, RETRY_SECONDS_MAX)
                    self.trouble = TransientError(f"{error.message}; trying again in {seconds:.0f} s", error.hint)
                    logger.warning("windows tried again", extra={"reason": error.message})
                    self._stopping.wait(seconds)
                except BaseException as error:
                    self.error = error
                    return

    def _work(self, pool: ThreadPoolExecutor) -> None:
        """Until every table has landed or failed. While a group is put into the lake, the next one is read."""
        for each in self._tables.values():
            each.begin_again()
        reader = LogReader(self._parts.home.log)
        read: Group | None = None
        while self._has_work():
            self._begin(reader)
            reading = self._ask(pool)
            try:
                if read is not None:
                    self._grow(reader, read)
            finally:
                read = self._answer(reading) if reading is not None else None
            self.trouble = None
            if read is None and self._tables and not self._readable():
                self._follow(reader)
                self._stopping.wait(PAUSED_SECONDS)

    def _has_work(self) -> bool:
        """Forgets what is not wanted any more."""
        self._check()
        with self._lock:
            for table in self._unwanted & set(self._tables):
                del self._tables[table]
            self._unwanted.clear()
            self._is_ending = not self._tables and not self._new
            return not self._is_ending

    def _check(self) -> None:
        if self._stopping.is_set():
            raise CancelledError("stopped")

    def _wait(self, problem: Problem | None) -> None:
        """A `Waiting` of the source's door."""
        self.waits_for = problem or self.waits_for
        self._check()

    def _begin(self, reader: LogReader) -> None:
        """Let new tables grow: from where they stand, if their copy was begun before, or from nothing."""
        with self._lock:
            new = dict(self._new)
        if not new:
            return
        begun = begin(self._beginning, reader, new, self._wait)
        self.waits_for = None
        with self._lock:
            for table, found in begun.items():
                if self._new.get(table) != new[table]:
                    continue
                del self._new[table]
                if isinstance(found, TailraceError):
                    self._failed[table] = found
                else:
                    self._tables[table] = _Table(*found, read_upto=found[0].growth.done)
        for table in begun:
            self._land(table)

    def _readable(self) -> list[_Table]:
        with self._lock:
            tables = list(self._tables.items())
            return [each for table, each in tables if table not in self._paused and not each.is_read]

    def _ask(self, pool: ThreadPoolExecutor) -> _Reading | None:
        """Begin to read the next group; None where all is read that may be read now."""
        chosen = self._readable()
        if not chosen:
            return None
        group = pool.submit(self._windows.read, [each.wanted() for each in chosen], self._wait)
        return _Reading(group, [(each, each.beginnings) for each in chosen])

    def _answer(self, reading: _Reading) -> Group | None:
        """The group, when it is read; None if a table is to blame that it could not be."""
        try:
            group = reading.done()
        except DefiniteError as error:
            table = next((e.grown.table for e, _ in reading.tables if str(e.grown.table) == error.table), None)
            if table is None:
                raise
            self._fail(table, error)
            return None
        self.waits_for = None
        return group

    def _grow(self, reader: LogReader, group: Group) -> None:
        """Put a group into the lake. A table that fails is given up, or begins again where the lake has it."""
        self._await_log(reader, group.position)
        upto = reader.seq_at(group.position.ordinal)
        missed = Unseen(self._unseen(reader, group.point.view, upto), group.point.is_exact)
        position = reader.position_of(upto)
        failpoint("window.read")
        for table, error in group.failed.items():
            self._fail(table, error)
        for table, window in group.tables.items():
            each = self._tables.get(table)
            if each is not None and each.grown.copy == window.copy:
                self._tried(table, partial(each.grown.add, reader, window, missed, upto, position))
                each.is_again_read &= window.again is None
        self._settled = missed.settled(upto)
        group.forget()

    def _follow(self, reader: LogReader) -> None:
        """Without anything to read, the log need not keep what the tables can have."""
        view = self._source.view()
        upto = reader.refresh().seq
        missed = Unseen(self._unseen(reader, view, upto), is_exact=True)
        position = reader.position_of(upto)
        for table, each in list(self._tables.items()):
            self._tried(table, partial(each.grown.apply, reader, upto, position))
        self._settled = missed.settled(upto)

    def _tried(self, table: TableId, work: Callable[[], None]) -> None:
        """One table's part; what it fails with is its own."""
        self._check()
        each = self._tables[table]
        try:
            work()
            each.grown.make_durable()
            each.failures = 0
        except TransientError as error:
            each.failures += 1
            each.begin_again()
            if each.failures >= FAILURES_MAX:
                self._fail(table, error)
            logger.warning("window read again", extra={"table": str(table), "reason": error.message})
        except TailraceError as error:
            self._fail(table, error)
        except Exception as error:
            if is_spark_gone(error):
                raise
            logger.exception("window failed", extra={"table": str(table)})
            self._fail(table, unexpected(error, str(table)))
        else:
            self.brought[table] = each.grown.growth.rows, each.grown.growth.windows
            self._land(table)

    def _fail(self, table: TableId, error: TailraceError) -> None:
        with self._lock:
            if self._tables.pop(table, None) is not None:
                self._failed[table] = error

    def _land(self, table: TableId) -> None:
        """If it is whole."""
        each = self._tables.get(table)
        if each is not None and each.grown.growth.is_whole:
            with self._lock:
                del self._tables[table]
                self._landed[table] = each.grown.landed()
            failpoint("window.landed")

    def _await_log(self, reader: LogReader, position: SourcePosition) -> None:
        """Until capture has got there; it does so also when nothing is ever committed again."""
        moved_at, head = time.monotonic(), reader.refresh().ordinal
        while head < position.ordinal:
            self._check()
            self._stopping.wait(LOG_SECONDS)
            found = reader.refresh().ordinal
            if found > head:
                moved_at, head = time.monotonic(), found
            elif time.monotonic() - moved_at > STUCK_SECONDS:
                # Perhaps the log is at its quota because of what these rows need of it: without them, it may go on.
                raise TransientError("the log does not get to where the rows were read")

    def _unseen(self, reader: LogReader, view: View, upto: int) -> np.ndarray:
        after = self._settled if self._settled is not None else reader.oldest_seq - 1
        return unseen(self._source, reader, view, (after, upto))
