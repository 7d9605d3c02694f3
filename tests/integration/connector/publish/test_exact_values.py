"""Values that their lake columns cannot hold: every one is in the lake as the source prints it, at every cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, assert_live, assert_published, execute
from tests.running import DIVIDED, running, sync_once
from tests.verifying import verify

import tailrace
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

ODD, BAG, TAKEN = "public.odd", "public.bag", "public.taken"
TABLES = (ODD, BAG, TAKEN)
LARGE, LARGE_ODD = "array_fill(7, array[900])", "array_fill(8, array[30, 30])"
COLUMNS = {
    "n": ["null", "0", "1"],
    "day": ["null", "'2024-01-01'", "'infinity'", "'0044-03-15 BC'", "'10000-01-01'"],
    "at": ["null", "'2024-01-01 00:00+02'", "'-infinity'"],
    "price": ["null", "1.50", "'NaN'"],
    "seats": ["null", "'{}'", "'{1,NULL,2}'", "'[0:1]={1,2}'", LARGE, LARGE_ODD],
    "words": ["null", """array['a"b', null, '']""", "'{{a},{b}}'"],
    "ratios": ["null", "'{0,-0,NaN,NULL}'", "'{-0,0,NaN,NULL}'", "'{{1},{2}}'"],
}
SHAPE = "n int, day date, at timestamptz, price numeric(6,2), seats int[], words text[], ratios float8[]"
SETUP = f"""
create table odd (id int primary key, {SHAPE}); alter table odd alter seats set storage external;
create table bag ({SHAPE}); alter table bag replica identity full; alter table bag alter seats set storage external;
create table taken (id int primary key, "_exact" text, day date);
insert into odd (id, n) select n, n from generate_series(1, 20) n;
insert into bag (n, seats) select n % 3, array[n % 2] from generate_series(1, 20) n;
insert into taken values (1, 'mine', '2024-01-01');
"""


class Writer:
    """Changes both tables at random, some of their values beyond what the lake's types hold."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._conn = psycopg.connect(dsn)
        self._rng = random.Random(seed)

    def work(self, transactions: int) -> None:
        for _ in range(transactions):
            with self._conn.transaction():
                for _ in range(self._rng.randint(1, 6)):
                    self._conn.execute(self._statement().encode())

    def close(self) -> None:
        self._conn.close()

    def _statement(self) -> str:
        name = self._rng.choice(list(COLUMNS))
        value, target = self._rng.choice(COLUMNS[name]), self._rng.randint(1, 25)
        values = ", ".join(self._rng.choice(COLUMNS[each]) for each in COLUMNS)
        few = ", ".join(self._rng.choice(COLUMNS[each][:3]) if each == name else COLUMNS[each][1] for each in COLUMNS)
        one = f"ctid = (select ctid from bag offset {self._rng.randint(0, 9)} limit 1)"
        return self._rng.choice(
            [
                f"insert into odd values ({target}, {values}) on conflict do nothing",
                f"update odd set {name} = {value} where id = {target}",
                f"update odd set {name} = {value} where id = {target}",
                f"update odd set n = 7 where id in ({target}, {target + 1})",
                f"update odd set id = {target + self._rng.choice([100, 200])} where id = {target} and not exists "
                f"(select from odd where id in ({target} + 100, {target} + 200))",
                f"delete from odd where id = {target}",
                f"insert into bag values ({values}), ({few}), ({few})",
                f"update bag set {name} = {value} where {one}",
                f"delete from bag where {one}",
                f"update taken set day = {self._rng.choice(COLUMNS['day'])}, \"_exact\" = '{target}'",
            ]
        )


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def writer(source: str) -> Iterator[Writer]:
    found = Writer(source, seed=7)
    yield found
    found.close()


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=3600, look_at_tables_seconds=0.5)


def map_columns(lake: Path, table: str) -> list[str]:
    found = tailrace.arrow(lake, table, published=True).schema
    return [field.name for field in found if pa.types.is_map(field.type)]


def test_every_value_is_there_at_every_cut_and_the_column_comes_with_the_first_one(
    source: str, writer: Writer, settings: ConnectorSettings
) -> None:
    sync_once(replace(settings, once=True), source_of(source))
    assert [map_columns(settings.lake, table) for table in TABLES] == [[], [], []]
    for _ in range(3):
        with running(settings, source_of(source)) as run:
            run.catch_up()
            for _ in range(3):
                writer.work(12)
                run.wait_for_live_reads()
                assert_live(source, run.lake, TABLES)
        sync_once(replace(settings, once=True), source_of(source))
        assert_published(source, settings.lake, TABLES)
    assert [map_columns(settings.lake, table) for table in TABLES] == [["_exact"], ["_exact"], ["_exact_"]]
    with running(replace(settings, publish_every_seconds=0.01), source_of(source)) as run:
        run.catch_up()
        assert {record.copy for record in run.connector.tables().values()} == {1}, "nothing was taken for drift"
        for table in ("odd", "bag"):
            run.connector.resync(TableId("public", table))
        writer.work(5)
        for table in (ODD, BAG):
            run.wait_for_state(table, TableState.LIVE, copy=2)
        writer.work(5)
        run.catch_up()
        assert_equal(source, run.lake, *TABLES)
        execute(source, "truncate odd, bag; insert into odd (id) values (1); insert into bag (n) values (1)")
        run.catch_up()
        assert_equal(source, run.lake, *TABLES)


@pytest.mark.proof
@pytest.mark.timeout(400)
def test_both_engines_executors_and_verify_see_what_columns_cannot_hold(
    source: str, writer: Writer, settings: ConnectorSettings, spark: SparkSession
) -> None:
    writer.work(20)
    with running(settings, source_of(source), spark) as run:
        run.catch_up()
        writer.work(30)
        run.wait_for_live_reads()
        assert_live(source, run.lake, TABLES, spark)
        for engine in (None, spark):
            found = verify(source, run.lake, engine)
            assert found.is_equal, found
    sync_once(replace(settings, once=True, sizes=DIVIDED), source_of(source), spark)
    assert_published(source, settings.lake, TABLES, spark)
    with running(replace(settings, publish_every_seconds=0.01), source_of(source), spark) as run:
        execute(source, "insert into odd (id, day) values (5000, 'infinity')")
        run.catch_up()
        path = settings.lake / "public" / "odd"
        spark.sql(f"update delta.`{path}` set _exact = map('day', '-infinity') where id = 5000")
        for engine in (None, spark):
            (report,) = verify(source, run.lake, engine, ODD).tables
            assert (report.verdict, [each.columns for each in report.keys]) == ("different", [("_exact",)])
