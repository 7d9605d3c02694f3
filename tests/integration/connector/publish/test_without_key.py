"""Tables without a key, replica identity full: every row as often as the source has it, at every cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, assert_live, assert_published, execute
from tests.running import DIVIDED, Running, running, sync_once
from tests.verifying import verify

from tailrace.connector.events import TableChanged
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

EVENTS, PLAIN = "public.events", "public.plain"
TABLES = (EVENTS, PLAIN, "public.single", "public.zeros", "public.deferred")
COLUMNS = {
    "n": ["null", "0", "1"],
    "f": ["null", "'0'", "'-0'", "'NaN'", "1.5"],
    "r": ["null", "'0'", "'-0'", "'NaN'"],
    "t": ["null", "''", "'null'", "E'a\\n'", "'ä'"],
    "big": ["null", "repeat('x', 3000)", "repeat('y', 3000)"],
    "price": ["null", "0", "-1.50"],
    "free": ["1.0", "1.00", "'NaN'"],
    "raw": ["null", "''", "'\\x00'"],
    "at": ["null", "'2024-01-01 00:00:00.000001+00'"],
    "local": ["null", "'0001-01-01'"],
    "day": ["null", "'9999-12-31'"],
    "yes": ["null", "true"],
}
SETUP = """
create table events (n int, f float8, r real, t text, big text, price numeric(12,2), free numeric, raw bytea,
                     at timestamptz, local timestamp, day date, yes boolean);
alter table events alter big set storage external;
create table plain (id int, "place" text, "it's ""odd"".`x`" int);
create table single (v bigint);
create table zeros (f float8, r real);
create table deferred (id int primary key deferrable initially deferred, v int);
alter table events replica identity full; alter table plain replica identity full;
alter table single replica identity full; alter table zeros replica identity full;
alter table deferred replica identity full;
insert into plain select n % 10, 'p' || n % 3, null from generate_series(1, 300) n;
insert into single select null from generate_series(1, 5);
insert into zeros select v::float8, v::real from unnest(array['0', '0', '0', '-0', '-0', '-0', 'NaN']) v;
insert into deferred select n, 0 from generate_series(1, 10) n;
"""
NO_MINUS = "delete from zeros where ctid in (select ctid from zeros where f::text = '-0' limit 2)"


class Writer:
    """Someone who changes the tables at random, a few statements a transaction."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._conn = psycopg.connect(dsn)
        self._rng = random.Random(seed)

    def work(self, transactions: int) -> None:
        for _ in range(transactions):
            with self._conn.transaction():
                for _ in range(self._rng.randint(1, 8)):
                    self._conn.execute(self._statement().encode())

    def _statement(self) -> str:
        choose: Callable[[Any], str] = self._rng.choice
        kinds = [self._insert] * 5 + [self._update] * 4 + [self._delete] * 2 + [self._others] * 2
        return choose(kinds)()

    def _insert(self) -> str:
        """Rows differ in two columns at most: many are equal, and many nearly."""
        varied = self._rng.sample(list(COLUMNS), 2)
        values = ", ".join(self._rng.choice(COLUMNS[each]) if each in varied else COLUMNS[each][1] for each in COLUMNS)
        return f"insert into events select {values} from generate_series(1, {self._rng.randint(1, 3)})"

    def _update(self) -> str:
        name = self._rng.choice(list(COLUMNS))
        return f"update events set {name} = {self._rng.choice(COLUMNS[name])} where ctid = {self._one('events')}"

    def _delete(self) -> str:
        return f"delete from events where ctid = {self._one('events')}"

    def _others(self) -> str:
        n = self._rng.randint(0, 9)
        return self._rng.choice(
            [
                f"delete from plain where ctid = {self._one('plain')}",
                f"insert into plain select id, place, {n} from plain where id = {n} limit 2",
                f"update plain set id = {n} where ctid = {self._one('plain')}",
                f"insert into single values ({n}), ({n}), (null)",
                f"delete from single where ctid = {self._one('single')}",
                "update deferred set id = 11 - id",
                "truncate single",
                "update events set n = n",
            ]
        )

    def _one(self, table: str) -> str:
        """Which of several equal rows is as good as any other."""
        return f"(select ctid from {table} offset {self._rng.randint(0, 8)} limit 1)"


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def writer(source: str) -> Iterator[Writer]:
    found = Writer(source, seed=5)
    found.work(20)
    yield found
    found._conn.close()


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=3600, look_at_tables_seconds=0.5)


def copies(run: Running) -> dict[str, int]:
    return {str(table): record.copy for table, record in run.connector.tables().items()}


def reasons(run: Running) -> list[str]:
    changed = [event.record for event in run.events if isinstance(event, TableChanged)]
    return [record.reason or "" for record in changed if record.state is TableState.RESYNCING]


def test_at_every_cut_each_row_is_there_as_often_as_in_the_source(
    source: str, writer: Writer, settings: ConnectorSettings
) -> None:
    """Live after each round, published after each run. Between runs the connector is gone; one run copies again."""
    with running(settings, source_of(source)) as run:
        run.catch_up()
        execute(source, NO_MINUS)
        for _ in range(4):
            writer.work(10)
            run.wait_for_live_reads()
            assert_live(source, run.lake, TABLES)
    writer.work(10)
    sync_once(replace(settings, once=True), source_of(source))
    assert_published(source, settings.lake, TABLES)
    with running(replace(settings, publish_every_seconds=0.01), source_of(source)) as run:
        for _ in range(5):
            writer.work(8)
            run.catch_up()
            assert_published(source, run.lake, TABLES)
        assert copies(run) == dict.fromkeys(TABLES, 1), "nothing was taken for drift"
        execute(source, "truncate events; insert into events (n) values (1), (1), (2)")
        run.connector.resync(TableId("public", "events"))
        writer.work(3)
        run.wait_for_state(EVENTS, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(source, run.lake, *TABLES)


def test_columns_that_come_and_go_are_followed_and_another_type_or_a_key_copies_again(
    source: str, settings: ConnectorSettings
) -> None:
    one = "ctid = (select min(ctid) from plain)"
    for step in ("add later int", 'rename place to "moved"', "drop moved"):
        with running(settings, source_of(source)) as run:
            run.catch_up()
            for statement in (
                f"delete from plain where {one}; insert into plain (id) values (1), (1), (2)",
                f"alter table plain {step}",
                f"delete from plain where {one}; update plain set id = 3 where {one}",
                "delete from plain where ctid in (select ctid from plain where id = 2 limit 3)",
            ):
                execute(source, statement)
                run.wait_for_live_reads()
            assert_live(source, run.lake, [PLAIN])
        sync_once(replace(settings, once=True), source_of(source))
        assert_published(source, settings.lake, [PLAIN])
    with running(replace(settings, publish_every_seconds=0.01), source_of(source)) as run:
        run.catch_up()
        assert copies(run)[PLAIN] == 1
        for copy, step in enumerate(("alter later type text", "add key serial primary key"), 2):
            execute(source, f"alter table plain {step}; delete from plain where ctid = (select min(ctid) from plain)")
            run.wait_for_state(PLAIN, TableState.LIVE, copy=copy)
            run.catch_up()
            assert_equal(source, run.lake, PLAIN)
        execute(source, "alter table plain drop key; update plain set later = 'all'")
        run.wait_for_state(PLAIN, TableState.LIVE, copy=4)
        run.catch_up()
        assert_equal(source, run.lake, PLAIN)


@pytest.mark.timeout(400)
def test_both_engines_executors_and_verify_count_equal_rows_and_drift_is_repaired(
    source: str, writer: Writer, settings: ConnectorSettings, spark: SparkSession
) -> None:
    with running(settings, source_of(source), spark) as run:
        run.catch_up()
        execute(source, NO_MINUS)
        writer.work(40)
        run.wait_for_live_reads()
        assert_live(source, run.lake, TABLES, spark)
        for engine, tables in ((None, TABLES), (spark, (EVENTS, "public.zeros"))):
            found = verify(source, run.lake, engine, *tables)
            assert found.is_equal, found
    sync_once(replace(settings, once=True, sizes=DIVIDED), source_of(source), spark)
    assert_published(source, settings.lake, TABLES, spark)
    with running(replace(settings, publish_every_seconds=0.01), source_of(source), spark) as run:
        run.catch_up()
        path = settings.lake / "public" / "plain"
        spark.sql(f"delete from delta.`{path}` where id = 3")
        (report,) = verify(source, run.lake, None, PLAIN).tables
        assert (report.verdict, {each.key["id"] for each in report.keys}) == ("different", {"3"})
        execute(source, "delete from plain where ctid = (select ctid from plain where id = 3 limit 1)")
        run.wait_for_state(PLAIN, TableState.LIVE, copy=2)
        run.catch_up()
        assert "another writer's DELETE" in reasons(run)[-1]
        assert_published(source, run.lake, TABLES)
