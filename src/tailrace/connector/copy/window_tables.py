"""The tables of a copy by windows, and where each is on its way:

    new ─▶ growing ─▶ landed      it has every row
              │  ▲
              │  └─ rests         it could not be read or published: what was read ahead is forgotten, it begins again
              └───▶ failed        this copy cannot be made

Rows are read ahead of what the lake has. Each time a table begins again, rows that were read for it before are not for
it any more: the number of the attempt tells. Nothing here reads or writes; what survives a crash is in the lake.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tailrace.connector.copy.growing_table import GrowingTable
from tailrace.connector.copy.running_copy import CopyResults, TableStart
from tailrace.connector.copy.window_reader import NextRows, TableWindow, Window
from tailrace.errors import TailraceError
from tailrace.model.backoff import Backoff
from tailrace.model.table import TableId
from tailrace.source.door.rows import Cursor
from tailrace.source.door.values import Problem


@dataclass
class WindowTable:
    """A table that grows, and what is read of it ahead of the lake."""

    grown: GrowingTable
    attempt: int
    """Another number each time that it begins again from where the lake has it."""
    read_upto: Cursor | None = None
    """How far it is read; what of it is in the lake, its growth says."""
    has_read: bool = False
    is_again_read: bool = False
    """The keys that its growth wants again are being read."""
    rests: int = 0
    """How often it could not be read or published, in a row."""
    rests_since: float = 0.0
    rests_until: float = 0.0
    """Nothing of it is read before this, on the clock that only runs forwards."""
    problem: Problem | None = None
    """Why it could not the last time."""
    stamped_at: float = field(default_factory=time.monotonic)
    """When its newest version was made, or it was taken in."""

    @property
    def is_to_read(self) -> bool:
        growth = self.grown.growth
        is_through = self.read_upto == growth.last and (self.has_read or growth.windows > 0)
        is_read = is_through and (growth.again is None or self.is_again_read)
        return not is_read and time.monotonic() >= self.rests_until

    def next_rows(self) -> NextRows:
        growth = self.grown.growth
        again = None if self.is_again_read else growth.again_next
        how = growth.order, growth.condition, self.grown.text_key
        definition = self.grown.following.definition
        return NextRows(self.grown.table, (self.read_upto, growth.last), definition, self.attempt, again, *how)

    def note_read(self, window: TableWindow) -> None:
        self.read_upto, self.has_read = window.done, True
        self.is_again_read |= window.again is not None

    def note_added(self, window: TableWindow) -> None:
        """The lake has what was read."""
        if window.again is not None:
            # Not before: until then its growth wants these keys, and they would be read twice.
            self.is_again_read = False
        self.stamped_at = time.monotonic()
        self.rests, self.problem = 0, None

    def rest(self, error: TailraceError, backoff: Backoff) -> None:
        """It could not be read or published: not again for a moment, which is longer each time."""
        self.rests += 1
        self.rests_since = self.rests_since if self.rests > 1 else time.monotonic()
        self.problem = Problem(error.message, error.hint or "it is tried again")
        self.rests_until = time.monotonic() + backoff.seconds(self.rests)

    def begin_again(self, attempt: int) -> None:
        """Forget what was read and is not in the lake."""
        self.attempt = attempt
        self.read_upto, self.has_read, self.is_again_read = self.grown.growth.done, False, False

    def cut_short(self, attempt: int) -> None:
        """Read no more of it: it has rows for all others. With one more window, of no rows, it is whole."""
        growth = self.grown.growth
        self.grown.growth = replace(growth, last=growth.done, windows=0)
        self.begin_again(attempt)


class WindowTables:
    """All of them. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: dict[TableId, TableStart] = {}
        self._fresh: set[TableId] = set()
        """Those of the new ones that have nothing yet: they will begin after what is settled."""
        self._tables: dict[TableId, WindowTable] = {}
        self._unwanted: set[TableId] = set()
        self._paused: set[TableId] = set()
        self._cut_short: set[TableId] = set()
        self._attempts = 0
        self._is_ending = False
        self._results = CopyResults()

    # What the connector's thread tells and asks.

    def add(self, tables: Mapping[TableId, TableStart]) -> bool:
        """False if the copy is ending, and takes no more."""
        with self._lock:
            if self._is_ending:
                return False
            self._new |= tables
            self._unwanted -= set(tables)
            return True

    def drop(self, table: TableId) -> None:
        with self._lock:
            self._new.pop(table, None)
            self._unwanted.add(table)

    def pause(self, tables: Collection[TableId]) -> None:
        with self._lock:
            self._paused = set(tables)

    def cut_short(self, tables: Collection[TableId]) -> None:
        with self._lock:
            self._cut_short = set(tables)

    @property
    def copies(self) -> dict[TableId, int]:
        """The tables under way, with the numbers of their copies."""
        with self._lock:
            growing = [table.grown for name, table in self._tables.items() if name not in self._unwanted]
            new = {name: start.copy for name, start in self._new.items()}
            return {grown.table: grown.copy for grown in growing} | new

    @property
    def problem(self) -> Problem | None:
        """What one of them rests for."""
        with self._lock:
            return next((table.problem for table in self._tables.values() if table.problem is not None), None)

    def needed_after(self, settled: int) -> int:
        """The log must keep every transaction after this. Fresh tables begin after `settled`, which must have been read
        before this is called: a table that has begun since is counted by itself."""
        with self._lock:
            needed = [table.grown.durable_seq for table in self._tables.values()]
            needed += [version.stamp.seq or 0 for version in self._results.landed.values() if version.stamp]
            needed += [0 for table in self._new if table not in self._fresh]
            return min([settled, *needed])

    def take_results(self) -> CopyResults:
        with self._lock:
            results, self._results = self._results, CopyResults()
            return results

    # What the threads of the copy do with them.

    @property
    def growing(self) -> list[WindowTable]:
        with self._lock:
            return list(self._tables.values())

    def new(self) -> dict[TableId, TableStart]:
        """Those that have not been started."""
        with self._lock:
            return dict(self._new)

    def note_fresh(self, tables: Collection[TableId]) -> None:
        """These begin from nothing, after what is settled."""
        with self._lock:
            self._fresh = set(tables)

    def admit(self, new: Mapping[TableId, TableStart], started: Mapping[TableId, GrowingTable | TailraceError]) -> None:
        """Let tables grow that were started, unless another copy of them is wanted by now. Those that cannot be copied
        fail."""
        with self._lock:
            for table, grown in started.items():
                if self._new.get(table) != new[table]:
                    continue
                del self._new[table]
                self._fresh.discard(table)
                if isinstance(grown, TailraceError):
                    self._results.failed[table] = new[table].copy, grown
                else:
                    self._tables[table] = WindowTable(grown, self._next_attempt(), grown.growth.done)

    def forget_unwanted(self) -> list[WindowTable]:
        """Returns those that are to be cut short."""
        with self._lock:
            for table in self._unwanted & set(self._tables):
                del self._tables[table]
            self._unwanted.clear()
            return [self._tables[table] for table in self._cut_short & set(self._tables)]

    def end_if_done(self) -> bool:
        """From then on no table is taken."""
        with self._lock:
            self._is_ending = not self._tables and not self._new
            return self._is_ending

    def readable(self) -> list[NextRows]:
        """What may be read now."""
        with self._lock:
            tables = [table for name, table in self._tables.items() if name not in self._paused]
            return [table.next_rows() for table in tables if table.is_to_read]

    def note_read(self, window: Window) -> None:
        with self._lock:
            for part in window.tables.values():
                table = self._of_attempt(part.asked)
                if table is not None:
                    table.note_read(part)

    def find(self, asked: NextRows) -> WindowTable | None:
        """The table that rows were read for; None if it has begun again since, or is gone."""
        with self._lock:
            return self._of_attempt(asked)

    def rest(self, table: WindowTable, error: TailraceError, backoff: Backoff) -> None:
        with self._lock:
            table.rest(error, backoff)

    def begin_again(self, table: WindowTable) -> None:
        with self._lock:
            table.begin_again(self._next_attempt())

    def cut(self, table: WindowTable) -> None:
        """Cut it short, if that changes anything."""
        with self._lock:
            if table.grown.growth.done != table.grown.growth.last:
                table.cut_short(self._next_attempt())

    def fail(self, table: WindowTable, error: TailraceError) -> None:
        with self._lock:
            if self._remove(table):
                self._results.failed[table.grown.table] = table.grown.copy, error

    def note_grown(self, table: WindowTable) -> bool:
        """The lake has more of it. True if it has landed."""
        with self._lock:
            self._results.grown[table.grown.table] = table.grown.growth
            if not table.grown.growth.is_whole or not self._remove(table):
                return False
            # Under the same lock: the log must keep what follows the table, whether it grows or has landed.
            self._results.landed[table.grown.table] = table.grown.landed()
            return True

    def _remove(self, table: WindowTable) -> bool:
        if self._tables.get(table.grown.table) is not table:
            return False
        del self._tables[table.grown.table]
        return True

    def _of_attempt(self, asked: NextRows) -> WindowTable | None:
        table = self._tables.get(asked.table)
        return table if table is not None and table.attempt == asked.attempt else None

    def _next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts
