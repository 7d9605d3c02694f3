"""Copies by windows, beside the stream: short reads, nothing kept or written at the source.

They continue where they died: `window_work.py` says how. What is in the way of all tables is tried again for ever, less
and less often; a run that is to end by itself gives up after a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from typing import ClassVar

from tailrace.connector.copy.running_copy import CopyResults, HowToCopy, TableStart
from tailrace.connector.copy.window_tables import WindowTables
from tailrace.connector.copy.window_work import GivenUpError, WindowWork
from tailrace.connector.messages import owned
from tailrace.connector.publish.batch import Publisher
from tailrace.errors import TailraceError, TransientError
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem
from tailrace.stop import Stopped

CANCEL_SECONDS = 10.0
BACKOFF = Backoff(2.0, 30.0)

logger = logging.getLogger(__name__)


class WindowCopy:
    """Implements `RunningCopy`."""

    can_pause: ClassVar[bool] = True

    def __init__(self, how: HowToCopy, publisher: Publisher) -> None:
        self._settings = how.settings
        self._tables = WindowTables()
        self._work = WindowWork(how, publisher, self._tables)
        self._thread = threading.Thread(target=owned(self._run), name="windows", daemon=True)
        self.error: BaseException | None = None

    @property
    def takes_more(self) -> bool:
        return True

    @property
    def tables(self) -> dict[TableId, int]:
        return self._tables.copies

    @property
    def has_ended(self) -> bool:
        # First the thread: as long as it lives, tables may still come and go.
        return not self._thread.is_alive() and (self.error is not None or not self.tables)

    @property
    def waits_for(self) -> Problem | None:
        return self._work.waits_for or self._tables.problem

    @property
    def trouble(self) -> TailraceError | None:
        return self._work.trouble

    @property
    def needed_after(self) -> int:
        return self._tables.needed_after(self._work.settled or 0)

    def add(self, tables: Mapping[TableId, TableStart]) -> None:
        if self._tables.add(tables) and not self._thread.ident:
            self._thread.start()

    def drop(self, table: TableId) -> None:
        self._tables.drop(table)

    def pause(self, tables: Collection[TableId]) -> None:
        """They still follow the log."""
        self._tables.pause(tables)

    def cut_short(self, tables: Collection[TableId]) -> None:
        self._tables.cut_short(tables)

    def take_results(self) -> CopyResults:
        return self._tables.take_results()

    def progress(self) -> list[TableProgress]:
        return [table.grown.growth.progress(table.grown.table) for table in self._tables.growing]

    def cancel(self) -> None:
        """What is in the lake stays, and is continued."""
        self._work.stop.set()
        if self._thread.ident:
            self._thread.join(CANCEL_SECONDS)

    def _run(self) -> None:
        failures, since = 0, 0.0
        work = self._work
        while not work.stop.is_set():
            try:
                work.run()
                return
            except Stopped:
                return
            except TransientError as error:
                failures = 1 if work.trouble is None else failures + 1
                since = time.monotonic() if work.trouble is None else since
                has_lasted = time.monotonic() - since > self._settings.retries.patience_seconds
                if isinstance(error, GivenUpError) or (self._settings.once and has_lasted):
                    self.error = error
                    return
                seconds = BACKOFF.seconds(failures)
                work.trouble = TransientError(f"{error.message}; trying again in {seconds:.0f} s", error.hint)
                logger.warning("windows tried again", extra={"reason": error.message})
                work.stop.wait(seconds)
            except BaseException as error:
                self.error = error
                return
