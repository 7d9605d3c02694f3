"""Rows of Arrow in DuckDB, as a live read lays them over published ones."""

from __future__ import annotations

import pyarrow as pa
from duckdb import DuckDBPyRelation

from tailrace.read.duckdb import DuckDBEngine, connect


def test_newer_rows_can_be_joined_in_every_way_that_published_ones_can() -> None:
    with connect() as connection:
        engine = DuckDBEngine(connection)

        def newer(name: str, *values: int | None) -> DuckDBPyRelation:
            return engine.of_arrow(pa.table({name: pa.array(values, pa.int32())}))

        engine.show("accounts", connection.sql("select range::int as id from range(20)").union(newer("id", 77)))
        engine.show("transfers", connection.sql("select 1::int as account where false").union(newer("account", 1, 99)))
        # The side with few rows is hashed, and DuckDB has the other skip rows that cannot be in it.
        dangling = "select account from transfers left join accounts on account = id where account > 0 and id is null"
        assert connection.sql(dangling).fetchall() == [(99,)]
