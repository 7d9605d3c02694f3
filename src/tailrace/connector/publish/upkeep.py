"""Upkeep beside the stream: tables are kept in good order in the pauses between publishes, within a share of the time.

One step at a time, in the thread that publishes: a merge of a few files, a checkpoint, or what can be deleted of one
table. A step is bounded, so a publish waits for one of them at most, and the two never meet at one table. After a step,
upkeep rests for three times as long as the step took. What fails here stops nothing: it is told in the log of messages
and tried again later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from tailrace.connector.publish.batch import Publisher
from tailrace.connector.publish.live_table import LiveTable
from tailrace.lake.home import LakeHome
from tailrace.lake.maintenance import Maintenance
from tailrace.lake.retention import Retention
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings

REST_FACTOR = 3.0
LAST_SECONDS_MAX = 10.0
"""How long a run that ends may take for steps that are due."""

logger = logging.getLogger(__name__)


class LiveTables(Protocol):
    """Who has the live tables."""

    publisher: Publisher

    @property
    def tables(self) -> dict[TableId, LiveTable]: ...


class Upkeep:
    """The upkeep of one run. One thread."""

    def __init__(
        self, home: LakeHome, settings: ConnectorSettings, live: LiveTables, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._home = home
        self._live = live
        self._retention = Retention(settings.retain_seconds, settings.retain_all_seconds)
        self._maintenance = Maintenance(home, self._retention)
        self._settled: dict[str, int] = {}
        """Tables with nothing to delete while they have this version."""
        self._round: Iterator[bool] | None = None
        self._steps_taken = 0
        self._turns: Iterator[LiveTable] = iter(())
        """The untidy tables that have yet to have a step in this turn."""
        self._due = 0.0

    def step(self) -> None:
        """One step, if it is time for one and one is due."""
        begun = self._clock()
        if begun >= self._due:
            self._step()
            now = self._clock()
            self._due = now + REST_FACTOR * (now - begun)

    def finish(self) -> None:
        """What is due at the end of a run that does not stay."""
        until = self._clock() + LAST_SECONDS_MAX
        while self._clock() < until and self._step():
            pass

    def _step(self) -> bool:
        """Whether there was one. Files of tables and the past of the lake take turns, and so do tables: otherwise a
        busy table would starve the others."""
        self._steps_taken += 1
        first, second = (self._tidy, self._look_back) if self._steps_taken % 2 else (self._look_back, self._tidy)
        return first() or second()

    def _tidy(self) -> bool:
        """The next untidy table, if there is one."""
        table = self._next_untidy()
        if table is None:
            return False
        try:
            table.maintain(partial(self._live.publisher.rewritten, table.table))
        except Exception:
            table.is_untidy = False
            logger.exception("upkeep failed", extra={"table": str(table.table)})
        return True

    def _next_untidy(self) -> LiveTable | None:
        """Each has a step before one has another."""
        tables = self._live.tables
        table = next((live for live in self._turns if live.is_untidy and tables.get(live.table) is live), None)
        if table is None:
            self._turns = iter([live for live in tables.values() if live.is_untidy])
            table = next(self._turns, None)
        return table

    def _look_back(self) -> bool:
        """What is due of a round over the lake, if anything is."""
        if self._round is None and self._is_round_due():
            self._round = self._steps()
        if self._round is None:
            return False
        try:
            if next(self._round, False):
                return True
        except Exception:
            logger.exception("upkeep failed")
        self._round = None
        return False

    def _is_round_due(self) -> bool:
        """The age of a file tells, so that many short runs look no more often than a long one."""
        try:
            age = time.time() - self._home.runs.maintained.stat().st_mtime
        except FileNotFoundError:
            # A new lake.
            self._home.runs.maintained.touch(0o600)
            return False
        return not 0 <= age < self._retention.slot_seconds

    def _steps(self) -> Iterator[bool]:
        """One round over the lake: old cuts, then each table, then what crashes left."""
        self._home.runs.maintained.touch(0o600)
        forgotten = self._maintenance.forget_cuts()
        yield True
        for table in self._live.tables.values():
            if self._settled.get(str(table.table)) != table.version:
                self._prune(table)
                yield True
        self._maintenance.forget_damaged()
        if forgotten:
            logger.info("old cuts forgotten", extra={"cuts": forgotten})

    def _prune(self, table: LiveTable) -> None:
        try:
            pruned = self._maintenance.prune(table.table, table.following.stored)
        except Exception:
            logger.exception("upkeep failed", extra={"table": str(table.table)})
            return
        if pruned.is_settled:
            self._settled[str(table.table)] = table.version
        if pruned.files or pruned.commits:
            told = {"table": str(table.table), "files": pruned.files, "bytes": pruned.bytes, "commits": pruned.commits}
            logger.info("deleted what no kept cut needs", extra=told)
