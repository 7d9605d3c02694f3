"""Rows of Arrow in DuckDB, as a live read lays them over published ones."""

from __future__ import annotations

import pyarrow as pa
import pytest
from duckdb import DuckDBPyRelation

from tailrace.read.duckdb import DuckDBReadEngine, connect, connect_for


def test_newer_rows_can_be_joined_in_every_way_that_published_ones_can() -> None:
    with connect() as connection:
        engine = DuckDBReadEngine(connection)

        def newer(name: str, *values: int | None) -> DuckDBPyRelation:
            return engine.of_arrow(pa.table({name: pa.array(values, pa.int32())}))

        engine.show("accounts", connection.sql("select range::int as id from range(20)").union(newer("id", 77)))
        engine.show("transfers", connection.sql("select 1::int as account where false").union(newer("account", 1, 99)))
        # The side with few rows is hashed, and DuckDB has the other skip rows that cannot be in it.
        dangling = "select account from transfers left join accounts on account = id where account > 0 and id is null"
        assert connection.sql(dangling).fetchall() == [(99,)]


@pytest.mark.parametrize(
    ("sql", "is_trusted"),
    [("select 1", True), ("load 'other'", False), ("select 1; load 'other'", False), ("no sql at all", False)],
)
def test_only_what_cannot_load_anything_is_spared_the_look_at_signatures(sql: str, is_trusted: bool) -> None:
    with connect_for(sql) as connection:
        found = connection.execute("select current_setting('allow_unsigned_extensions')").fetchone()
    assert found == (is_trusted,)
