"""A lake in a bucket of a real S3 server: copied, followed, continued, repaired and read like any other."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.integration.lake.equality import assert_equal, assert_published, execute
from tests.running import connector_of, running
from tests.s3 import S3Server

import tailrace
from tailrace.errors import DefiniteError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.lake.maintenance import Maintenance
from tailrace.lake.retention import Retention
from tailrace.model.lake_address import BucketLake
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.read.cut import NO_HOME, cut
from tailrace.read.duckdb import connect
from tailrace.settings import Confirm, ConnectorSettings, SnapshotMode
from tailrace.source.kinds import source_of

ORDERS, NOTES = "public.orders", "public.notes"
SETUP = """
create table orders (id int primary key, at timestamptz default now(), total numeric(10,2), note text);
alter table orders alter note set storage external;
insert into orders (id, total, note) select n, n / 7.0, repeat(md5(n::text), 100) from generate_series(1, 3000) n;
"""
CHANGES = """
update orders set total = total + 1 where id % 10 = 0;
delete from orders where id % 10 = 1;
insert into orders (id, total, note) values (5000, 1, 'new');
"""
_numbers = itertools.count(1)


@pytest.fixture
def lake(s3: S3Server, tmp_path: Path) -> BucketLake:
    bucket = s3.make_bucket(f"lakes-{tmp_path.name.replace('_', '-').lower()[:40]}-{next(_numbers)}")
    return BucketLake(f"{bucket}/shop", tuple(s3.options.items()), tmp_path / "home")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where key indexes of buckets lie."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def copies(lake: BucketLake) -> dict[str, int]:
    newest = LakeHome(lake).cuts.newest()
    assert newest is not None
    return newest.copies


def test_a_lake_in_a_bucket_is_copied_followed_continued_and_copied_again(database: str, lake: BucketLake) -> None:
    execute(database, SETUP)
    settings, source = ConnectorSettings(lake), source_of(database)
    with running(settings, source) as run:
        run.catch_up()
        assert_equal(database, lake, ORDERS)
        execute(database, CHANGES)
        run.catch_up()
        assert_equal(database, lake, ORDERS)
    execute(database, "update orders set note = 'short' where id < 500")
    execute(database, "create table notes (id int primary key, text text); insert into notes values (1, 'a')")
    with running(settings, source) as run:
        run.wait_for_state(NOTES, TableState.LIVE)
        run.catch_up()
        assert_equal(database, lake, ORDERS, NOTES)
        assert copies(lake) == {ORDERS: 1, NOTES: 1}, "nothing that was there is copied again"
        run.connector.resync(TableId.parse(ORDERS))
        run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, lake, ORDERS, NOTES)


def test_many_small_commits_are_merged_and_old_cuts_are_forgotten(database: str, lake: BucketLake) -> None:
    execute(database, SETUP)
    settings = ConnectorSettings(lake, publish_every_seconds=0.05)
    with running(settings, source_of(database)) as run, psycopg.connect(database, autocommit=True) as conn:
        run.catch_up()
        for number in range(40):
            conn.execute("update orders set total = %s where id %% 500 = %s", (number, number))
            run.catch_up()
        assert_published(database, lake, [ORDERS])
    home = LakeHome(lake)
    record, before = home.source(), home.place_of(TableId.parse(ORDERS)).names()
    assert record is not None
    assert any("checkpoint" in name for name in home.place_of(TableId.parse(ORDERS)).names("_delta_log"))
    kept = len(home.cuts.all())
    maintenance = Maintenance(home, Retention(0, 0), dry_run=False)
    assert maintenance.forget_cuts() == kept - 1
    table = TableId.parse(ORDERS)
    maintenance.prune(table, format_named(record.format).table(home.place_of(table)))
    assert len(home.place_of(table).names()) <= len(before)
    assert_published(database, lake, [ORDERS])


def test_a_lake_whose_source_was_told_of_the_log_is_not_continued_without_its_home_unless_tables_may_be_copied_again(
    database: str, lake: BucketLake
) -> None:
    execute(database, SETUP)
    settings = ConnectorSettings(lake, confirm=Confirm.DISK)
    with running(settings, source_of(database)) as run:
        run.catch_up()
    assert lake.home is not None
    shutil.rmtree(lake.home)
    execute(database, CHANGES)
    with connect(is_private=True) as connection:
        found = cut(connection, lake)
        assert found.note == NO_HOME
        assert found.sql("select count(*) from orders").fetchall() == [(3000,)]
    refused = connector_of(settings, source_of(database))
    refused.start()
    with pytest.raises(DefiniteError, match="the home of s3://") as error:
        refused.wait(60)
    assert "--snapshot-mode when_needed" in str(error.value.hint)
    assert not lake.home.exists()
    with running(replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED), source_of(database)) as run:
        run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, lake, ORDERS)
    with running(settings, source_of(database)) as run:
        run.catch_up()
    assert copies(lake) == {ORDERS: 2}
    assert tailrace.arrow(lake, "orders").num_rows == 2701
