"""Tables copied at once: who reads their chunks."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.integration.lake.equality import execute
from tests.postgres import wait_until

from tailrace.lake.formats import format_named
from tailrace.model.table import TableId
from tailrace.snapshot.full import FullSnapshot, SnapshotPlan
from tailrace.source.kinds import source_of
from tailrace.spark.session import LazySession

ROWS = 20_000


def test_chunks_are_read_while_spark_starts_and_the_rest_by_its_executors(
    database: str, spark: SparkSession, tmp_path: Path
) -> None:
    execute(database, f"create table t as select n as id, repeat('x', 50) as text from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    table, delta = TableId("public", "t"), format_named("delta")
    read_here: list[int] = []

    def start() -> SparkSession:
        wait_until(lambda: any(each.chunks_done for each in snapshot.progress()), 20)
        read_here.append(snapshot.progress()[0].chunks_done)
        return spark

    plan = SnapshotPlan(source_of(database), lambda _: delta.table(tmp_path / "t"), {table: 1}, 8192, 2, 4)
    snapshot = FullSnapshot(LazySession(start), plan)
    snapshot.run()
    (progress,) = snapshot.progress()
    assert 0 < read_here[0] < progress.chunks == progress.chunks_done
    rows = spark.read.format("delta").load(str(tmp_path / "t"))
    assert (rows.count(), rows.select("id").distinct().count()) == (ROWS, ROWS)
