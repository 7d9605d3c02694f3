"""Conditions that a person wrote: they choose rows, and do nothing else."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pyarrow as pa
import pytest
from tests.integration.postgres.reading import described, read

from tailrace.errors import DefiniteError
from tailrace.source.door.values import SourceTable
from tailrace.source.postgres.source import PostgresSource


def filtered(source: PostgresSource, table: SourceTable, condition: str) -> list[int]:
    with source.window() as point:
        chunks = source.key_chunks(point, table, (["3"], ["10"]), 2, 9)
        by_key = source.chunk_of_keys(table, pa.table({"id": pa.array([4, 11], pa.int32())}))
        kept = [source.filtered(chunk, condition) for chunk in [*chunks, by_key]]
        return read(source, point, table, kept).column("id").to_pylist()


@pytest.fixture
def guarded(conn: psycopg.Connection, source: PostgresSource) -> SourceTable:
    """A table of 20 rows, another one, and a function that writes into it."""
    conn.execute("create table t (id int primary key, note text, twice int generated always as (id * 2) stored)")
    conn.execute("insert into t select i, 'n' || i % 3 from generate_series(1, 20) i; create table x (n int)")
    conn.execute(
        "create function writes() returns boolean language plpgsql as "
        "$$ begin insert into x values (1); return true; end $$"
    )
    return described(source)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("note = 'n1'", [4, 7, 10, 4]),
        ("t.note = 'n1' or id = 1 -- and no more", [4, 7, 10, 4]),
        ("twice > 15 and note like '%%' || '1'", [10]),
        ("true) or (true", [4, 5, 6, 7, 8, 9, 10, 4, 11]),
        ("exists (select from x)", []),
    ],
)
def test_a_condition_leaves_out_rows_and_never_leads_out_of_the_chunk(
    source: PostgresSource, guarded: SourceTable, condition: str, expected: list[int]
) -> None:
    assert filtered(source, guarded, condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "true); commit; drop table x; --",
        "true; drop table x",
        "true)) to program 'touch broken_out' --",
        "true)) to stdout; drop table x; --",
        "true) limit (1",
        "true) union select 1, 'n' where (true",
        "true) for update; select (true",
        "true /*",
        "'",
        "$$",
        "",
        "id",
        "no_such_column > 1",
        "true) then 1 when (true",
        "note = $1",
        "writes()",
        "set_config('transaction_read_only', 'off', false) = 'off' and writes()",
        "nextval('s') > 0",
        "id / 0 > 1",
    ],
)
def test_what_is_no_condition_and_what_writes_is_refused_with_the_table_named(
    conn: psycopg.Connection, source: PostgresSource, guarded: SourceTable, condition: str
) -> None:
    conn.execute("create sequence s")
    with pytest.raises(DefiniteError) as caught:
        filtered(source, guarded, condition)
    assert caught.value.table == "public.t"
    assert conn.execute("select count(*) from x").fetchone() == (0,)
    assert conn.execute("select last_value, is_called from s").fetchone() == (1, False)
    assert conn.execute("select count(*) from t").fetchone() == (20,)


@pytest.mark.parametrize("condition", ["open_now(id)", "id in (select id from openings) and not open_now(-id)"])
def test_a_row_that_a_condition_chooses_is_printed_like_any_other(
    conn: psycopg.Connection, source: PostgresSource, condition: str
) -> None:
    conn.execute("create type kinds as (kind regtype, by regproc)")
    conn.execute('create table t (id int primary key, named regclass, "c0" regtype[], c1 kinds, c2 text)')
    conn.execute("create table openings (id int); insert into openings select generate_series(2, 50)")
    conn.execute(
        "create function open_now(int) returns boolean language plpgsql stable as "
        "$$ begin return exists (select from openings where id = $1); end $$"
    )
    conn.execute(
        "insert into t select n, 'openings', '{int,kinds}', '(kinds,open_now)', 'text' from generate_series(1, 50) n"
    )
    table = described(source)
    with source.window() as point:
        whole = source.chunks(table, 1 << 30)
        all_rows = read(source, point, table, whole)
        chosen = read(source, point, table, [source.filtered(chunk, condition) for chunk in whole])
    assert chosen.num_rows == 49
    assert chosen.sort_by("id").equals(all_rows.slice(1).combine_chunks())
    assert all_rows.slice(0, 1).to_pylist()[0]["named"] == "public.openings"


def test_a_condition_on_a_table_without_columns_counts_its_rows(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int primary key)")
    conn.execute("insert into t select generate_series(1, 3)")
    table = described(source)
    bare = replace(table, schema=replace(table.schema, columns=(), key=()))
    with source.window() as point:
        kept = [source.filtered(chunk, "id > 1") for chunk in source.chunks(table, 1 << 30)]
        batches = [batch for chunk in kept for batch in source.read_chunk(point, chunk, bare.schema)]
    assert sum(batch.num_rows for batch in batches) == 2
