"""The copies of a run: what must be copied is copied beside the stream, in one of two ways.

    at once      all tables under one snapshot: the fastest, but what dies begins again. For the first copy of a lake.
    by windows   many short reads in the order of the key, each reconciled with the log: continues where it died. For a
                 table that is added, copied again, or very large.

A table without a key is copied at once in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from tailrace.connector import events
from tailrace.connector.copy._at_once import RunningCopy
from tailrace.connector.copy._window_reader import read_group
from tailrace.connector.copy._window_start import Start
from tailrace.connector.copy._windows import WindowCopy
from tailrace.connector.copy.growth import Growth
from tailrace.connector.events import Event
from tailrace.connector.publish.applier import Applier, LakeParts
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import failed
from tailrace.connector.tables.source_check import TableLook
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.lake.door import TableVersion
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableRecord, TableState
from tailrace.model.text_key import text_keyed
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim, Problem

BACKOFF = Backoff(4.0, 60.0)
TELL_SECONDS = 1.0
"""Tables that land within this time are told of together: there may be hundreds."""
WINDOWS_ROWS_MIN = 20_000_000
WINDOWS_BYTES_MIN = 8 << 30
"""A table that is thought to have more rows than this, or to be larger, is never copied at once."""


@dataclass(frozen=True)
class HowToCopy:
    """From where to where."""

    parts: LakeParts
    source: Source
    claim: Claim
    settings: ConnectorSettings


class Copies:
    """Copies under way, and tables that have their rows and wait for the log. One thread calls it."""

    def __init__(
        self, how: HowToCopy, book: TableBook, look: TableLook, applier: Applier, tell: Callable[[Event], None]
    ) -> None:
        self._how = how
        self._mode = how.settings.snapshot_mode
        self._book = book
        self._look = look
        self._applier = applier
        self._tell = tell
        self._at_once: RunningCopy | None = None
        self._windows: WindowCopy | None = None
        self._publisher = replace(applier.publisher, group=window_groups(how.parts.home)[0])
        self._due = 0.0
        self._failures = 0
        self._retried: TransientError | None = None
        self._untold: dict[TableId, SourcePosition] = {}
        """Tables that have landed, which no one has been told."""
        self._tell_due = 0.0
        self.at_once: set[TableId] = set()
        """Tables that are to be copied at once, although they could be copied by windows."""
        self.surrogate_keys: dict[TableId, str] = {}
        """Tables that are to be read in the order of this column."""
        self.conditions: dict[TableId, tuple[int, str]] = {}
        """Tables of which only these rows are to be read again, in the copy of this number."""
        self.cut_short: dict[TableId, int] = {}
        """Tables of which no more rows are to be read, in the copy of this number."""
        self.brought: dict[TableId, Growth] = {}
        """How far windows have brought each table, in its last copy."""
        self.is_paused: Callable[[TableId], bool] = lambda table: False
        """Whether a copy is to wait."""
        self.waiting: dict[TableId, tuple[TableVersion, int | None]] = {}
        """Tables that have their rows, until the log gets to where they stand; with a transaction they surely have."""

    def step(self, reader: LogReader) -> None:
        """Take up what has ended, and begin what must be copied."""
        self._leave()
        self._finish_at_once()
        self._finish_windows()
        self._tell_landed()
        self._start(reader)

    def hold(self) -> None:
        """Read nothing until the next step."""
        if self._windows is not None:
            self._windows.pause(list(self._windows.tables))

    def why_not(self, table: TableId, condition: str | None, surrogate_key: str | None) -> str | None:
        """Why rows of a table cannot be read so, found by reading one of them; None if they can."""
        source = self._how.source
        found = source.describe([table]) if condition is not None or surrogate_key is not None else {}
        if table not in found or not found[table].schema.key:
            return None
        order = () if surrogate_key is None else (surrogate_key,)
        try:
            with source.window() as point:
                source.last_key(point, found[table], order)
                for chunk in source.key_chunks(point, found[table], (None, None), 1, 1, order):
                    chosen = chunk if condition is None else self._how.parts.codec.filtered(chunk, condition)
                    list(source.read_chunk(point, chosen, text_keyed(found[table].schema, self._book[table].text_key)))
        except DefiniteError as error:
            return error.message
        return None

    def cancel(self) -> None:
        for copy in (self._at_once, self._windows):
            if copy is not None:
                copy.cancel()

    @property
    def is_idle(self) -> bool:
        """Nothing is copied or waits to be, but for what is paused."""
        windows = self._windows.tables if self._windows is not None else ()
        left = [table for table in (*windows, *self._to_copy()) if not self._waits(table)]
        return self._at_once is None and not self.waiting and not left

    @property
    def waits_for(self) -> Problem | None:
        """What holds a copy up at the source."""
        return next((copy.waits_for for copy in (self._at_once, self._windows) if copy and copy.waits_for), None)

    @property
    def trouble(self) -> TailraceError | None:
        """What is tried again."""
        return (self._windows.trouble if self._windows else None) or self._retried

    def progress(self) -> list[TableProgress] | None:
        """How far the tables are that are being copied; None while none is."""
        found = [copy.progress() for copy in (self._at_once, self._windows) if copy is not None]
        return [each for progress in found for each in progress] if found else None

    def needed_after(self) -> list[int]:
        """The log must keep what follows each of these transactions."""
        needed = [_needed_after(version, shown_seq) for version, shown_seq in self.waiting.values()]
        needed += [self._at_once.head_seq] if self._at_once is not None else []
        return needed + ([self._windows.needed_after] if self._windows is not None else [])

    def _leave(self) -> None:
        """What is no longer to become this copy of its table is given up."""
        for table, (version, _) in list(self.waiting.items()):
            if not self._is_wanted(table, version.stamp.copy if version.stamp else -1):
                del self.waiting[table]
        for table, copy in self._windows.tables.items() if self._windows is not None else ():
            if not self._is_wanted(table, copy):
                assert self._windows is not None
                self._windows.drop(table)

    def _is_wanted(self, table: TableId, copy: int) -> bool:
        record = self._book[table]
        return record.copy == copy and record.state not in (TableState.ERRORED, TableState.REMOVED)

    def _to_copy(self) -> list[TableId]:
        under_way = {*self.waiting, *self._applier.tables}
        under_way |= self._at_once.tables if self._at_once is not None else set()
        under_way |= set(self._windows.tables) if self._windows is not None else set()
        return [table for table in self._book.of_state(*COPYING) if table not in under_way]

    def _start(self, reader: LogReader) -> None:
        how = self._how
        pending = [] if time.monotonic() < self._due else [t for t in self._to_copy() if not self._waits(t)]
        at_once, by_windows = [], []
        for table in pending:
            version = self._applier.recover(table)
            stamp = version.stamp if version is not None else None
            is_begun = stamp is not None and stamp.copy == self._book[table].copy
            if version is not None and stamp is not None and is_begun and stamp.growth is None:
                # We died after it had landed and before that was written down.
                self.waiting[table] = (version, None)
            elif is_begun or self._is_by_windows(table):
                by_windows.append(table)
            else:
                at_once.append(table)
        if by_windows:
            self._begin(by_windows)
            self._windows = self._windows or WindowCopy(how.parts, how.source, how.claim, how.settings, self._publisher)
            self._windows.add({table: self._start_of(table) for table in by_windows})
        if self._windows is not None:
            under_way = self._windows.tables
            self._windows.pause([table for table in under_way if self._waits(table)])
            self._windows.cut_short([table for table in under_way if self._is_cut_short(table)])
        if at_once and self._at_once is None:
            self._begin(at_once)
            records = {table: self._book[table] for table in at_once}
            self._at_once = RunningCopy(how.parts, how.source, how.settings, records, reader.refresh().seq)
            self.at_once -= set(at_once)

    def _start_of(self, table: TableId) -> Start:
        column = self.surrogate_keys.get(table)
        order = () if column is None else (column,)
        record = self._book[table]
        how = self._condition(table), not record.lacks_rows, self._is_cut_short(table)
        return Start(record.copy, order, *how)

    def _is_cut_short(self, table: TableId) -> bool:
        return self.cut_short.get(table) == self._book[table].copy

    def _waits(self, table: TableId) -> bool:
        """Its copy is paused, and there is something left of it to read."""
        return self.is_paused(table) and not self._is_cut_short(table)

    def _condition(self, table: TableId) -> str | None:
        if self._is_cut_short(table):
            return "false"
        copy, condition = self.conditions.get(table, (None, None))
        return condition if copy == self._book[table].copy else None

    def _is_by_windows(self, table: TableId) -> bool:
        schema = self._look.defined.get(table)
        if schema is None or not schema.key or table in self.at_once:
            return False
        is_late = self._applier.cut is not None or bool(self._book[table].relation)
        is_large = self._look.rows_estimated.get(table, 0) > WINDOWS_ROWS_MIN
        is_large |= self._look.bytes_estimated.get(table, 0) > WINDOWS_BYTES_MIN
        return is_late or is_large or self._mode is SnapshotMode.INCREMENTAL or self._lacks_rows(table)

    def _begin(self, tables: list[TableId]) -> None:
        """Written down as its copy begins: its definition was looked at before, so nothing that happens from now on is
        missed. That of a table which is copied again is read again: what the log told before is not of this copy."""
        again = [table for table in tables if self._book[table].relation and self._book[table].definition is None]
        with suppress(TransientError):
            # Otherwise what was told may have it copied once more.
            self._look.defined |= self._how.source.define(self._how.claim, dict.fromkeys(again)) if again else {}
        self._book.set({table: self._begun(table) for table in tables})

    def _begun(self, table: TableId) -> TableRecord:
        record, schema = self._book[table], self._look.defined.get(table)
        state = TableState.SNAPSHOTTING if record.state is TableState.PENDING else record.state
        if record.definition is not None and self._condition(table) is not None:
            # Rows that stay are as this definition has them.
            return replace(record, state=state)
        definition = self._how.parts.codec.renewed(schema.definition) if schema and schema.definition else None
        return replace(record, state=state, definition=definition, lacks_rows=self._lacks_rows(table))

    def _lacks_rows(self, table: TableId) -> bool:
        """Whether it is taken in without the rows that it has. One without a key cannot be followed so."""
        schema = self._look.defined.get(table)
        is_first = self._book[table].state in (TableState.PENDING, TableState.SNAPSHOTTING)
        return self._mode is SnapshotMode.NEVER and is_first and schema is not None and bool(schema.key)

    def _finish_at_once(self) -> None:
        if self._at_once is None or not self._at_once.is_done:
            return
        copy, self._at_once = self._at_once, None
        self._tell(events.SnapshotProgressed(copy.progress()))
        self._take(copy.snapshot.landed, copy.snapshot.failed, copy.head_seq)
        self._ended(copy.error)

    def _finish_windows(self) -> None:
        if self._windows is None:
            return
        is_done = self._windows.is_done
        self.brought |= self._windows.brought
        landed, failures = self._windows.taken()
        # What a copy failed with that was given up meanwhile does not count.
        errors = {table: error for table, (copy, error) in failures.items() if copy == self._book[table].copy}
        self._take(landed, errors, None)
        if is_done and (self._windows.error is not None or not self._windows.tables):
            copy, self._windows = self._windows, None
            self._ended(copy.error)

    def _take(
        self, landed: dict[TableId, TableVersion], errors: dict[TableId, TailraceError], shown_seq: int | None
    ) -> None:
        for table, version in landed.items():
            record = self._book[table]
            if record.state in COPYING and version.stamp is not None and version.stamp.copy == record.copy:
                self.waiting[table] = (version, shown_seq)
        failures = {table: error for table, error in errors.items() if self._book[table].state in COPYING}
        self._book.set({table: failed(table, self._book[table], error) for table, error in failures.items()})
        self._untold |= {table: version.stamp.position for table, version in landed.items() if version.stamp}

    def _tell_landed(self) -> None:
        is_last = self._windows is None and self._at_once is None
        if self._untold and (is_last or time.monotonic() >= self._tell_due):
            at = max(self._untold.values())
            text = self._how.parts.codec.format(at) if at.ordinal else None
            self._tell(events.TablesLanded(list(self._untold), text))
            self._untold.clear()
            self._tell_due = time.monotonic() + TELL_SECONDS

    def _ended(self, error: BaseException | None) -> None:
        self._failures = self._failures + 1 if error else 0
        if error is None:
            self._retried = None
        elif isinstance(error, TransientError) and not self._how.settings.once:
            seconds = BACKOFF.seconds(self._failures)
            self._due = time.monotonic() + seconds
            self._retried = TransientError(f"{error.message}; copying again in {seconds:.0f} s", error.hint)
        else:
            raise error


def _needed_after(version: TableVersion, shown_seq: int | None) -> int:
    """The last transaction that a table which waits to join is sure to have."""
    assert version.stamp is not None
    return shown_seq or 0 if version.stamp.seq is None else version.stamp.seq


def window_groups(home: LakeHome) -> list[str]:
    """The jobs of copies by windows: those that publish rows, and those that read them."""
    return [f"tailrace {home.path} windows", read_group(home.windows)]
