"""Groups of rows, read under a brief state of the source."""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql import SparkSession
from tests.integration.lake.equality import execute

from tailrace.errors import TransientError
from tailrace.model.table import TableId
from tailrace.snapshot.windows import SPARK_ROWS_MIN, Wanted, WindowReader
from tailrace.source.kinds import source_of
from tailrace.spark.session import LazySession

ROWS = 2 * SPARK_ROWS_MIN


def test_a_state_of_the_source_is_not_held_until_spark_has_started(database: str, tmp_path: Path) -> None:
    execute(database, f"create table t as select n as id from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    source, table = source_of(database), TableId("public", "t")
    has_started = threading.Event()

    def start() -> SparkSession:
        has_started.wait(10)
        raise TransientError("nothing needs it")

    reader = WindowReader(source, source.claim(None), LazySession(start), tmp_path / "windows", 2, ROWS // 4)
    try:
        group = reader.read([Wanted(table, (None, [str(ROWS)]), None)])
        assert not has_started.is_set()
    finally:
        has_started.set()
    assert group.tables[table].rows == ROWS
