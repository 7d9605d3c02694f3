"""What is read of growing tables, ahead of what the lake has of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tailrace.connector.copy._growing_table import GrowingTable
from tailrace.connector.copy._window_reader import Group, TableWindow, Wanted
from tailrace.connector.messages import owned
from tailrace.errors import TailraceError, TransientError
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.rows import Cursor
from tailrace.source.door.values import Problem

RESTAMP_SECONDS = 60.0
"""How old the stamp of a table may get that waits for its next rows: the log keeps what comes after it."""
PATIENCE_SECONDS = 60.0
"""How long a run that is to end by itself tries again what fails."""

LOG_SECONDS = 0.02
"""How often the log is looked at that has yet to get somewhere."""
STUCK_SECONDS = 15.0

T = TypeVar("T")


class GivenUpError(TransientError):
    """A table could not be read for so long that a run which is to end by itself ends."""


@dataclass
class ReadTable:
    """A table that grows."""

    grown: GrowingTable
    read_upto: Cursor | None
    """How far it is read; what of it is in the lake, its growth says."""
    has_read: bool = False
    is_again_read: bool = False
    """The keys that its growth wants again are being read."""
    beginnings: int = 0
    """How often it began again from where the lake has it. What was read before that is not for it any more."""
    rests: int = 0
    """How often it could not be read or published, in a row."""
    rests_since: float = 0.0
    problem: Problem | None = None
    """Why it could not the last time."""
    rests_until: float = 0.0
    """Nothing of it is read before this, on the clock that only runs forwards."""

    @property
    def is_read(self) -> bool:
        growth = self.grown.growth
        is_through = self.read_upto == growth.last and (self.has_read or growth.windows > 0)
        return is_through and (growth.again is None or self.is_again_read)

    @property
    def is_to_read(self) -> bool:
        return not self.is_read and time.monotonic() >= self.rests_until

    stamped_at: float = field(default_factory=time.monotonic)
    """When its newest version was made, or it was taken in."""

    def rest(self, error: TailraceError, backoff: Backoff) -> None:
        """It could not be read or published: not again for a moment, which is longer each time."""
        self.rests += 1
        self.rests_since = self.rests_since if self.rests > 1 else time.monotonic()
        self.problem = Problem(error.message, error.hint or "it is tried again")
        self.rests_until = time.monotonic() + backoff.seconds(self.rests)

    def wanted(self) -> Wanted:
        """What is to be read next."""
        growth = self.grown.growth
        again = None if self.is_again_read else growth.again_next
        between = self.read_upto, growth.last
        how = growth.order, growth.condition, self.grown.text_key
        return Wanted(self.grown.table, between, self.grown.definition, again, *how)

    def added(self, window: TableWindow) -> None:
        """The lake has what was read."""
        if window.again is not None:
            # Not before: until then its growth wants these keys, and they would be read twice.
            self.is_again_read = False
        self.stamped_at = time.monotonic()
        self.rests, self.problem = 0, None

    def restamp(self, upto: int, position: SourcePosition, *, at_once: bool = False) -> None:
        """It has been brought to transaction `upto`, without more rows. Its stamp says so at once, or after a while."""
        if self.grown.seq == upto and (at_once or self.is_to_stamp):
            self.grown.restamp(position)
            self.stamped_at = time.monotonic()

    @property
    def is_to_stamp(self) -> bool:
        return time.monotonic() - self.stamped_at > RESTAMP_SECONDS

    def took(self, window: TableWindow) -> None:
        """This was read."""
        self.read_upto, self.has_read = window.done, True
        self.is_again_read |= window.again is not None

    def progress(self) -> TableProgress:
        return self.grown.growth.progress(self.grown.table)

    def cut_short(self) -> None:
        """Read no more of it: it has rows for all others. With one more window, of no rows, it is whole."""
        growth = self.grown.growth
        self.grown.growth = replace(growth, last=growth.done, windows=0)
        self.begin_again()

    def begin_again(self) -> None:
        """What was read and is not in the lake is forgotten."""
        self.read_upto, self.has_read, self.is_again_read = self.grown.growth.done, False, False
        self.beginnings += 1


@dataclass(frozen=True)
class ReadGroup:
    """A group, and for whom it was read: a table, and how often it had begun again."""

    group: Group
    tables: Mapping[TableId, tuple[ReadTable, int]]


def await_log(reader: LogReader, position: SourcePosition, wait: Callable[[float], None]) -> None:
    """Until capture has got there; it does so also when nothing is ever committed again."""
    moved_at, head = time.monotonic(), reader.refresh().ordinal
    while head < position.ordinal:
        wait(LOG_SECONDS)
        found = reader.refresh().ordinal
        if found > head:
            moved_at, head = time.monotonic(), found
        elif time.monotonic() - moved_at > STUCK_SECONDS:
            # Perhaps the log is at its quota because of what these rows need of it: without them, it may continue.
            raise TransientError("the log does not get to where the rows were read")


def beside(work: Callable[[], T]) -> Future[T]:
    """The work, in a thread of its own. A process that is to end does not wait for it: a lock at the source may hold it
    up for as long as another process likes."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=owned(run), name="windows reader", daemon=True).start()
    return future
