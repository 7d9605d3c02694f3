"""Queries over tables whose names are easily taken for each other: Postgres and Delta."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_published, execute
from tests.running import sync_once

import tailrace
from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLES = {
    "plain": TableId("public", "orders"),
    "like a full name": TableId("audit", "public.orders"),
    "a dotted namespace": TableId("audit.public", "orders"),
    "upper": TableId("sales", "Orders"),
    "dotted": TableId("public", "a.b"),
    "tick": TableId("public", "it`s"),
    "alone": TableId("sales", "lines"),
}


@pytest.fixture
def lake(database: str, tmp_path: Path, spark: SparkSession) -> Path:
    """Each table has one row, which says which it is."""
    execute(database, 'create schema audit; create schema "audit.public"; create schema sales')
    for which, table in TABLES.items():
        name = f'"{table.namespace}"."{table.name}"'
        execute(database, f"create table {name} (id int primary key, v text); insert into {name} values (1, '{which}')")
    sync_once(ConnectorSettings(tmp_path / "lake", once=True), source_of(database), spark)
    return tmp_path / "lake"


def test_every_name_means_one_table_or_is_refused_in_both_engines(lake: Path, spark: SparkSession) -> None:
    with connect(is_private=True) as connection:
        for session in (spark, connection):
            assert_named(tailrace.cut(session, lake), lambda query, session=session: session.sql(query))


def assert_named(cut: tailrace.Cut, in_session: Callable[[str], Any]) -> None:
    """By its full name, by its short one where only it has that, and by nothing else."""
    quote = cut.engine.dialect.quote

    def rows(frame: Any) -> list[tuple[Any, ...]]:
        return list(cut.engine.rows(frame))

    def shown(query: str) -> str:
        (found,) = rows(cut.sql(query))
        return str(found[0])

    assert {rows(cut.tables[str(table)])[0][1]: table for table in TABLES.values()} == TABLES
    assert shown("select v from public.orders") == "plain"
    assert shown(f"select v from audit.{quote('public.orders')}") == "like a full name"
    assert shown(f"select v from {quote('audit.public')}.orders") == "a dotted namespace"
    assert shown(f"select sales.{quote('Orders')}.v from sales.{quote('Orders')}") == "upper"
    assert shown(f"select v from public.{quote('a.b')}") == "dotted"
    assert shown(f"select v from {quote('it`s')}") == "tick"
    assert shown("select Lines.v from LINES") == "alone"
    twice = in_session(f"select v from lines union all select v from {quote('sales.lines')}")
    assert rows(twice) == [("alone",), ("alone",)]
    both = cut.sql("select a.v, b.v from public.orders a join sales.orders b using (id)")
    assert rows(both) == [("plain", "upper")]
    with pytest.raises(DefiniteError, match="several tables are called orders") as caught:
        cut.sql("select v from orders")
    wanted = [TABLES[which] for which in ("a dotted namespace", "plain", "upper")]
    assert caught.value.hint == f"write one of {', '.join(f'{quote(t.namespace)}.{quote(t.name)}' for t in wanted)}"
    for query in ("select v from a.b", f"select v from {quote('a.b')}"):
        with pytest.raises(cut.engine.errors, match=r"TABLE_OR_VIEW_NOT_FOUND|does not exist"):
            rows(cut.sql(query))


def test_a_short_name_that_a_second_table_gets_is_no_longer_an_older_cut_s_view(
    database: str, lake: Path, spark: SparkSession
) -> None:
    connection = connect(is_private=True)
    for session in (spark, connection):
        tailrace.cut(session, lake)
    assert spark.sql("select v from lines").collect()[0].v == "alone"
    assert connection.sql("select v from lines").fetchall() == [("alone",)]
    execute(database, 'create table public."Lines" (id int primary key)')
    sync_once(ConnectorSettings(lake, once=True), source_of(database), spark)
    for session in (spark, connection):
        tailrace.cut(session, lake)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("select v from lines").collect()
    with pytest.raises(duckdb.CatalogException, match="lines does not exist"):
        connection.sql("select v from lines")


def test_a_pattern_with_a_dot_is_for_the_whole_name_however_it_is_quoted(
    database: str, lake: Path, spark: SparkSession
) -> None:
    excluded = ("public.a.b", 'audit."public.orders"')
    states = sync_once(ConnectorSettings(lake, exclude=excluded, once=True), source_of(database), spark)
    assert {table for table, state in states.items() if state == "removed"} == {
        str(TABLES["dotted"]),
        str(TABLES["like a full name"]),
    }
    assert_published(database, lake, ["public.orders", "sales.lines"])
