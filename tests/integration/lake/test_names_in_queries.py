"""Queries over tables whose names are easily taken for each other: Postgres and Delta."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_published, execute
from tests.running import sync_once

import tailrace
from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
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


def test_every_name_means_one_table_or_is_refused(lake: Path, spark: SparkSession) -> None:
    cut = tailrace.cut(spark, lake)
    assert {cut.tables[str(table)].collect()[0].v: table for table in TABLES.values()} == TABLES

    def shown(query: str) -> str:
        (found,) = cut.sql(query).collect()
        return str(found[0])

    assert shown("select v from public.orders") == "plain"
    assert shown("select v from audit.`public.orders`") == "like a full name"
    assert shown("select v from `audit.public`.orders") == "a dotted namespace"
    assert shown("select sales.`Orders`.v from sales.`Orders`") == "upper"
    assert shown("select v from public.`a.b`") == "dotted"
    assert shown("select v from `it``s`") == "tick"
    assert shown("select Lines.v from LINES") == "alone"
    assert [row[0] for row in spark.sql("select v from lines union all select v from `sales.lines`").collect()] == [
        "alone",
        "alone",
    ]
    both = cut.sql("select a.v, b.v from public.orders a join sales.orders b using (id)").collect()
    assert [tuple(row) for row in both] == [("plain", "upper")]
    with pytest.raises(DefiniteError, match="several tables are called orders") as caught:
        cut.sql("select v from orders")
    assert caught.value.hint == "write one of `audit.public`.`orders`, `public`.`orders`, `sales`.`Orders`"
    for query in ("select v from a.b", "select v from `a.b`"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            cut.sql(query).collect()


def test_a_short_name_that_a_second_table_gets_is_no_longer_an_older_cut_s_view(
    database: str, lake: Path, spark: SparkSession
) -> None:
    tailrace.cut(spark, lake)
    assert spark.sql("select v from lines").collect()[0].v == "alone"
    execute(database, 'create table public."Lines" (id int primary key)')
    sync_once(ConnectorSettings(lake, once=True), source_of(database), spark)
    tailrace.cut(spark, lake)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("select v from lines").collect()


def test_a_pattern_with_a_dot_is_for_the_whole_name_however_it_is_quoted(
    database: str, lake: Path, spark: SparkSession
) -> None:
    excluded = ("public.a.b", 'audit."public.orders"')
    states = sync_once(ConnectorSettings(lake, exclude=excluded, once=True), source_of(database), spark)
    assert {table for table, state in states.items() if state == "removed"} == {
        str(TABLES["dotted"]),
        str(TABLES["like a full name"]),
    }
    assert_published(database, spark, lake, ["public.orders", "sales.lines"])
