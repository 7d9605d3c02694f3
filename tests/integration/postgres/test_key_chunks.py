"""A table read by its key, a little at a time: every row once, whatever the key is made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from tests.integration.postgres.reading import described, numbers, read, walk

from tailrace.errors import DefiniteError, ResyncError, TransientError
from tailrace.model.table import TableId
from tailrace.source.postgres.rows.chunks import reader
from tailrace.source.postgres.rows.key_ranges import SCAN_ROWS_MAX, STEPS_MAX, boundaries, place
from tailrace.source.postgres.server.connection import IdleConnections
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")

PIECES = ["a", "B", "é", "ß", "z", " ", "'", '"', "\\", "\n", ",", "%", "{}", "", "$1", "--", "\\x"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
NUMBER = st.sampled_from(["NaN", "Infinity", "-Infinity", "0", "-1.5", "1e20", "12.340", "7", "8", "9"])
MOMENT = st.sampled_from(
    ["infinity", "-infinity", "2024-02-29 12:00:00.123456", "0044-03-15 BC", "20000-01-01", "1999-12-31"]
)

REVERSED = """
create type elsewhere.reversed as (n int);
create function elsewhere.compare(elsewhere.reversed, elsewhere.reversed) returns int immutable language sql
  as 'select pg_catalog.btint4cmp(($2).n, ($1).n)';
create function elsewhere.lt(elsewhere.reversed, elsewhere.reversed) returns boolean immutable language sql
  as 'select ($1).n > ($2).n';
create function elsewhere.le(elsewhere.reversed, elsewhere.reversed) returns boolean immutable language sql
  as 'select ($1).n >= ($2).n';
create function elsewhere.eq(elsewhere.reversed, elsewhere.reversed) returns boolean immutable language sql
  as 'select ($1).n = ($2).n';
create function elsewhere.ge(elsewhere.reversed, elsewhere.reversed) returns boolean immutable language sql
  as 'select ($1).n <= ($2).n';
create function elsewhere.gt(elsewhere.reversed, elsewhere.reversed) returns boolean immutable language sql
  as 'select ($1).n < ($2).n';
create operator elsewhere.< (function = elsewhere.lt, leftarg = elsewhere.reversed, rightarg = elsewhere.reversed);
create operator elsewhere.<= (function = elsewhere.le, leftarg = elsewhere.reversed, rightarg = elsewhere.reversed);
create operator elsewhere.= (function = elsewhere.eq, leftarg = elsewhere.reversed, rightarg = elsewhere.reversed);
create operator elsewhere.>= (function = elsewhere.ge, leftarg = elsewhere.reversed, rightarg = elsewhere.reversed);
create operator elsewhere.> (function = elsewhere.gt, leftarg = elsewhere.reversed, rightarg = elsewhere.reversed);
create operator class elsewhere.reversed_ops default for type elsewhere.reversed using btree as
  operator 1 elsewhere.<, operator 2 elsewhere.<=, operator 3 elsewhere.=, operator 4 elsewhere.>=,
  operator 5 elsewhere.>, function 1 elsewhere.compare(elsewhere.reversed, elsewhere.reversed);
"""
"""A type whose operators are not found on the search path: those that are would order it otherwise."""


def _vector(pair: str) -> str:
    return pair.replace("(", "[").replace(")", "]")


EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "5"))
KINDS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "small": ("smallint", st.integers(-40, 40)),
    "text": ("text", TEXT),
    "varchar": ("varchar(20)", TEXT),
    "bpchar": ("char(5)", st.sampled_from(["", "a", "a b", "zz", "é", "'", "A"])),
    "c": ('text collate "C"', TEXT),
    "libc": ('text collate "C.utf8"', TEXT),
    "name": ('name collate "C.utf8"', TEXT),
    "extension": ("elsewhere.vector(2)", st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(str).map(_vector)),
    "reversed": ("elsewhere.reversed", st.integers(-40, 40).map("({})".format)),
    "enum": ("mood", st.sampled_from(["sad", "ok", "it's", "Happy"])),
    "uuid": ("uuid", st.uuids().map(str)),
    "numeric": ("numeric", NUMBER),
    "double": ("float8", NUMBER),
    "real": ("float4", NUMBER),
    "timestamp": ("timestamp", MOMENT),
    "timestamptz": ("timestamptz", MOMENT),
    "date": ("date", st.dates().map(str)),
    "interval": ("interval", st.sampled_from(["1 day", "24:00", "1 mon", "-3 years 2 days", "00:00:00.5"])),
    "bytea": ("bytea", st.binary(max_size=4)),
    "boolean": ("boolean", st.booleans()),
    "domain": ("positive", st.integers(1, 200)),
    "array": ("text[]", st.lists(TEXT, max_size=3)),
    "range": ("int4range", st.sampled_from(["empty", "[1,5)", "[2,)", "(,7)", "[1,9)"])),
    "bits": ("bit varying(8)", st.text("01", max_size=8)),
    "char": ('"char"', st.sampled_from(["a", "b", "Z"])),
    "inet": ("inet", st.sampled_from(["10.0.0.1", "10.0.0.0/8", "::1", "192.168.0.1/24"])),
}
KEYS = [[name] for name in KINDS] + [
    ["text", "int", "uuid"],
    ["libc", "bytea", "small"],
    ["reversed", "numeric"],
    ["enum", "boolean", "timestamptz"],
    ["domain", "bpchar"],
]


def require_vector(conn: psycopg.Connection) -> None:
    if conn.execute("select from pg_available_extensions where name = 'vector'").fetchone() is None:
        pytest.skip("this server does not have the extension vector")


def create(conn: psycopg.Connection, columns: Sequence[str]) -> None:
    conn.execute("create type mood as enum ('sad', 'ok', 'it''s', 'Happy')")
    conn.execute("create domain positive as int check (value > 0)")
    conn.execute("create schema elsewhere")
    if "extension" in columns:
        require_vector(conn)
        conn.execute("create extension vector schema elsewhere")
    if "reversed" in columns:
        conn.execute(REVERSED)
    listed = ", ".join(f'"{name} Of T" {KINDS[name][0]} not null' for name in columns)
    key = ", ".join(f'"{name} Of T"' for name in columns)
    conn.execute(f"create table t ({listed}, number int, primary key ({key}))")


@pytest.mark.parametrize("columns", KEYS, ids="-".join)
def test_the_chunks_of_any_key_are_the_table_and_hold_each_row_once(
    conn: psycopg.Connection, source: PostgresSource, columns: list[str]
) -> None:
    create(conn, columns)
    placeholders = ", ".join(f"%s::text::{KINDS[name][0].partition(' collate')[0]}" for name in columns)
    placeholders = placeholders.replace("%s::text::bytea", "%s::bytea").replace("%s::text::text[]", "%s::text[]")
    table = described(source)
    # Of the keys themselves a lake cannot hold all: no infinity, no year before Christ.
    only_number = tuple(column for column in table.schema.columns if column.name == "number")
    table = replace(table, schema=replace(table.schema, columns=only_number))

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        keys=st.lists(st.tuples(*(KINDS[name][1] for name in columns)), min_size=1, max_size=60),
        rows=st.integers(1, 50),
        count=st.sampled_from([1, 2, 4, STEPS_MAX + 1]),
    )
    def check(keys: list[Any], rows: int, count: int) -> None:
        conn.execute("delete from t")
        for number, key in enumerate(keys):
            conn.execute(f"insert into t values ({placeholders}, %s) on conflict do nothing", [*key, number])
        expected = sorted(number for (number,) in conn.execute("select number from t"))
        assert sorted(walk(source, table, rows, count).column("number").to_pylist()) == expected

    check()


def test_a_key_is_read_in_the_order_of_its_index_with_that_index_alone(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (a int, b int, note text, primary key (b, a))")
    conn.execute("insert into t select i % 100, i / 100, 'n' from generate_series(1, 20000) i")
    conn.execute("vacuum analyze t")
    table = described(source)
    with source.window() as point:
        assert source.last_key(point, table) == ["200", "0"]
        chunks = source.key_chunks(point, table, (["3", "50"], ["200", "0"]), 1000, 5)
        assert [chunk.upto for chunk in chunks] == [[str(b), "50"] for b in (13, 23, 33, 43, 53)]
        more = source.key_chunks(point, table, (["3", "50"], ["200", "0"]), 1000, STEPS_MAX + 1)
        assert [chunk.upto for chunk in more[:5]] == [chunk.upto for chunk in chunks]
    order, between = chunks[0].order, (["3", "50"], ["200", "0"])
    for query in (place(order, between, "", 999), boundaries(order, between, 1000, STEPS_MAX + 1)):
        plan = conn.execute(sql.SQL("explain {}").format(query)).fetchall()
        assert "Index Only Scan using t_pkey" in str(plan)
        assert "Sort Key: t." not in str(plan)


@pytest.mark.parametrize("first", ["md5((n / 3)::text)::uuid", "7"], ids=["many", "one"])
def test_a_chunk_in_the_middle_of_a_table_is_thought_to_be_as_small_as_it_is(
    conn: psycopg.Connection, source: PostgresSource, first: str
) -> None:
    """Else the server reads the whole table for it. Also where all rows have the first column in common."""
    conn.execute(
        f"create table t as select {first} as a, n as b from generate_series(1, 50000) n order by md5(n::text)"
    )
    conn.execute("alter table t add primary key (a, b); analyze t")
    table = described(source)
    with source.window() as point:
        chunks = source.key_chunks(point, table, (None, source.last_key(point, table)), 500, 100)
        found = read(source, point, table, chunks[40:42]).column("b").to_pylist()
    chosen = "select b from t order by a, b offset 20000 limit 1000"
    assert sorted(found) == sorted(b for (b,) in conn.execute(chosen))
    plan = conn.execute(sql.SQL("explain (format json) select * from {}").format(chunks[50].rows())).fetchone()
    assert plan is not None
    assert plan[0][0]["Plan"]["Plan Rows"] < 2500


def test_a_cursor_of_another_version_of_the_servers_library_is_not_used(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    """Its order may be another one."""
    ordered = conn.execute(
        "select quote_ident(collname) from pg_collation where collencoding in (-1, pg_char_to_encoding('UTF8'))"
        " and pg_collation_actual_version(oid) is not null and collisdeterministic limit 1"
    ).fetchone()
    collation = f"collate {ordered[0]}" if ordered else ""
    conn.execute(f"create table t (id text {collation} primary key, n int)")
    conn.execute("insert into t select 'k' || n, n from generate_series(1, 50) n")
    table = described(source)
    assert numbers(walk(source, table, 7, 3), "n") == list(range(1, 51))
    with source.window() as point:
        last = source.last_key(point, table)
        assert last is not None
        assert len(last) == (2 if ordered else 1)
        old = [last[0], "id 0.9"]
        for between in ((None, old), (old, last)):
            with pytest.raises(ResyncError, match="orders its key otherwise"):
                source.key_chunks(point, table, between, 7, 3)
        assert source.key_chunks(point, table, (None, last[:1]), 7, 3), "as an earlier state wrote it"


def test_a_range_ends_at_its_second_cursor_also_when_the_row_that_stood_there_is_gone(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int primary key); insert into t select generate_series(1, 10)")
    table = described(source)
    with source.window() as point:
        last = source.last_key(point, table)
    conn.execute("delete from t where id > 7; insert into t values (11)")
    with source.window() as point:
        chunks = source.key_chunks(point, table, (["2"], last), 4, 3)
        assert [chunk.upto for chunk in chunks] == [["6"], ["10"]]
        assert numbers(read(source, point, table, chunks)) == [3, 4, 5, 6, 7]
        assert source.key_chunks(point, table, (["7"], last), 4, 3) == []
        (whole,) = source.key_chunks(point, table, (None, None), 100, 3)
        assert numbers(read(source, point, table, [whole])) == [*range(1, 8), 11]
        assert whole.upto == ["11"]


def test_a_table_without_rows_has_no_last_key_and_no_chunks(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute("create table t (id int primary key)")
    table = described(source)
    with source.window() as point:
        assert source.last_key(point, table) is None
        assert source.key_chunks(point, table, (None, None), 4, 3) == []


def test_a_chunk_by_other_columns_than_the_key_has_all_rows_that_are_equal_in_them(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int primary key, day date not null, n int not null)")
    conn.execute("insert into t select i, date '2024-01-01' + i % 3, i % 2 from generate_series(1, 60) i")
    table = described(source)
    for order in (["day"], ["n"], ["n", "day"]):
        for rows in (1, 7, 100):
            assert numbers(walk(source, table, rows, 2, order)) == list(range(1, 61))


def test_rows_without_a_key_are_read_by_the_column_that_is_named(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int not null, n int); alter table t replica identity full")
    conn.execute("insert into t select i % 10, i from generate_series(1, 50) i")
    table = described(source)
    assert numbers(walk(source, table, 8, 2, ["id"]), "n") == list(range(1, 51))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([], "table public.t has no key to go by"),
        (["nothing"], "table public.t has no column nothing to go by"),
        (["n"], "table public.t cannot be read by its column n, which may be null"),
        (["id", "n"], "table public.t cannot be read by its column n, which may be null"),
    ],
)
def test_what_a_table_cannot_be_ordered_by_is_refused_by_name(
    conn: psycopg.Connection, source: PostgresSource, order: list[str], message: str
) -> None:
    conn.execute("create table t (id int not null, n int); alter table t replica identity full")
    table = described(source)
    with source.window() as point:
        for ask in (
            lambda: source.last_key(point, table, order),
            lambda: source.key_chunks(point, table, (None, None), 1, 1, order),
        ):
            with pytest.raises(DefiniteError) as caught:
                ask()
            assert (caught.value.message, caught.value.table) == (message, "public.t")


def test_a_large_table_is_not_read_by_a_column_that_no_index_has_in_order(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int primary key, n int not null); insert into t values (1, 2)")
    conn.execute("create index on t (id, n); create index on t (n) where n > 1")
    table = replace(described(source), rows_estimated=SCAN_ROWS_MAX + 1)
    with source.window() as point:
        with pytest.raises(DefiniteError, match="no index on n") as caught:
            source.last_key(point, table, ["n"])
        assert caught.value.hint == "create index concurrently on public.t (n)"
        assert source.last_key(point, replace(table, rows_estimated=1), ["n"]) == ["2"]
    conn.execute("create index on t (n, id)")
    with source.window() as point:
        assert source.last_key(point, table, ["n"]) == ["2"]


def test_a_column_that_is_not_null_only_from_now_on_may_still_be_null(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    if conn.info.server_version < 180000:
        pytest.skip("such constraints came with Postgres 18")
    conn.execute("create table t (id int primary key, n int); insert into t values (1, null)")
    conn.execute("alter table t add constraint there not null n not valid")
    with source.window() as point, pytest.raises(DefiniteError, match="which may be null"):
        source.last_key(point, described(source), ["n"])


def test_the_key_may_be_an_index_that_is_the_replica_identity(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute('create table t (id int primary key, "Code" text collate "C.utf8" not null)')
    conn.execute('create unique index by_code on t ("Code" desc) include (id)')
    conn.execute("alter table t replica identity using index by_code")
    conn.execute("insert into t select i, 'c' || i from generate_series(1, 30) i")
    table = described(source)
    with source.window() as point:
        assert source.last_key(point, table) == ["c9"]
    assert numbers(walk(source, table, 4, 3)) == list(range(1, 31))


def test_a_value_that_its_domain_would_not_take_any_more_is_read(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(
        "create domain positive as int; create table t (id positive primary key); insert into t values (-5), (5)"
    )
    conn.execute("alter domain positive add check (value > 0) not valid")
    assert numbers(walk(source, described(source), 1, 1)) == [-5, 5]


PARTITIONED = """
create table t (id int, day int, note text, primary key (id, day)) partition by list (day);
create table t_0 partition of t for values in (0) partition by hash (id);
create table "T 00" partition of t_0 for values with (modulus 2, remainder 0);
create table t_01 partition of t_0 for values with (modulus 2, remainder 1);
create table t_1 (note text, day int not null, id int not null);
alter table t attach partition t_1 for values in (1);
create table t_rest partition of t default;
create table later (id int, day int, note text, primary key (id, day));
insert into later values (1000, 7, 'later');
insert into t select i, i % 3, 'n' from generate_series(1, 100) i;
"""


def test_a_partitioned_table_is_read_through_its_root(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute(PARTITIONED)
    assert numbers(walk(source, described(source), 7, 3)) == list(range(1, 101))


REWRITES = [
    "truncate t_01",
    "truncate t",
    "alter table t detach partition t_1",
    "alter table t attach partition later for values in (7)",
    "drop table t_rest",
    'vacuum full "T 00"',
    "alter table t add extra int default random() * 10",
    "drop table t",
]


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_partition_rewritten_or_moved_after_the_state_was_taken_is_worth_another_try(
    conn: psycopg.Connection, source: PostgresSource, rewrite: str
) -> None:
    conn.execute(PARTITIONED)
    table = described(source)
    with source.window() as point:
        chunks = source.key_chunks(point, table, (None, None), 30, 9)
        conn.execute(rewrite)
        for ask in (
            lambda: source.last_key(point, table),
            lambda: source.key_chunks(point, table, (None, None), 30, 9),
            lambda: read(source, point, table, chunks),
        ):
            with pytest.raises(TransientError, match=r"table public\.t was rewritten") as caught:
                ask()
            assert caught.value.table == "public.t"


def test_a_partition_attached_while_a_chunk_is_read_makes_it_worth_another_try(
    conn: psycopg.Connection, dsn: str, source: PostgresSource
) -> None:
    conn.execute(PARTITIONED)
    conn.execute("drop table t_rest")  # A reader would hold up the attaching, which looks into the default partition.
    reading = ExitStack()
    with source.window() as point, pytest.raises(TransientError, match="was rewritten"), reading:
        attach_while_reading(conn, reading.enter_context(reader(IdleConnections(dsn), point.token, T, T)))
    assert numbers(walk(source, described(source), 50, 3))[-1] == 1000


def attach_while_reading(conn: psycopg.Connection, reading: psycopg.Connection) -> None:
    conn.execute("alter table t attach partition later for values in (7)")
    # The state is older than the partition, and shows its row all the same.
    assert reading.execute("select count(*) from t where day = 7").fetchone() == (1,)
