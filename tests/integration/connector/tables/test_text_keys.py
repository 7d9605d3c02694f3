"""Keys with values that their columns' lake types cannot hold: such a column becomes text, and nothing is stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, assert_live, execute
from tests.running import DIVIDED, Running, running, sync_once
from tests.verifying import verify
from typer.testing import CliRunner

import tailrace
from tailrace.cli.commands import app
from tailrace.connector.connector import Connector
from tailrace.connector.events import TableChanged
from tailrace.errors import ResyncError
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.kinds import source_of

DAYS, HOURS, PRICES = "public.days", "public.hours", "public.prices"
TABLES = (DAYS, HOURS, PRICES)
SETUP = """
create table days (day date primary key, v text);
create table hours (n int, at timestamptz, v text, primary key (n, at));
create table prices (price numeric(6,2) not null, v text);
create unique index by_price on prices (price); alter table prices replica identity using index by_price;
insert into days values ('2024-01-01', 'a'), ('2024-01-02', 'b');
insert into hours values (1, '2024-01-01 12:00+00', 'a'), (2, '2024-01-01 12:00+00', 'b');
insert into prices values (1.50, 'a'), (2.50, 'b');
"""
ODD = """
insert into days values ('infinity', 'c'), ('0044-03-15 BC', 'd'), ('10000-01-01', 'e');
insert into hours values (1, '-infinity', 'c'), (1, 'infinity', 'd'), (2, '10000-01-01 00:00+00', 'e');
insert into prices values ('NaN', 'c');
"""
MORE = """
update days set v = 'z' where day in ('infinity', '2024-01-01'); delete from days where day = '10000-01-01';
update days set day = '-infinity' where day = '0044-03-15 BC';
update hours set v = 'z' where at = 'infinity'; delete from hours where at = '-infinity';
update hours set at = '2024-02-01 00:00+00' where at = '10000-01-01 00:00+00';
update prices set price = 9 where price = 'NaN'; insert into prices values ('NaN', 'f');
"""


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, look_at_tables_seconds=0.5, once=True)


def records(settings: ConnectorSettings, dsn: str) -> dict[str, TableRecord]:
    found = Connector(settings, source_of(dsn)).tables()
    return {str(table): record for table, record in found.items()}


def key_types(lake: Path) -> list[str]:
    columns = ((DAYS, "day"), (HOURS, "at"), (PRICES, "price"))
    return [str(tailrace.arrow(lake, table, published=True).schema.field(name).type) for table, name in columns]


def told(run: Running, table: str) -> list[tuple[TableState, str | None]]:
    events = [event for event in run.events if isinstance(event, TableChanged) and str(event.table) == table]
    return [(event.record.state, event.record.reason) for event in events]


@pytest.mark.parametrize("mode", [SnapshotMode.INITIAL, SnapshotMode.INCREMENTAL])
def test_a_first_copy_that_finds_such_a_key_is_made_once_more_with_text_and_followed_over_restarts(
    database: str, settings: ConnectorSettings, mode: SnapshotMode
) -> None:
    execute(database, SETUP + ODD)
    settings = replace(settings, snapshot_mode=mode)
    assert set(sync_once(settings, source_of(database)).values()) == {TableState.LIVE}
    assert key_types(settings.lake) == ["string"] * 3
    assert_equal(database, settings.lake, *TABLES)
    execute(database, MORE)
    sync_once(settings, source_of(database))
    assert_equal(database, settings.lake, *TABLES)
    assert {table: record.copy for table, record in records(settings, database).items()} == dict.fromkeys(TABLES, 2)
    shown = CliRunner().invoke(app, ["tables", str(settings.lake)])
    assert (shown.exit_code, "price is in the key and is text now: the value 'NaN'" in shown.output) == (0, True)


def test_a_stream_that_brings_such_a_key_has_its_table_copied_with_text_and_the_others_go_on(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    sync_once(settings, source_of(database))
    assert key_types(settings.lake) == ["date32[day]", "timestamp[us, tz=UTC]", "decimal128(6, 2)"]
    with running(replace(settings, once=False), source_of(database)) as run:
        run.catch_up()
        execute(database, ODD)
        for table in TABLES:
            run.wait_for_state(table, TableState.RESYNCING)
        execute(database, MORE)
        for table in TABLES:
            run.wait_for_state(table, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, run.lake, *TABLES)
        reason = "column day is in the key and is text now: the value 'infinity' has no exact date"
        assert (TableState.RESYNCING, reason) in told(run, DAYS)
    assert key_types(settings.lake) == ["string"] * 3
    with running(replace(settings, once=False, publish_every_seconds=3600), source_of(database)) as run:
        run.catch_up()
        execute(database, "insert into days values ('0001-01-01 BC', 'g'); delete from hours where at = 'infinity'")
        run.wait_for_live_reads()
        assert_live(database, run.lake, TABLES)
    execute(database, "alter table days add w int; insert into days values ('20000-01-01', 'h', 1)")
    sync_once(settings, source_of(database))
    assert_equal(database, settings.lake, *TABLES)
    assert {record.copy for record in records(settings, database).values()} == {2}


def test_a_persons_resync_tries_the_type_again_and_another_table_of_the_name_starts_typed(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP + ODD)
    sync_once(settings, source_of(database))
    execute(database, "delete from days where day in ('infinity', '0044-03-15 BC', '10000-01-01'); drop table hours")
    execute(database, "create table hours (n int, at timestamptz, v text, primary key (n, at))")
    with running(replace(settings, once=False), source_of(database)) as run:
        for table in ("days", "prices"):
            run.connector.resync(TableId("public", table))
        run.wait_for_state(DAYS, TableState.LIVE, copy=3)
        run.wait_for_state(HOURS, TableState.LIVE, copy=3)
        run.wait_for_state(PRICES, TableState.LIVE, copy=4)
        run.catch_up()
        assert_equal(database, run.lake, *TABLES)
    assert key_types(settings.lake) == ["date32[day]", "timestamp[us, tz=UTC]", "string"]


def test_a_live_read_of_such_a_key_says_so_until_its_table_is_copied(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    with running(replace(settings, once=False, publish_every_seconds=3600), source_of(database)) as run:
        run.wait_for_state(DAYS, TableState.LIVE)
        execute(database, ODD)
        run.wait_for_live_reads()
        with pytest.raises(ResyncError, match=r"public\.days: column day is in the key and is text now"):
            tailrace.arrow(run.lake, DAYS)
        assert tailrace.arrow(run.lake, DAYS, published=True).num_rows == 2


@pytest.mark.proof
def test_executors_both_engines_verify_and_the_change_feed_have_such_keys(
    database: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    execute(database, SETUP)
    sync_once(settings, source_of(database), spark)
    settings = replace(settings, sizes=DIVIDED)
    execute(database, ODD)
    sync_once(settings, source_of(database), spark)
    execute(database, MORE)
    sync_once(settings, source_of(database), spark)
    assert_equal(database, settings.lake, *TABLES, spark=spark)
    assert key_types(settings.lake) == ["string"] * 3
    for engine in (None, spark):
        found = verify(database, settings.lake, engine)
        assert found.is_equal, found
    tailrace.register(spark)
    changes = spark.read.format("tailrace").option("table", DAYS).load(str(settings.lake)).collect()
    assert {"infinity", "-infinity"} <= {row["_exact"]["day"] for row in changes if row["_exact"]}
