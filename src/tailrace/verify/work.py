"""Comparisons of tables, handed to an engine: watched while they run, and broken off when this process is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from tailrace.engine.dividing import Outcome, attempted, work_through
from tailrace.engine.door import Engine, Job
from tailrace.engine.spark.errors import is_spark_gone
from tailrace.model.table import TableId
from tailrace.source.door.values import SourceTable
from tailrace.verify import events
from tailrace.verify.judged_tables import Judged, report_of
from tailrace.verify.report import Compared, TableReport
from tailrace.verify.sides import Sides
from tailrace.verify.table_comparison import Limits, TableComparison

PROGRESS_SECONDS = 0.25
CANCEL_SECONDS = 10.0
"""How long jobs have to end that were broken off."""

T = TypeVar("T")


class Work:
    """The comparisons of some tables at one point. One thread."""

    def __init__(self, engine: Engine, sides: Sides, limits: Limits, tell: events.Tell) -> None:
        self._engine, self._sides, self._limits, self._tell = engine, sides, limits, tell
        self._group = f"tailrace verify {sides.lake}"
        self._judged: SimpleQueue[TableReport] = SimpleQueue()
        """What is known already and was not told yet."""

    def compare(self, found: Mapping[TableId, SourceTable], tables: Sequence[Judged]) -> list[TableReport]:
        """What was found of each table, in their order. Raises what is no fault of one table."""
        planned = {each.table: self._plan(found[each.table], each) for each in tables}
        comparisons = [outcome.result for outcome in planned.values() if outcome.result is not None]
        failed = {
            table: Outcome[Compared](None, each.error) for table, each in planned.items() if each.error is not None
        }
        reports = [report_of(table, outcome) for table, outcome in failed.items()]
        if comparisons:
            outcomes = self._watched(partial(self._work_through, comparisons))
            pairs = zip(comparisons, outcomes, strict=True)
            reports += [report_of(comparison.judged.table, outcome) for comparison, outcome in pairs]
        for report in reports:
            self._tell(events.TableCompared(report))
        return reports

    def _plan(self, found: SourceTable, judged: Judged) -> Outcome[TableComparison]:
        plan = partial(TableComparison.of, self._sides, found, judged, self._limits)
        return attempted(str(judged.table), plan, is_spark_gone)

    def _work_through(self, comparisons: Sequence[TableComparison]) -> list[Outcome[Compared]]:
        what = f"{len(comparisons)} tables" if len(comparisons) > 1 else comparisons[0].table
        job, share_bytes = Job(f"verify {what}", self._group), self._limits.sizes.compare_bytes

        def ended(number: int, outcome: Outcome[Compared]) -> None:
            self._judged.put(report_of(comparisons[number].judged.table, outcome))

        return work_through(self._engine, job, comparisons, share_bytes, is_spark_gone, ended)

    def _watched(self, work: Callable[[], T]) -> T:
        """What the work gives, done in a thread of its own: this one tells how far it is, and hears Ctrl-C at once."""
        working = _begun(work)
        try:
            while not wait([working], PROGRESS_SECONDS).done:
                done, tasks = self._engine.tasks_done(self._group)
                if tasks:
                    self._tell(events.TasksProgressed(done, tasks))
                while not self._judged.empty():
                    self._tell(events.TableJudged(self._judged.get()))
            return working.result()
        finally:
            self._break_off(working)

    def _break_off(self, working: Future[T]) -> None:
        """Until it has ended, again and again: one job may follow another."""
        deadline = time.monotonic() + CANCEL_SECONDS
        while not working.done() and time.monotonic() < deadline:
            self._engine.cancel(self._group)
            wait([working], PROGRESS_SECONDS)


def _begun(work: Callable[[], T]) -> Future[T]:
    """The end of the process does not wait for it."""
    given: Future[T] = Future()

    def run() -> None:
        try:
            given.set_result(work())
        except BaseException as error:
            given.set_exception(error)

    threading.Thread(target=run, name="verify", daemon=True).start()
    return given
