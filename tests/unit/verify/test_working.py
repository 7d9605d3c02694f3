"""Comparisons while an engine works on them: told of, broken off, and not begun where there are none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.one_thread import OneThread
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource

from tailrace.engine.door import CancelledWorkError, Job
from tailrace.engine.spark.errors import SessionError
from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.settings import TaskSizes
from tailrace.source.door.values import SourceTable
from tailrace.verify.events import TableCompared, TasksProgressed, VerifyEvent
from tailrace.verify.judged_tables import Judged
from tailrace.verify.report import TableVerdict
from tailrace.verify.sides import Sides
from tailrace.verify.table_comparison import Limits
from tailrace.verify.work import Work

ORDERS = TableId("shop", "orders")


class HangingEngine(OneThread):
    """Its jobs end when they are cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = threading.Event()

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        assert self.cancelled.wait(60)
        raise CancelledWorkError(job.description)

    def cancel(self, group: str) -> None:
        self.cancelled.set()

    def tasks_done(self, group: str) -> tuple[int, int]:
        return 1, 3


class GoneEngine(OneThread):
    """Spark has died, and no table is to blame."""

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        raise SessionError("Spark has ended")


class UnplannedSource(ScriptedSource):
    """Cannot say how its tables are read."""

    def chunks(self, table: SourceTable, bytes_max: int, readers: int = 1) -> list[Any]:
        raise DefiniteError("it is locked", table=str(table.table))


@pytest.fixture
def lake(tmp_path: Path) -> MadeLake:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(str(ORDERS), {"id": "bigint"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([Insert(str(ORDERS), {"id": 1})])
    made.log()
    made.publish({str(ORDERS): script.state(str(ORDERS))})
    return made


def compare(made: MadeLake, engine: OneThread, tell: Callable[[VerifyEvent], None]) -> list[TableVerdict]:
    found = made.source.describe([ORDERS])
    with made.source.snapshot() as point:
        sides = Sides.of(made.source, point, made.home)
        work = Work(engine, sides, Limits(TaskSizes(), 2, 5), tell)
        judged = Judged(found[ORDERS].schema, found[ORDERS].schema.definition)
        return [report.verdict for report in work.compare(found, [judged])]


def test_one_job_that_a_person_understands_compares_small_tables(lake: MadeLake) -> None:
    engine = OneThread(travels=True)
    told: list[VerifyEvent] = []
    assert compare(lake, engine, told.append) == [TableVerdict.EQUAL]
    assert [job.description for job in engine.jobs] == ["verify shop.orders"]
    assert [type(event) for event in told] == [TableCompared]


def test_ctrl_c_breaks_off_the_jobs_that_run(lake: MadeLake) -> None:
    engine = HangingEngine()
    told: list[VerifyEvent] = []

    def interrupt(event: VerifyEvent) -> None:
        told.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(lake, engine, interrupt)
    assert engine.cancelled.is_set()
    assert told == [TasksProgressed(1, 3)]


def test_an_engine_that_is_gone_is_no_tables_error(lake: MadeLake) -> None:
    with pytest.raises(SessionError):
        compare(lake, GoneEngine(), lambda event: None)


def test_a_table_that_cannot_be_planned_is_not_compared_and_starts_no_job(lake: MadeLake) -> None:
    lake.source = UnplannedSource(**lake.source.arguments)
    engine = OneThread()
    told: list[VerifyEvent] = []
    assert compare(lake, engine, told.append) == [TableVerdict.NOT_COMPARED]
    assert not engine.jobs
