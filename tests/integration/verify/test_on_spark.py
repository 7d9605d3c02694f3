"""Tables compared by Spark's tasks, without a connector: real jobs, both ways to compare, errors and their end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.doors.made_lake import MadeLake
from tests.doors.script import Delete, Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.engine.dividing import work_through
from tailrace.engine.door import Job
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.errors import is_spark_gone
from tailrace.engine.spark.session import LazySession
from tailrace.model.table import TableId
from tailrace.settings import TaskSizes
from tailrace.verify.judged_tables import Judged, report_of
from tailrace.verify.report import RowDifference, TableVerdict
from tailrace.verify.sides import Sides
from tailrace.verify.table_comparison import Limits, TableComparison

TABLES = [TableId("shop", name) for name in ("orders", "notes", "lost")]
JOB = Job("verify 3 tables", "verify on spark")
WHOLE, DIVIDED = TaskSizes(), TaskSizes(compare_bytes=4096)


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    with SparkEngine(LazySession(lambda: spark, spark)) as made:
        yield made


@pytest.fixture
def lake(tmp_path: Path) -> MadeLake:
    script = Script(tmp_path / "shop.jsonl")
    for table in TABLES:
        script.create_table(str(table), {"id": "bigint", "note": "string", "price": "double"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)), "delta")
    for table in TABLES:
        rows = [{"id": n, "note": f"note {n}", "price": n / 3} for n in range(300)]
        script.transaction([Insert(str(table), row) for row in rows])
    made.log()
    rows = {str(table): [dict(row) for row in script.state(str(table))] for table in TABLES}
    rows["shop.orders"][7]["note"] = None
    del rows["shop.orders"][8]
    made.publish(rows)
    script.transaction([Delete("shop.orders", (100,)), Delete("shop.notes", (1,))])
    made.log()
    return made


def comparisons(made: MadeLake, sizes: TaskSizes) -> list[TableComparison]:
    described = made.source.describe(TABLES)
    with made.source.snapshot() as point:
        sides, limits = Sides.of(made.source, point, made.home), Limits(sizes, 4, 20)
    judged = [Judged(described[table].schema, described[table].schema.definition) for table in TABLES]
    return [TableComparison.of(sides, described[each.table], each, limits) for each in judged]


def test_tasks_find_the_same_whether_a_table_is_divided_or_not(lake: MadeLake, engine: SparkEngine) -> None:
    (file,) = lake.path_of(TABLES[2]).glob("*.parquet")
    file.write_bytes(b"PAR1" + file.read_bytes()[4:-300] + b"?" * 300)
    for sizes in (WHOLE, DIVIDED):
        before = engine.done.jobs
        outcomes = work_through(engine, JOB, comparisons(lake, sizes), sizes.compare_bytes, is_spark_gone)
        orders, notes, lost = (report_of(*each) for each in zip(TABLES, outcomes, strict=True))
        assert (orders.source_rows, orders.lake_rows) == (299, 298)
        found = [(each.key["id"], each.difference, each.columns) for each in orders.keys]
        assert found == [("7", RowDifference.CHANGED, ("note",)), ("8", RowDifference.MISSING, ())]
        assert (notes.verdict, notes.source_rows) == (TableVerdict.EQUAL, 299)
        assert lost.verdict is TableVerdict.NOT_COMPARED
        assert "it cannot be read" in str(lost.reason)
        assert engine.done.jobs - before == (1 if sizes is WHOLE else 6)


def test_a_group_that_is_cancelled_ends_soon(lake: MadeLake, engine: SparkEngine, tmp_path: Path) -> None:
    """As Ctrl-C does it."""
    began = tmp_path / "began"

    def wait_long(_: int) -> None:
        began.touch()
        threading.Event().wait(120)

    failed: list[BaseException] = []

    def work() -> None:
        try:
            engine.map(JOB, [1], wait_long)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(began.exists)
    assert engine.tasks_done(JOB.group)[1] >= 1
    engine.cancel(JOB.group)
    thread.join(30)
    assert failed
