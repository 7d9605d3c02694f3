"""Every kind of change, read live, published on the driver and published on executors: always the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import assert_live, assert_published, execute
from tests.running import DIVIDED, running, sync_once

import tailrace
from tailrace.engine.door import Engine
from tailrace.errors import DefiniteError
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLES = ("public.wide", "public.pair", "public.full", "public.empty")

SETUP = """
create table wide (id bigint primary key, amount numeric(12,2), at timestamptz, local timestamp, note text, big text);
alter table wide alter column big set storage external;
create table pair (a int, b text, v double precision, primary key (a, b));
create table "full" (id int primary key, big text, v int);
alter table "full" alter column big set storage external;
alter table "full" replica identity full;
create table empty (id int primary key, at timestamptz);
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
        insert into empty values (1, now()); delete from empty;
    """,
}


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1, chunk_bytes_max=1 << 16)


def test_after_every_kind_of_change_a_live_read_equals_the_source_and_so_does_one_publish_of_all_of_them(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(replace(settings, publish_every_seconds=3600), source_of(source), spark) as run:
        run.catch_up()
        assert_published(source, run.lake, TABLES)
        for script in ROUNDS.values():
            execute(source, script)
            run.wait_for_live_reads()
            assert_live(source, run.lake, TABLES)
    sync_once(replace(settings, once=True), source_of(source), spark)
    assert_published(source, settings.lake, TABLES, spark)


def assert_each_round_published(source: str, settings: ConnectorSettings, engine: SparkSession | Engine) -> None:
    with running(settings, source_of(source), engine) as run:
        run.catch_up()
        for script in ROUNDS.values():
            execute(source, script)
            run.catch_up()
            assert_published(source, run.lake, TABLES)


def test_publishing_every_kind_of_change_by_itself_in_one_task_a_table_equals_the_source(
    source: str, settings: ConnectorSettings
) -> None:
    assert_each_round_published(source, settings, OneThread(travels=True))


def test_publishing_every_kind_of_change_by_itself_dealt_out_by_key_equals_the_source(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    assert_each_round_published(source, replace(settings, sizes=DIVIDED), spark)


def test_a_cut_can_be_read_as_of_any_commit_between_two_published_ones(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    seen = []
    with psycopg.connect(source, autocommit=True) as conn:
        for numbers in ((0, 1), (2,)):
            with running(replace(settings, publish_every_seconds=3600), source_of(source), spark) as run:
                run.catch_up()
                for number in numbers:
                    conn.execute("update wide set amount = %s where id = 1", (number,))
                    run.wait_for_live_reads()
                    seen.append(tailrace.cut(spark, run.lake).text)
    for number, text in enumerate(seen):
        cut = tailrace.cut(spark, settings.lake, as_of=text)
        assert cut.text == text
        assert float(cut.sql("select amount from public.wide where wide.id = 1").collect()[0][0]) == number
    with pytest.raises(DefiniteError, match="no cut as old"):
        tailrace.cut(spark, settings.lake, as_of="2001-01-01")
