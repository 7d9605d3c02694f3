"""Tables in trouble, tables that come and tables that go, beside others that keep streaming: Postgres and Delta."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, assert_live, execute
from tests.journey import run as run_command
from tests.running import Running, running, sync_once

import tailrace
from tailrace.connector.events import StreamProgressed
from tailrace.connector.status import lake_status
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

LOOKS = 10
GOOD, TIMES, NAMES, DOOMED = "public.good", "public.times", "public.names", "public.doomed"

SETUP = """
create table good (id int primary key, v text);
insert into good select n, 'v' || n from generate_series(1, 100) n;
create table times (id int, at timestamptz, primary key (id, at));
insert into times values (1, '2024-03-31 02:30:00');
create table names (id int primary key, v text);
insert into names values (1, 'one'), (2, 'two');
create table doomed (id int primary key);
insert into doomed values (1);
"""

TROUBLE = """
update good set v = 'streamed' where id % 2 = 0;
insert into times values (3, '2024-10-27 02:30:00');
alter table times drop constraint times_pkey;
alter table names rename column v to w;
insert into names values (3, 'three');
drop table doomed;
"""

REASONS = {
    TIMES: r"table public\.times has no primary key",
    DOOMED: r"table public\.doomed is gone from the source",
}


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1, look_at_tables_seconds=0.5)


def test_a_table_in_trouble_stops_alone_says_why_everywhere_and_is_brought_back_beside_the_others(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(settings, source_of(source), spark) as run:
        run.catch_up()
        assert_live(source, run.lake, [GOOD, TIMES, NAMES, DOOMED])
        execute(source, TROUBLE)
        for table in REASONS:
            run.wait_for_state(table, TableState.ERRORED)
        execute(source, "delete from good where id < 10; insert into names values (4, 'four')")
        run.catch_up()
        assert_equal(source, run.lake, GOOD, NAMES)
        assert_trouble_is_told(spark, run.lake)

    states = sync_once(replace(settings, once=True), source_of(source), spark)
    assert states == dict.fromkeys((GOOD, NAMES), TableState.LIVE) | dict.fromkeys(REASONS, TableState.ERRORED)
    assert_trouble_is_told(spark, settings.lake)
    assert_listed(settings.lake)

    execute(source, "alter table times add primary key (id, at); create table doomed (id int primary key, v text)")
    assert "by the next tailrace sync" in run_command("tables", "resync", str(settings.lake), "times").stdout
    with running(settings, source_of(source), spark) as run:
        run.wait_for_state(TIMES, TableState.LIVE, copy=2)
        asked = run_command("tables", "resync", str(settings.lake), NAMES)
        assert (asked.returncode, "by the running sync" in asked.stdout) == (0, True)
        run.wait_for_state(NAMES, TableState.LIVE, copy=2)
        run.wait_for_state(DOOMED, TableState.LIVE, copy=2)
        execute(source, "insert into doomed values (7, 'back'); delete from names where id = 1; delete from good")
        run.catch_up()
        assert_equal(source, run.lake, GOOD, TIMES, NAMES, DOOMED)


def assert_trouble_is_told(spark: SparkSession, lake: Path) -> None:
    """By every query that names the table, with its last good state; by no other."""
    cut = tailrace.cut(spark, lake, register=False)
    assert set(cut.tables) == {GOOD, NAMES}
    assert cut.sql("select count(*) from good").collect()[0][0] == 91
    for table, reason in REASONS.items():
        with pytest.raises(DefiniteError, match=rf"table {re.escape(table)} is errored: .*{reason}") as caught:
            cut.sql(f"select * from good join {table} on true")
        (last_good,) = re.findall(r"its last good state: --as-of (\S+)", str(caught.value.hint))
        older = tailrace.cut(spark, lake, as_of=last_good, register=False)
        assert [row.id for row in older.tables[table].orderBy("id").collect()] == [1]


def assert_listed(lake: Path) -> None:
    """By `tailrace tables`: state, lag, reason, hint."""
    shown = run_command("tables", str(lake))
    assert shown.returncode == 1, shown
    listed, _, _ = shown.stdout.partition("\n\n")
    lines = {line.split()[0]: line for line in listed.splitlines() if line.startswith("public.")}
    assert lines[GOOD].split() == [GOOD, "live", "0"]
    assert lines[TIMES].split()[1:3] == ["errored", "1"]
    assert lines[NAMES].split() == [NAMES, "live", "0"]
    for table, reason in REASONS.items():
        assert re.search(rf"^{re.escape(table)} is errored\n  .*{reason}", shown.stdout, re.MULTILINE), shown.stdout
    assert "replicaidentityfull,oraddaprimarykey" in "".join(shown.stdout.split()), "folded, however long it is"
    assert "--exclude public.doomed" in shown.stdout
    assert "connector stopped, not running" in shown.stdout


@pytest.fixture
def limited(source: str) -> Iterator[str]:
    """The DSN of a role that owns no table and may read one of two, which the owner has published."""
    execute(
        source,
        "create role limited login replication; grant usage on schema public to limited; "
        "grant select on good to limited; create publication given for table good, names",
    )
    yield source.replace("postgres@", "limited@")
    execute(source, "drop owned by limited; drop role limited")


def test_a_table_that_may_not_be_read_is_left_out_until_the_right_is_granted(
    source: str, limited: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    chosen = replace(settings, tables=(GOOD, NAMES))
    with running(chosen, source_of(limited, publication="given"), spark) as run:
        run.wait_for_state(NAMES, TableState.ERRORED)
        run.wait_for_state(GOOD, TableState.LIVE)
        execute(source, "delete from good where id < 10; insert into names values (3, 'three')")
        run.catch_up()
        assert_equal(source, run.lake, GOOD)
        refused = record(run, NAMES)
        assert "limited may not read table public.names" in str(refused.reason)
        with pytest.raises(DefiniteError, match=r"public\.names is errored: user limited may not read"):
            tailrace.cut(spark, run.lake, register=False).sql("select * from names")
    assert sync_once(replace(chosen, once=True), source_of(limited), spark)[NAMES] is TableState.ERRORED

    with running(chosen, source_of(limited), spark) as run:
        run.catch_up()
        assert refused.hint is not None
        execute(source, refused.hint)
        run.wait_for_state(NAMES, TableState.LIVE)
        execute(source, "delete from names where id = 1")
        run.catch_up()
        assert_equal(source, run.lake, GOOD, NAMES)


def record(run: Running, table: str) -> TableRecord:
    (found,) = [each.record for each in lake_status(LakeHome.find(run.lake)).tables if str(each.table) == table]
    return found


@pytest.mark.proof
def test_a_table_that_is_created_while_the_database_is_busy_is_taken_in(
    source: str, settings: ConnectorSettings, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    always = replace(settings, look_at_tables_seconds=0.0, publish_every_seconds=2.0)
    with running(always, source_of(source), spark) as run:
        run.catch_up()
        with Busy(source):
            execute(source, "create table later (id int primary key); insert into later values (1)")
            run.wait_for_state("public.later", TableState.LIVE)
            told = len(run.events)
            run.wait_for(lambda: sum(isinstance(each, StreamProgressed) for each in run.events[told:]) > LOOKS)
        run.catch_up()
        assert_equal(source, run.lake, GOOD, "public.later")
    assert "could not look at the tables" not in caplog.text


class Busy:
    """Commits as fast as the server takes it, inside `with`."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            while not self._stopping.is_set():
                conn.execute("update good set v = v || '.' where id = 1")
                self._stopping.wait(0.002)


def test_tables_that_come_and_tables_that_were_not_sent_or_left_out_for_a_while_are_copied_beside_the_others(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(settings, source_of(source), spark) as run:
        run.catch_up()
        execute(
            source,
            """
            create table parts (id int, region text, primary key (id, region)) partition by list (region);
            create table parts_eu partition of parts for values in ('eu');
            create table parts_rest partition of parts default;
            insert into parts select n, case when n % 2 = 0 then 'eu' else 'us' end from generate_series(1, 100) n;
            """,
        )
        run.wait_for_state("public.parts", TableState.LIVE)
        execute(source, "delete from parts where id < 10; update parts set region = 'asia' where id > 90")
        run.catch_up()
        assert_equal(source, run.lake, GOOD, "public.parts")

    once = replace(settings, once=True)
    states = sync_once(replace(once, exclude=(TIMES,)), source_of(source), spark)
    assert states[TIMES] is TableState.REMOVED
    with pytest.raises(DefiniteError, match=r"public\.times is removed"):
        tailrace.cut(spark, settings.lake, register=False).sql("select * from times")
    execute(
        source,
        """
        do $$ begin
          execute format('alter publication %I drop table names', (select pubname from pg_publication));
        end $$;
        update names set v = 'not sent'; delete from times; delete from parts where region = 'eu';
        """,
    )
    assert set(sync_once(once, source_of(source), spark).values()) == {TableState.LIVE}
    assert_equal(source, settings.lake, GOOD, TIMES, NAMES, DOOMED, "public.parts")
    cuts = LakeHome(settings.lake).cuts.all()
    sync_once(once, source_of(source), spark)
    assert LakeHome(settings.lake).cuts.all() == cuts, "an idle database is caught up with at once"
    with psycopg.connect(source) as conn:
        assert conn.execute("select count(*) from pg_publication").fetchone() == (1,)


def test_a_copy_that_waits_for_a_transaction_says_so_and_does_not_hold_up_the_others_or_the_stop(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(settings, source_of(source), spark) as run, psycopg.connect(source) as blocker:
        run.catch_up()
        execute(source, "create table later (id int primary key)")
        run.wait_for_state("public.later", TableState.LIVE)
        blocker.execute("insert into doomed values (2)")
        pid = blocker.info.backend_pid
        run.connector.resync(TableId("public", "doomed"))
        run.wait_for(lambda: f"waits for pid {pid}" in (run.connector.status().trouble or ""))
        execute(source, "delete from good where id = 1")
        run.catch_up()
        assert_equal(source, run.lake, GOOD)
        started = time.monotonic()
        run.connector.stop()
        assert run.connector.wait(30)
        assert time.monotonic() - started < 10
        blocker.rollback()
        blocker.autocommit = True
        assert blocker.execute("select count(*) from pg_replication_slots where temporary").fetchone() == (0,)
    with running(settings, source_of(source), spark) as run:
        run.wait_for_state("public.doomed", TableState.LIVE, copy=2)


def test_a_table_that_waits_to_be_published_is_told_and_does_not_hold_up_the_others(
    source: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(settings, source_of(source), spark) as run, psycopg.connect(source) as blocker:
        run.catch_up()
        blocker.execute("lock table pg_publication_rel in exclusive mode")
        execute(source, "create table later (id int primary key); delete from good where id = 1")
        pid = blocker.info.backend_pid
        run.wait_for(lambda: f"publishing the tables waits for pid {pid}" in (run.connector.status().trouble or ""))
        for number in range(2, 5):
            execute(source, f"delete from good where id = {number}")
            run.catch_up()
        assert_equal(source, run.lake, GOOD)
        blocker.rollback()
        run.wait_for_state("public.later", TableState.LIVE)
        run.wait_for(lambda: run.connector.status().trouble is None)
