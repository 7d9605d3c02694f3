"""Tables copied at once: in which jobs, and what is held at the source meanwhile."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import execute
from tests.integration.lake.states_held import StatesHeld

from tailrace.connector.copy.full_snapshot import FullSnapshot, SnapshotPlan
from tailrace.connector.copy.running_copy import TableStart
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.lake.formats import format_named
from tailrace.model.table import TableId
from tailrace.source.kinds import source_of
from tailrace.stop import Stop
from tailrace.storage.local import LocalFolder

ROWS = 20_000
SMALL = ("a", "b", "c")


@pytest.fixture
def tables(database: str) -> list[TableId]:
    """One large one and some small ones."""
    execute(database, f"create table t as select n as id, repeat('x', 50) as text from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    for name in SMALL:
        execute(
            database, f"create table {name} (id int primary key); insert into {name} values (1), (2); analyze {name}"
        )
    return [TableId("public", name) for name in ("t", *SMALL)]


def snapshot_of(database: str, path: Path, tables: list[TableId], engine: Engine) -> FullSnapshot:
    """In chunks of one block."""
    starts = {table: TableStart(copy=1) for table in tables}
    delta = format_named("delta")
    source = source_of(database)
    plan = SnapshotPlan(source, lambda table: delta.table(LocalFolder(path / table.name)), starts, 8192, 2, 4, "copies")
    return FullSnapshot(engine, plan, Stop())


def assert_copied(path: Path) -> None:
    for table, rows in {"t": ROWS, **dict.fromkeys(SMALL, 2)}.items():
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path / table))
        found = pa.table(query.execute("select count(*) as rows, count(distinct id) as ids from t"))
        assert found.to_pylist() == [{"rows": rows, "ids": rows}], table


def test_a_large_table_has_a_job_of_its_own_and_small_ones_have_one_together(
    database: str, tmp_path: Path, tables: list[TableId]
) -> None:
    engine = OneThread(travels=True)
    snapshot = snapshot_of(database, tmp_path, tables, engine)
    snapshot.run()
    progress = {each.table.name: each for each in snapshot.progress()}
    chunks = progress["t"].chunks
    assert sorted(job.description for job in engine.jobs) == ["copy 3 small tables", f"copy public.t, {chunks} chunks"]
    assert 1 < chunks == progress["t"].chunks_done
    assert engine.done.tasks == chunks + engine.cores
    assert_copied(tmp_path)


def test_no_state_of_the_source_is_held_before_the_engine_is_ready(
    database: str, tmp_path: Path, tables: list[TableId]
) -> None:
    engine = StatesHeld(database)
    snapshot_of(database, tmp_path, tables, engine).run()
    assert engine.when_ready == [0]
    assert len(engine.when_working) == 2
    assert min(engine.when_working) >= 1
    assert_copied(tmp_path)


def test_spark_copies_all_of_them_and_says_how_far_it_is(
    database: str, tmp_path: Path, tables: list[TableId], spark: SparkSession
) -> None:
    with SparkEngine(LazySession(lambda: spark, spark)) as engine:
        snapshot = snapshot_of(database, tmp_path, tables, engine)
        snapshot.run()
        done, total = engine.tasks_done("copies public.t")
    assert [each.percent for each in snapshot.progress()] == [100.0] * len(tables)
    assert done == total == snapshot.progress()[0].chunks
    assert_copied(tmp_path)
