"""What is read of growing tables, ahead of what the lake has of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from tailrace.connector._growing import GrowingTable, Unseen
from tailrace.connector.messages import owned
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.snapshot.windows import Group, TableWindow, Wanted
from tailrace.source.door import Cursor

RETRY_SECONDS = 1.0
RETRY_SECONDS_MAX = 30.0

T = TypeVar("T")


@dataclass
class ReadTable:
    """A table that grows."""

    grown: GrowingTable
    rows_estimated: int
    read_upto: Cursor | None
    """How far it is read; what of it is in the lake, its growth says."""
    has_read: bool = False
    is_again_read: bool = False
    """The keys that its growth wants again are being read."""
    beginnings: int = 0
    """How often it began again from where the lake has it. What was read before that is not for it any more."""
    failures: int = 0
    """In a row."""
    rests: int = 0
    """How often it could not be read, in a row."""
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

    def rest(self) -> None:
        """It could not be read: not again for a moment, which is longer each time."""
        self.rests += 1
        self.rests_until = time.monotonic() + min(RETRY_SECONDS * 2 ** (self.rests - 1), RETRY_SECONDS_MAX)

    def wanted(self) -> Wanted:
        """What is to be read next."""
        growth = self.grown.growth
        again = None if self.is_again_read else growth.again
        between = self.read_upto, growth.last
        return Wanted(self.grown.table, between, self.grown.definition, again, growth.order, growth.condition)

    def add(self, reader: LogReader, window: TableWindow, unseen: Unseen, upto: int, position: SourcePosition) -> None:
        self.grown.add(reader, window, unseen, upto, position)
        if window.again is not None:
            # Not before: until then its growth wants these keys, and they would be read twice.
            self.is_again_read = False

    def took(self, window: TableWindow) -> None:
        """This was read."""
        self.read_upto, self.has_read, self.rests = window.done, True, 0
        self.is_again_read |= window.again is not None

    def begin_again(self) -> None:
        """What was read and is not in the lake is forgotten."""
        self.read_upto, self.has_read, self.is_again_read = self.grown.growth.done, False, False
        self.beginnings += 1


@dataclass(frozen=True)
class ReadGroup:
    """A group, and for whom it was read: a table, and how often it had begun again."""

    group: Group
    tables: Mapping[TableId, tuple[ReadTable, int]]


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
