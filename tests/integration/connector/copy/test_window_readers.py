"""Copies by windows beside others: many tables at once, and readers who hold a cut open meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.load import Load, writers
from tests.running import connector_of, running, sync_once

import tailrace
from tailrace.connector.events import TablesLanded
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes
from tailrace.source.kinds import source_of

TABLES = 30
ORDERS = "public.orders"
SETUP = """
create table orders (id int primary key, n int not null, v text);
insert into orders select n, 0, 'first' from generate_series(1, 200) n;
"""


def rows_of(frame: Any) -> dict[int, int]:
    """Of Spark's and of DuckDB's frames."""
    found = frame.toArrow() if hasattr(frame, "toArrow") else frame.to_arrow_table()
    rows = found.select(["id", "n"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["n"] for row in rows}


def test_cuts_that_are_open_while_a_table_is_copied_by_windows_stay_what_they_are(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Read before, first read in the middle of the copy, and first read after it."""
    execute(database, SETUP)
    settings = ConnectorSettings(
        tmp_path / "lake",
        publish_every_seconds=0.1,
        look_at_tables_seconds=0.2,
        window_rows=20,
        readers_max=1,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )
    source = DisturbedPostgres(database)
    with running(settings, source) as run, connect() as duckdb:
        run.catch_up()
        execute(database, "update orders set n = 1 where id % 2 = 0; delete from orders where id = 7")
        run.wait_for_live_reads()
        expected = {number: int(number % 2 == 0) for number in range(1, 201) if number != 7}
        held = [tailrace.cut(session, run.lake, register=False) for session in (spark, duckdb) for _ in range(3)]
        read_before = [each.tables[ORDERS] for each in held[::3]]
        assert [rows_of(each) for each in read_before] == [expected] * 2
        found: list[dict[int, int]] = []

        def disturb(table: TableId, what: str, number: int) -> None:
            if number == 4:
                execute(database, "update orders set n = n + 10 where id % 3 = 0; delete from orders where id > 150")
                found.extend(rows_of(each.tables[ORDERS]) for each in held[1::3])
                found.extend(rows_of(each) for each in read_before)

        source.disturbance.begin(disturb)
        run.connector.resync(TableId.parse(ORDERS))
        run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        found += [rows_of(each.tables[ORDERS]) for each in held]
        assert found == [expected] * 10
        assert_equal(database, run.lake, ORDERS, spark=spark)


def test_many_tables_are_copied_by_windows_at_once_beside_writers(database: str, tmp_path: Path) -> None:
    names = [f"public.t{number}" for number in range(TABLES)]
    for name in names:
        execute(database, f"create table {name} (id int primary key, n int)")
        execute(database, f"insert into {name} select n, 0 from generate_series(1, 20) n")
    load = Load(tuple(f"update {name} set n = n + 1 where id = %(key)s" for name in names), keys_max=20)
    sizes = TaskSizes(window_tables_max=7)
    settings = ConnectorSettings(tmp_path / "lake", once=True, snapshot_mode=SnapshotMode.INCREMENTAL, sizes=sizes)
    told: list[TablesLanded] = []
    connector = connector_of(settings, source_of(database))
    connector.subscribe(lambda event: told.append(event) if isinstance(event, TablesLanded) else None)
    with writers(database, load, 1):
        connector.start()
        assert connector.wait(120)
    landed = [str(table) for event in told for table in event.tables]
    assert sorted(landed) == sorted(names), "each is told of once"
    assert set(sync_once(replace(settings, once=True), source_of(database)).values()) == {TableState.LIVE}
    assert_equal(database, settings.lake, *names)
