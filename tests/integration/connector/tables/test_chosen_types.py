"""Which lake type a column has: what a person chose, and what its copy was made with."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.integration.lake.equality import assert_equal, assert_live, execute
from tests.running import connector_of, running, sync_once

import tailrace
from tailrace.connector.connector import Connector
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLE = "public.t"


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, look_at_tables_seconds=0.5, once=True)


def lake_types(lake: Path) -> dict[str, str]:
    found = tailrace.arrow(lake, TABLE, published=True).schema
    return {field.name: str(field.type) for field in found}


def copy_of(lake: Path, source: Any) -> int:
    return Connector(ConnectorSettings(lake), source).tables()[TableId("public", "t")].copy


def as_an_older_tailrace_left_it(lake: Path) -> None:
    """Its definitions say nothing of types."""
    path = lake / "_tailrace" / "tables.json"
    stored = path.read_text()
    tables = json.loads(stored, object_hook=lambda each: {k: v for k, v in each.items() if k != "types"})
    assert '"types"' in stored
    path.write_text(json.dumps(tables))


def test_a_lake_of_an_older_tailrace_continues_with_its_text_arrays_until_a_table_is_copied_again(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table t (id int primary key, v int[], day date); insert into t values (1, '{1,2}')")
    # Text for the array, in the table and in the log: what the older rule made of it.
    sync_once(settings, source_of(database, as_text=["v"]))
    execute(database, "insert into t values (2, '{3}')")
    sync_once(settings, source_of(database, as_text=["v"]))
    as_an_older_tailrace_left_it(settings.lake)
    source = source_of(database)
    assert lake_types(settings.lake)["v"] == "string"
    with running(replace(settings, once=False, publish_every_seconds=3600), source) as run:
        run.catch_up()
        execute(database, "insert into t values (3, '{{1},{2}}', 'infinity'); update t set v = '{4,NULL}' where id = 1")
        run.wait_for_live_reads()
        assert_live(database, run.lake, [TABLE])
    sync_once(settings, source)
    assert_equal(database, settings.lake, TABLE)
    execute(database, "alter table t add w text[]; insert into t values (4, '{5}', null, '{a}')")
    sync_once(settings, source)
    assert_equal(database, settings.lake, TABLE)
    assert lake_types(settings.lake)["v"] == "string"
    assert copy_of(settings.lake, source) == 1
    with running(replace(settings, once=False), source) as run:
        run.connector.resync(TableId("public", "t"))
        run.wait_for_state(TABLE, TableState.LIVE, copy=2)
        execute(database, "insert into t values (5, '{6}', null, '{b}')")
        run.catch_up()
        assert_equal(database, run.lake, TABLE)
    assert lake_types(settings.lake)["v"].startswith("list<")


def test_a_column_is_text_where_a_person_wants_it_and_the_table_is_copied_when_that_changes(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table t (day date primary key, v int[]); insert into t values ('2024-01-01', '{1}')")
    typed, text = source_of(database), source_of(database, as_text=["public.t.day", "t.v"])
    sync_once(settings, typed)
    execute(database, "insert into t values ('infinity', '{{1}}')")
    with running(replace(settings, once=False), text) as run:
        run.wait_for_state(TABLE, TableState.LIVE, copy=2)
        execute(database, "update t set v = '{2}'; insert into t values ('0044-03-15 BC', '[0:0]={1}')")
        run.catch_up()
        assert_equal(database, run.lake, TABLE)
    assert lake_types(settings.lake) == {"day": "string", "v": "string"}
    execute(database, "delete from t where day <> '2024-01-01'")
    sync_once(settings, text)
    made = copy_of(settings.lake, text)
    sync_once(settings, typed)
    assert copy_of(settings.lake, typed) == made + 1
    assert_equal(database, settings.lake, TABLE)
    assert lake_types(settings.lake)["day"] == "date32[day]"


def test_a_numeric_without_precision_is_a_number_by_copy_and_stream_while_a_person_wants_it(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table t (id int primary key, v numeric); insert into t values (1, 1.50), (2, 'NaN')")
    number, text = source_of(database, as_text=["t.v=decimal(38,4)"]), source_of(database)
    sync_once(settings, number)
    execute(database, "insert into t values (3, 2.5), (4, 0.00001); update t set v = 7 where id = 2")
    sync_once(settings, number)
    rows = tailrace.arrow(settings.lake, TABLE, published=True).sort_by("id").to_pylist()
    assert [row["v"] for row in rows] == [Decimal("1.5"), Decimal(7), Decimal("2.5"), None]
    assert [dict(row["_exact"] or ()) for row in rows] == [{}, {}, {}, {"v": "0.00001"}]
    made = copy_of(settings.lake, number)
    sync_once(settings, text)
    assert copy_of(settings.lake, text) == made + 1
    assert_equal(database, settings.lake, TABLE)


def test_a_pattern_that_names_no_column_is_refused(database: str, settings: ConnectorSettings) -> None:
    execute(database, "create table t (id int primary key)")
    connector = connector_of(settings, source_of(database, as_text=["t.dya"]))
    connector.start()
    with pytest.raises(tailrace.errors.DefiniteError, match=r"no column matches 't\.dya'"):
        connector.wait(60)
