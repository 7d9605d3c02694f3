"""Windows whose chunks are read, reconciled and written by Spark's executors, as those of large tables are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, execute
from tests.load import Load, writers
from tests.running import running

from tailrace.connector import _growing
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.snapshot import windows
from tailrace.source.kinds import source_of
from tailrace.spark import sharing

ORDERS = TableId("public", "orders")
ROWS = 600
LARGE = "repeat(md5({0}::text), 200)"
SETUP = f"""
create table orders (id int primary key, note text, large text);
alter table orders alter large set storage external;
insert into orders select n, 'first', {LARGE.format("n")} from generate_series(1, {ROWS}) n;
analyze orders;
"""
LOAD = Load(
    (
        "update orders set note = %(text)s where id = %(key)s",
        "update orders set id = %(other)s where id = %(key)s and not exists (select from orders where id = %(other)s)",
        f"update orders set large = {LARGE.format('random()')} where id = %(key)s",
        "delete from orders where id = %(key)s",
        f"insert into orders values (%(key)s, %(text)s, {LARGE.format('random()')}) on conflict do nothing",
    ),
    keys_max=ROWS + 100,
)


def jobs_of(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def test_windows_on_executors_under_load_equal_the_source(
    database: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows move between keys and leave their large columns out meanwhile."""
    monkeypatch.setattr(sharing, "THREADS_MAX", 0)
    monkeypatch.setattr(windows, "HERE_ROWS_MAX", 10)
    monkeypatch.setattr(_growing, "SHARED_ROWS_MIN", 10)
    monkeypatch.setattr(_growing, "PORTION_BYTES_MIN", 1)
    execute(database, SETUP)
    settings = ConnectorSettings(
        tmp_path / "lake", publish_every_seconds=0.1, look_at_tables_seconds=0.5, window_rows=60, readers_max=2
    )
    with running(settings, source_of(database), spark) as run:
        run.catch_up()
        before = jobs_of(spark)
        with writers(database, LOAD):
            run.connector.resync(ORDERS)
            run.wait_for_state(str(ORDERS), TableState.LIVE, copy=2)
        run.catch_up()
        # Two groups at least, each one read and one folded.
        assert jobs_of(spark) - before >= 4
        assert_equal(database, run.lake, str(ORDERS), spark=spark)
