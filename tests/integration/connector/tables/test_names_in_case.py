"""Columns whose names differ only in case: all of them are in the lake, under names that every reader tells apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from demo.compare import compare_tables
from pyspark.sql import SparkSession
from tests.engines import assert_same_in_duckdb
from tests.integration.lake.equality import execute
from tests.running import running, sync_once
from tests.verifying import verify

import tailrace
from tailrace.connector.connector import Connector
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLES = ("public.twins", "public.keys")
NAMES: Mapping[str, dict[str, str]] = {
    "public.twins": {"id": "id", "Name": "Name", "name_3": "name", "day": "day", "Day_5": "Day"},
    "public.keys": {"Id": "Id", "id_2": "id", "v": "v"},
}
SETUP = """
create table twins (id int primary key, "Name" text, name text, day date, "Day" date);
alter table twins alter "Name" set storage external, alter name set storage external;
create table keys ("Id" int, id int, v text, primary key (id, "Id"));
insert into twins select n, repeat('N', 3000) || n, repeat('n', 3000) || n, '2024-01-01', '2024-01-02'
    from generate_series(1, 20) n;
insert into keys select n, n % 3, 'v' from generate_series(1, 20) n;
"""
CHANGES = """
update twins set "Day" = '2024-02-01' where id < 5; update twins set name = 'small' where id = 6;
update twins set id = id + 100 where id > 18; delete from twins where id = 7;
update keys set id = id + 10 where "Id" = 3; update keys set "Id" = 30 where "Id" = 4; delete from keys where "Id" = 5;
"""


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, look_at_tables_seconds=0.5, once=True)


def assert_equal(dsn: str, lake: Path, names: Mapping[str, dict[str, str]]) -> None:
    """Live and published, under these lake names for the source's."""
    for published in (False, True):
        found = {table: tailrace.arrow(lake, table, published=published) for table in names}
        for table, called in names.items():
            columns = [name for name in found[table].column_names if name != "_exact"]
            assert sorted(columns) == sorted(called)
            found[table] = _called(found[table], called)
        assert [each for each in compare_tables(dsn, found) if not each.equal] == []


def _called(rows: pa.Table, names: dict[str, str]) -> pa.Table:
    """The rows under the source's names, those in their maps too."""
    if "_exact" in rows.column_names:
        maps = [[(names[key], text) for key, text in each] if each else None for each in rows["_exact"].to_pylist()]
        kept = pa.array(maps, pa.map_(pa.string(), pa.string()))
        rows = rows.set_column(rows.column_names.index("_exact"), "_exact", kept)
    return rows.rename_columns([names.get(name, name) for name in rows.column_names])


def copies(settings: ConnectorSettings, dsn: str) -> dict[str, int]:
    return {str(table): record.copy for table, record in Connector(settings, source_of(dsn)).tables().items()}


def test_they_are_copied_followed_and_copied_again_by_windows_with_their_values_apart(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    assert set(sync_once(settings, source_of(database)).values()) == {TableState.LIVE}
    assert_equal(database, settings.lake, NAMES)
    with running(replace(settings, once=False), source_of(database)) as run:
        execute(database, CHANGES)
        run.catch_up()
        assert_equal(database, run.lake, NAMES)
        for table in TABLES:
            run.connector.resync(TableId(*table.split(".")))
        execute(
            database, "update twins set \"Day\" = 'infinity' where id = 8; update twins set day = null where id = 9"
        )
        for table in TABLES:
            run.wait_for_state(table, TableState.LIVE, copy=2)
        execute(
            database, "insert into twins values (50, 'N', 'n', '-infinity', 'infinity'); delete from keys where id = 1"
        )
        run.catch_up()
        assert_equal(database, run.lake, NAMES)
    sync_once(settings, source_of(database))
    assert copies(settings, database) == dict.fromkeys(TABLES, 2)


def test_a_definition_that_moves_is_followed_by_the_columns_numbers(database: str, settings: ConnectorSettings) -> None:
    execute(database, "create table twins (id int primary key, name text); insert into twins values (1, 'n')")
    with running(replace(settings, once=False), source_of(database)) as run:

        def moves_to(script: str, names: dict[str, str], row: str, copy: int = 1) -> None:
            execute(database, script)
            execute(database, f"insert into twins values ({row})")
            run.wait_for_state("public.twins", TableState.LIVE, copy)
            run.catch_up()
            assert_equal(database, run.lake, {"public.twins": names})

        moves_to('alter table twins add "NAME" text', {"id": "id", "name": "name", "NAME_3": "NAME"}, "2, 'n', 'N'")
        # A real column of the name that another one has got: it is the later one, and the other keeps the name.
        names = {"id": "id", "name": "name", "NAME_3": "NAME", "name_3_4": "name_3"}
        moves_to("alter table twins add name_3 text", names, "3, 'n', 'N', '3'")
        moves_to("alter table twins drop name_3", {"id": "id", "name": "name", "NAME_3": "NAME"}, "4, 'n', 'N'")
        moves_to(
            "alter table twins rename name to title", {"id": "id", "title": "title", "NAME": "NAME"}, "5, 't', 'N'"
        )
        names = {"id": "id", "title": "title", "TITLE_3": "TITLE"}
        moves_to('alter table twins rename "NAME" to "TITLE"', names, "6, 't', 'T'")
        assert copies(settings, database) == {"public.twins": 1}
        # The names go from one to the other: what the lake cannot do in one step is a copy.
        moves_to(
            'alter table twins rename title to x; alter table twins rename "TITLE" to title; '
            'alter table twins rename x to "TITLE"',
            {"id": "id", "TITLE": "TITLE", "title_3": "title"},
            "7, 't', 'T'",
            copy=2,
        )
        moves_to('alter table twins drop "TITLE"', {"id": "id", "title": "title"}, "8, 't'")
    assert copies(settings, database) == {"public.twins": 2}


def test_rows_are_read_again_by_keys_that_the_lake_calls_otherwise(database: str) -> None:
    execute(database, SETUP)
    source = source_of(database)
    (table,) = source.tables(["public.keys"], [])
    with source.window() as point:
        chunk = source.chunk_of_keys(table, pa.table({"Id": [4, 9], "id_2": [1, 0]}))
        rows = [row for batch in source.read_chunk(point, chunk, table.schema) for row in batch.to_pylist()]
    assert sorted((row["Id"], row["id_2"]) for row in rows) == [(4, 1), (9, 0)]


@pytest.mark.proof
def test_spark_verify_and_the_change_feed_tell_them_apart(
    database: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    execute(database, SETUP)
    sync_once(settings, source_of(database), spark)
    execute(database, CHANGES + "update twins set \"Day\" = 'infinity' where id = 8")
    with running(replace(settings, once=False, publish_every_seconds=3600), source_of(database), spark) as run:
        run.wait_for_live_reads()
        for published in (False, True):
            cut = tailrace.cut(spark, run.lake, published=published, register=False)
            assert_same_in_duckdb(cut, run.lake, list(TABLES), published=published)
        assert tailrace.cut(spark, run.lake).sql("select NAME_3 from twins where id = 6").collect()[0][0] == "small"
    for engine in (None, spark):
        found = verify(database, settings.lake, engine)
        assert found.is_equal, found
    tailrace.register(spark)
    changes = spark.read.format("tailrace").option("table", "twins").load(str(settings.lake))
    assert [row["name_3"] for row in changes.where("id = 6").collect()] == ["small"]
