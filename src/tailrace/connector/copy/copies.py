"""The copies of a run: what must be copied is copied beside the stream, in one of two ways.

    at once      all tables under one snapshot: the fastest, but what dies begins again. For the first copy of a lake.
    by windows   many short reads in the order of the key, each reconciled with the log: continues where it died. For a
                 table that is added, copied again, or very large.

A table without a key is copied at once in any case. A copy that has landed waits until the log gets to where it stands,
and then joins the live tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum

from tailrace.connector import events
from tailrace.connector.copy.at_once import AtOnceCopy
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.prospect import Prospect
from tailrace.connector.copy.running_copy import CopyResults, HowToCopy, RunningCopy, TableStart
from tailrace.connector.copy.window_reader import read_group
from tailrace.connector.copy.windows import WindowCopy
from tailrace.connector.copy.wishes import CopyWish, Wishes, why_not
from tailrace.connector.events import Event
from tailrace.connector.publish.applier import Applier
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import failed
from tailrace.connector.tables.source_check import TableLook
from tailrace.errors import TailraceError, TransientError
from tailrace.lake.door import TableVersion
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableState
from tailrace.source.door.codec import Codec
from tailrace.source.door.values import Problem

BACKOFF = Backoff(4.0, 60.0)
TELL_SECONDS = 1.0
"""Tables that land within this time are told of together: there may be hundreds."""


class Way(Enum):
    """How a table is copied."""

    AT_ONCE = "at once"
    BY_WINDOWS = "by windows"


class Copies:
    """Copies under way, and tables that have their rows and wait for the log. One thread calls it."""

    def __init__(
        self, how: HowToCopy, book: TableBook, look: TableLook, applier: Applier, tell: Callable[[Event], None]
    ) -> None:
        self._how = how
        self._book = book
        self._look = look
        self._applier = applier
        self._tell = tell
        self._running: dict[Way, RunningCopy] = {}
        self._rest = _Rest()
        self._news = _LandedNews(how.parts.codec, tell)
        self.wishes = Wishes()
        self.brought: dict[TableId, Growth] = {}
        """How far windows have brought each table, in its last copy."""
        self.waiting: dict[TableId, tuple[TableVersion, int | None]] = {}
        """Tables that have their rows, until the log gets to where they stand; with a transaction they surely have."""

    def step(self, reader: LogReader) -> None:
        """Take up what has ended, and begin what must be copied."""
        self._drop_unwanted()
        for way, copy in list(self._running.items()):
            self._take_up(way, copy)
        self._news.tell(is_last=not self._running)
        self._start(reader)
        for copy in self._running.values():
            copy.pause([table for table in copy.tables if self._waits(table)])
            copy.cut_short([table for table, number in copy.tables.items() if self._is_cut_short(table, number)])

    def hold(self) -> None:
        """Read nothing until the next step."""
        for copy in self._running.values():
            copy.pause(list(copy.tables))

    def why_not(self, table: TableId, condition: str | None, surrogate_key: str | None) -> str | None:
        """Why rows of a table cannot be read so; None if they can. Any thread."""
        record = self._book[table]
        return why_not(self._how.source, table, CopyWish(record.copy, surrogate_key, condition), record.text_key)

    def cancel(self) -> None:
        for copy in self._running.values():
            copy.cancel()

    @property
    def is_idle(self) -> bool:
        """Nothing is copied or waits to be, but for what is paused."""
        under_way = [
            table
            for copy in self._running.values()
            for table in copy.tables
            if not (copy.can_pause and self._waits(table))
        ]
        return not under_way and not self.waiting and all(map(self._waits, self._to_copy()))

    @property
    def waits_for(self) -> Problem | None:
        """What holds a copy up at the source."""
        return next((copy.waits_for for copy in self._running.values() if copy.waits_for), None)

    @property
    def trouble(self) -> TailraceError | None:
        """What is tried again."""
        return next((copy.trouble for copy in self._running.values() if copy.trouble), self._rest.trouble)

    def progress(self) -> list[TableProgress] | None:
        """How far the tables are that are being copied; None while none is."""
        if not self._running:
            return None
        return [table for copy in self._running.values() for table in copy.progress()]

    def needed_after(self) -> list[int]:
        """The log must keep what follows each of these transactions."""
        needed = [_needed_after(version, shown_seq) for version, shown_seq in self.waiting.values()]
        return needed + [copy.needed_after for copy in self._running.values()]

    def _drop_unwanted(self) -> None:
        """Give up what is no longer to become this copy of its table."""
        for table, (version, _) in list(self.waiting.items()):
            if not self._is_wanted(table, version.stamp.copy if version.stamp else -1):
                del self.waiting[table]
        for copy in self._running.values():
            for table, number in copy.tables.items():
                if not self._is_wanted(table, number):
                    copy.drop(table)

    def _is_wanted(self, table: TableId, copy: int) -> bool:
        record = self._book[table]
        return record.copy == copy and record.state not in (TableState.ERRORED, TableState.REMOVED)

    def _take_up(self, way: Way, copy: RunningCopy) -> None:
        # Asked before the results are taken: what comes in between is left for the next step.
        has_ended = copy.has_ended
        self._take(copy.take_results())
        if has_ended:
            del self._running[way]
            if progress := copy.progress():
                self._tell(events.SnapshotProgressed(progress))
            self._end(copy.error)

    def _take(self, results: CopyResults) -> None:
        self.brought |= results.grown
        for table, version in results.landed.items():
            record = self._book[table]
            if record.state in COPYING and version.stamp is not None and version.stamp.copy == record.copy:
                self.waiting[table] = (version, results.shown_seq)
        failures = {
            table: error
            for table, (copy, error) in results.failed.items()
            # A copy that was given up meanwhile may fail as it likes.
            if self._book[table].state in COPYING and self._book[table].copy == copy
        }
        self._book.set({table: failed(table, self._book[table], error) for table, error in failures.items()})
        self._news.add(results.landed)

    def _end(self, error: BaseException | None) -> None:
        if error is None or (isinstance(error, TransientError) and not self._how.settings.once):
            self._rest.note(error)
        else:
            raise error

    def _to_copy(self) -> list[TableId]:
        under_way = {*self.waiting, *self._applier.tables}
        under_way.update(*(copy.tables for copy in self._running.values()))
        return [table for table in self._book.of_state(*COPYING) if table not in under_way]

    def _start(self, reader: LogReader) -> None:
        chosen: dict[Way, list[TableId]] = {Way.BY_WINDOWS: [], Way.AT_ONCE: []}
        for table in self._to_copy() if self._rest.is_over else ():
            if not self._waits(table) and (way := self._way(table)) is not None:
                chosen[way].append(table)
        for way, tables in chosen.items():
            copy = self._running.get(way)
            if tables and (copy is None or copy.takes_more):
                # First the records, then the copy: a copy that no record tells of would be taken for an older one.
                starts = self._begin(tables)
                # The log's head is read before a snapshot is taken, so the snapshot shows all of it.
                copy = self._running.setdefault(way, copy or self._create(way, reader))
                copy.add(starts)

    def _way(self, table: TableId) -> Way | None:
        """How to copy a table, or to continue with it; None if it has landed already."""
        version = self._applier.opener.recover(table)
        stamp = version.stamp if version is not None else None
        if version is None or stamp is None or stamp.copy != self._book[table].copy:
            prospect, has_cut = self._prospect(table), self._applier.cut is not None
            is_by_windows = prospect.is_by_windows(self._how.settings.sizes, has_cut=has_cut)
            return Way.BY_WINDOWS if is_by_windows else Way.AT_ONCE
        if stamp.growth is not None:
            return Way.BY_WINDOWS
        # We died after it had landed and before that was written down.
        self.waiting[table] = (version, None)
        return None

    def _create(self, way: Way, reader: LogReader) -> RunningCopy:
        if way is Way.AT_ONCE:
            return AtOnceCopy(self._how, reader.refresh().seq)
        publisher = replace(self._applier.publisher, group=window_groups(self._how.parts.home)[0])
        return WindowCopy(self._how, publisher)

    def _begin(self, tables: Sequence[TableId]) -> dict[TableId, TableStart]:
        """Write down that copies begin, and under which definitions."""
        # For a table that is copied again, read the definition again: what was found before belongs to the old copy.
        again = [table for table in tables if self._book[table].relation and self._book[table].definition is None]
        with suppress(TransientError):
            # Without an answer, the definition that is known may have the table copied once more.
            self._look.defined |= self._how.source.define(self._how.claim, dict.fromkeys(again)) if again else {}
        self._book.set({table: self._prospect(table).begun(self._how.parts.codec) for table in tables})
        return {table: self._prospect(table).start() for table in tables}

    def _prospect(self, table: TableId) -> Prospect:
        record = self._book[table]
        return Prospect(
            record,
            self._look.defined.get(table),
            self._how.settings.snapshot_mode,
            self.wishes.of(table),
            self._is_cut_short(table, record.copy),
            self._look.rows_estimated.get(table, 0),
            self._look.bytes_estimated.get(table, 0),
        )

    def _is_cut_short(self, table: TableId, copy: int) -> bool:
        return self.wishes.is_cut_short(table, copy)

    def _waits(self, table: TableId) -> bool:
        return self.wishes.is_waiting(table, self._book[table].copy)


class _Rest:
    """The pause after a copy that ended with a passing error, longer each time."""

    def __init__(self) -> None:
        self._failures = 0
        self._due = 0.0
        self.trouble: TransientError | None = None

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._due

    def note(self, error: TransientError | None) -> None:
        """How a copy ended."""
        self._failures = self._failures + 1 if error else 0
        self.trouble = None
        if error is not None:
            seconds = BACKOFF.seconds(self._failures)
            self._due = time.monotonic() + seconds
            self.trouble = TransientError(f"{error.message}; copying again in {seconds:.0f} s", error.hint)


class _LandedNews:
    """Tables that have landed, until that is told."""

    def __init__(self, codec: type[Codec], tell: Callable[[Event], None]) -> None:
        self._codec = codec
        self._tell = tell
        self._untold: dict[TableId, SourcePosition] = {}
        self._due = 0.0

    def add(self, landed: Mapping[TableId, TableVersion]) -> None:
        self._untold |= {table: version.stamp.position for table, version in landed.items() if version.stamp}

    def tell(self, *, is_last: bool) -> None:
        """All of them together, now and then, and when no copy is left."""
        if self._untold and (is_last or time.monotonic() >= self._due):
            at = max(self._untold.values())
            self._tell(events.TablesLanded(list(self._untold), self._codec.format(at) if at.ordinal else None))
            self._untold.clear()
            self._due = time.monotonic() + TELL_SECONDS


def _needed_after(version: TableVersion, shown_seq: int | None) -> int:
    """The last transaction that a table which waits to join is sure to have."""
    assert version.stamp is not None
    return shown_seq or 0 if version.stamp.seq is None else version.stamp.seq


def window_groups(home: LakeHome) -> list[str]:
    """The jobs of copies by windows: those that publish rows, and those that read them."""
    return [f"tailrace {home.lake} windows", read_group(home.windows)]
