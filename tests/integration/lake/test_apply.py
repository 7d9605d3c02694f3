"""Every kind of change, read live, published on the driver and published on executors: always the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare, compare_frames
from pyspark.sql import SparkSession
from tests.postgres import wait_until

import tailrace
from tailrace.connector import batch
from tailrace.connector.apply import Applier
from tailrace.connector.home import LakeHome
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId
from tailrace.snapshot.initial import InitialSnapshot, SnapshotPlan
from tailrace.source.postgres.capture import CaptureOptions, run
from tailrace.source.postgres.catalog import list_tables
from tailrace.source.postgres.connection import connect
from tailrace.source.postgres.identity import identify, wal_position
from tailrace.source.postgres.publication import ensure_publication
from tailrace.source.postgres.slot import create_slot

TABLES = ["public.wide", "public.pair", "public.full"]

SETUP = """
create table wide (id bigint primary key, amount numeric(12,2), at timestamptz, local timestamp, note text, big text);
alter table wide alter column big set storage external;
create table pair (a int, b text, v double precision, primary key (a, b));
create table "full" (id int primary key, big text, v int);
alter table "full" alter column big set storage external;
alter table "full" replica identity full;
insert into wide
  select n, n / 3.0, now(), '2024-03-31 02:30:00', 'n' || n, case when n % 5 = 0 then repeat(md5(n::text), 200) end
  from generate_series(1, 500) n;
insert into pair select n % 20, 'b' || n, n / 7.0 from generate_series(1, 300) n;
insert into "full" select n, repeat(md5(n::text), 150), n from generate_series(1, 100) n;
"""

ROUNDS = {
    "inserts, updates and deletes of the same keys": """
        insert into wide select n, n, now(), now()::timestamp, '', null from generate_series(501, 700) n;
        update wide set amount = amount * 2 where id % 3 = 0;
        delete from wide where id % 7 = 0;
        insert into wide select n, 0, null, null, null, 'again' from generate_series(7, 70, 7) n;
        delete from pair where a < 3; update pair set v = 'NaN' where a = 5;
    """,
    "large values that the source leaves out": """
        update wide set note = 'touched' where id % 10 = 5;
        update wide set note = 'twice' where id % 20 = 5;
        update "full" set v = -v;
        update "full" set big = 'short' where id < 10; update "full" set v = 0 where id < 20;
    """,
    "rows that change their key and leave large values out": """
        update wide set id = id + 100000 where id % 50 = 25;
        update wide set id = id + 100000, note = 'moved twice' where id > 100000;
        update pair set b = b || '!' where a = 7;
        update "full" set id = id + 1000 where id % 9 = 0;
        insert into wide select n, 1, null, null, 'in a freed place', null from generate_series(25, 475, 50) n;
    """,
    "truncates in the middle of other changes": """
        insert into pair values (900, 'gone', 1);
        truncate pair, "full";
        insert into pair select n, 'after', n from generate_series(1, 50) n;
        update pair set v = 0 where a < 10; delete from pair where a = 11;
    """,
    "columns that come and go": """
        alter table wide add column extra int;
        update wide set extra = 1 where id < 50;
        alter table wide drop column note;
        insert into wide values (900000, 1, null, null, 'big', 2);
    """,
}


class Copy:
    """A connector taken apart: capture in a thread, snapshot and apply at our word."""

    def __init__(self, dsn: str, spark: SparkSession, folder: Path) -> None:
        self.dsn, self.spark = dsn, spark
        self.home = LakeHome.create(folder / "lake")
        tables = [TableId(*name.split(".")) for name in TABLES]
        with connect(dsn) as conn, connect(dsn, replication=True) as replication_conn:
            source = self.home.claim(identify(replication_conn).log_identity, None, None)
            ensure_publication(conn, source.publication, tables, ours=True)
        create_slot(dsn, source.slot)
        self.stopping = threading.Event()
        options = CaptureOptions(dsn, source.slot, source.publication, self.home.log)
        self.capture = threading.Thread(target=run, args=(options, self.stopping, print), daemon=True)
        self.capture.start()
        wait_until((self.home.log / "head").exists, 20)
        self.reader = LogReader(self.home.log)
        InitialSnapshot(spark, SnapshotPlan(dsn, tables, self.home.table_path, 1 << 16, 2)).run(lambda: None)
        with connect(dsn) as conn:
            relations = [(info.table, info.relation) for info in list_tables(conn, []) if info.table in tables]
        self.applier = Applier(spark, self.home, relations, 2)
        self.applier.start(self.reader, self.reach, time.time_ns() // 1000)

    def reach(self, lsn: Lsn) -> None:
        wait_until(lambda: self.reader.refresh().lsn >= lsn, 20)

    def publish(self) -> None:
        self.applier.advance(self.reader, self.reader.head.seq)

    def catch_up(self) -> None:
        with connect(self.dsn) as conn:
            self.reach(wal_position(conn))


@pytest.fixture
def copy(database: str, spark: SparkSession, tmp_path: Path) -> Iterator[Copy]:
    with psycopg.connect(database) as conn:
        conn.execute(SETUP)
    copy = Copy(database, spark, tmp_path)
    yield copy
    copy.stopping.set()
    copy.capture.join(20)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("driver_bytes_max", [batch.DRIVER_BYTES_MAX, 0], ids=["on the driver", "on executors"])
def test_after_every_kind_of_change_live_read_and_lake_equal_the_source(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, driver_bytes_max: int
) -> None:
    monkeypatch.setattr(batch, "DRIVER_BYTES_MAX", driver_bytes_max)
    assert [t for t in compare(copy.dsn, copy.spark, copy.home.path, TABLES) if not t.equal] == []
    for name, script in ROUNDS.items():
        with psycopg.connect(copy.dsn) as conn:
            conn.execute(script)
        copy.catch_up()
        live = tailrace.cut(copy.spark, copy.home.path)
        frames = {table: _present(copy, table, frame) for table, frame in live.tables.items()}
        assert [t for t in compare_frames(copy.dsn, frames) if not t.equal] == [], f"live: {name}"
        copy.publish()
        lake = tailrace.cut(copy.spark, copy.home.path, published=True)
        frames = {table: _present(copy, table, frame) for table, frame in lake.tables.items()}
        assert [t for t in compare_frames(copy.dsn, frames) if not t.equal] == [], f"published: {name}"


def test_a_cut_can_be_read_as_of_any_commit_between_two_published_ones(copy: Copy) -> None:
    seen = []
    with psycopg.connect(copy.dsn, autocommit=True) as conn:
        for number in range(3):
            conn.execute("update wide set amount = %s where id = 1", (number,))
            copy.catch_up()
            seen.append(tailrace.cut(copy.spark, copy.home.path).lsn)
            if number == 1:
                copy.publish()
    for number, lsn in enumerate(seen):
        cut = tailrace.cut(copy.spark, copy.home.path, as_of=str(lsn))
        assert cut.lsn == lsn
        assert float(cut.sql("select amount from public.wide where wide.id = 1").collect()[0][0]) == number
    with pytest.raises(DefiniteError, match="no cut as old"):
        tailrace.cut(copy.spark, copy.home.path, as_of="2001-01-01")


def test_a_column_added_with_a_default_for_old_rows_stops_with_a_clear_error(copy: Copy) -> None:
    with psycopg.connect(copy.dsn) as conn:
        conn.execute("alter table pair add column d int default 5; insert into pair values (1001, 'new', 1)")
    copy.catch_up()
    for attempt in (copy.publish, lambda: tailrace.cut(copy.spark, copy.home.path)):
        with pytest.raises(DefiniteError, match="column d was added with '5'"):
            attempt()


def test_a_column_renamed_before_its_table_s_first_change_stops_with_a_clear_error_and_nothing_is_published(
    copy: Copy,
) -> None:
    with psycopg.connect(copy.dsn) as conn:
        conn.execute("alter table pair rename column v to w; insert into pair values (1001, 'new name', 1)")
    copy.catch_up()
    cuts = len(copy.home.cuts.all())
    for attempt in (copy.publish, lambda: tailrace.cut(copy.spark, copy.home.path)):
        with pytest.raises(DefiniteError, match="column v was renamed to w"):
            attempt()
    assert len(copy.home.cuts.all()) == cuts


def _present(copy: Copy, table: str, frame):  # type: ignore[no-untyped-def]
    """Without the columns the source has dropped: the lake keeps them."""
    namespace, name = table.split(".")
    with psycopg.connect(copy.dsn) as conn:
        rows = conn.execute(
            "select attname from pg_attribute where attrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
            "and attnum > 0 and not attisdropped",
            (namespace, name),
        ).fetchall()
    present = {row[0] for row in rows}
    return frame.select([column for column in frame.columns if column in present])
