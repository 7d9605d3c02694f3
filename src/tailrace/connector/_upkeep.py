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

from tailrace.connector._apply import Applier, LakeParts
from tailrace.connector._publishing import LiveTable
from tailrace.lake.maintenance import Maintenance
from tailrace.lake.retention import Retention
from tailrace.settings import ConnectorSettings

REST_FACTOR = 3.0
LAST_SECONDS_MAX = 10.0
"""How long a run that ends may take for steps that are due."""

logger = logging.getLogger(__name__)


class Upkeep:
    """The upkeep of one run. One thread."""

    def __init__(
        self,
        parts: LakeParts,
        settings: ConnectorSettings,
        applier: Applier,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._home = parts.home
        self._applier = applier
        self._retention = Retention(settings.retain_seconds, settings.retain_all_seconds)
        self._maintenance = Maintenance(parts.home, self._retention)
        self._settled: dict[str, int] = {}
        """Tables with nothing to delete while they have this version."""
        self._round: Iterator[bool] | None = None
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
        """Whether there was one."""
        for table in self._applier.tables.values():
            if table.is_untidy:
                try:
                    table.maintain()
                except Exception:
                    table.is_untidy = False
                    logger.exception("upkeep failed", extra={"table": str(table.table)})
                return True
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
            age = time.time() - self._home.maintained_file.stat().st_mtime
        except FileNotFoundError:
            # A new lake.
            self._home.maintained_file.touch(0o600)
            return False
        return not 0 <= age < self._retention.slot_seconds

    def _steps(self) -> Iterator[bool]:
        """One round over the lake: old cuts, then each table, then what crashes left."""
        self._home.maintained_file.touch(0o600)
        forgotten = self._maintenance.forget_cuts()
        yield True
        for table in self._applier.tables.values():
            if self._settled.get(str(table.table)) != table.standing.version:
                self._prune(table)
                yield True
        self._maintenance.forget_damaged()
        if forgotten:
            logger.info("old cuts forgotten", extra={"cuts": forgotten})

    def _prune(self, table: LiveTable) -> None:
        try:
            pruned = self._maintenance.prune(table.table, table.stored)
        except Exception:
            logger.exception("upkeep failed", extra={"table": str(table.table)})
            return
        if pruned.is_settled:
            self._settled[str(table.table)] = table.standing.version
        if pruned.files or pruned.commits:
            told = {"table": str(table.table), "files": pruned.files, "bytes": pruned.bytes, "commits": pruned.commits}
            logger.info("deleted what no kept cut needs", extra=told)
