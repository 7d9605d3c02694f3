"""Tables copied at once: who reads their chunks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import execute
from tests.postgres import wait_until

from tailrace.lake.formats import format_named
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.snapshot.full import FullSnapshot, SnapshotPlan
from tailrace.source.kinds import source_of
from tailrace.spark import sharing
from tailrace.spark.session import LazySession

ROWS = 20_000


def snapshot_of(database: str, path: Path, start: Callable[[], SparkSession]) -> FullSnapshot:
    """Of one table, in chunks of one block."""
    execute(database, f"create table t as select n as id, repeat('x', 50) as text from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    records = {TableId("public", "t"): TableRecord(TableState.PENDING, copy=1)}
    delta = format_named("delta")
    plan = SnapshotPlan(source_of(database), lambda _: delta.table(path), records, 8192, 2, 4)
    return FullSnapshot(LazySession(start), plan)


def test_chunks_are_read_while_spark_starts_and_the_rest_by_its_executors(
    database: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "THREADS_MAX", 0)
    read_here: list[int] = []

    def start() -> SparkSession:
        wait_until(lambda: any(each.chunks_done for each in snapshot.progress()), 20)
        read_here.append(snapshot.progress()[0].chunks_done)
        return spark

    snapshot = snapshot_of(database, tmp_path / "t", start)
    snapshot.run()
    (progress,) = snapshot.progress()
    assert 0 < read_here[0] < progress.chunks == progress.chunks_done
    rows = spark.read.format("delta").load(str(tmp_path / "t"))
    assert (rows.count(), rows.select("id").distinct().count()) == (ROWS, ROWS)


def test_on_few_cores_threads_read_all_chunks_and_spark_is_not_started(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "THREADS_MAX", 1 << 10)
    snapshot = snapshot_of(database, tmp_path / "t", lambda: pytest.fail("Spark was started"))
    snapshot.run()
    (progress,) = snapshot.progress()
    assert 1 < progress.chunks == progress.chunks_done
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "t"))
    found = pa.table(query.execute("select count(*) as rows, count(distinct id) as ids from t"))
    assert found.to_pylist() == [{"rows": ROWS, "ids": ROWS}]
