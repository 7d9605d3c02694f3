"""The initial copy: every row once, exactly, as of the exported snapshot."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.postgres import wait_until

from tailrace.errors import DefiniteError, TransientError
from tailrace.model.change import row_schema
from tailrace.source.postgres.catalog.tables import CatalogTable, list_tables, measured, schema_of
from tailrace.source.postgres.rows import chunks, copy_out
from tailrace.source.postgres.server.connection import ConnectionOptions, IdleConnections, connect


@contextmanager
def exported(dsn: str) -> Iterator[str]:
    with psycopg.connect(dsn) as holder:
        holder.execute("set transaction isolation level repeatable read")
        (name,) = holder.execute("select pg_export_snapshot()").fetchone() or ("",)
        yield name


def described(conn: psycopg.Connection, name: str) -> CatalogTable:
    (info,) = list_tables(conn, [name])
    return measured(conn, info)


def copy(dsn: str, info: CatalogTable, snapshot: str, bytes_max: int = 1 << 30, **options: Any) -> Any:
    """The whole table, chunk by chunk."""
    schema = schema_of(info)
    planned = pickle.loads(pickle.dumps(chunks.plan(info, bytes_max)))
    connections = IdleConnections(dsn, ConnectionOptions(**options))
    batches = [batch for chunk in planned for batch in chunks.read(connections, snapshot, chunk, schema)]
    return pa.Table.from_batches(batches, schema=row_schema(schema))


def test_many_chunks_hold_every_row_once(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key, note text)")
    conn.execute("insert into t select i, repeat('x', i % 100) from generate_series(1, 20000) i")
    conn.execute("delete from t where id % 3 = 0; update t set note = 'moved' where id % 7 = 0")
    info = described(conn, "t")
    planned = chunks.plan(info, 100_000)
    assert len(planned) > 10
    for readers in range(2, 8):
        shared = chunks.plan(info, 100_000, readers)
        assert len(shared) % readers == 0, "each has the same work"
        assert len(planned) <= len(shared) < len(planned) + readers
    with exported(dsn) as snapshot:
        copied = copy(dsn, info, snapshot, 100_000)
    rows = conn.execute("select id, note from t order by id").fetchall()
    assert [tuple(row.values()) for row in copied.sort_by("id").to_pylist()] == rows


def test_rows_written_after_the_snapshot_are_not_read_and_rows_written_after_planning_are(
    conn: psycopg.Connection, dsn: str
) -> None:
    conn.execute("create table t (id int primary key, note text); insert into t select i from generate_series(1, 9) i")
    info = described(conn, "t")
    conn.execute("insert into t select i, repeat('y', 100) from generate_series(10, 5000) i")
    with exported(dsn) as snapshot:
        conn.execute("insert into t values (9999); delete from t where id < 5; update t set note = 'late'")
        copied = copy(dsn, info, snapshot, 1)
    assert sorted(copied.column("id").to_pylist()) == list(range(1, 5001))
    assert set(copied.column("note").to_pylist()) == {None, "y" * 100}


def test_null_and_empty_string_stay_apart_in_a_table_of_one_column(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (v text); alter table t replica identity full")
    conn.execute(r"""insert into t values (null), (''), ('""'), (E'\n'), (E'\r\n'), (E'\\.'), (null), (','), ('\N')""")
    with exported(dsn) as snapshot:
        copied = copy(dsn, described(conn, "t"), snapshot)
    assert copied.column("v").to_pylist() == [None, "", '""', "\n", "\r\n", "\\.", None, ",", "\\N"]


def test_what_the_server_escapes_comes_as_it_was(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key, a text, b bytea, c text[])")
    tricky = [
        "\\",
        "\\\\",
        "\\n",
        "\\\n",
        "\t\\t",
        "\b\f\n\r\t\v",
        "ends \\",
        "\\ begins",
        "\\N",
        "",
        "\x01\x7f",
        "é\\é",
    ]
    rows = [(number, text, text.encode(), [text, None, text]) for number, text in enumerate(tricky)]
    with conn.cursor() as cursor:
        cursor.executemany("insert into t values (%s, %s, %s, %s)", [*rows, (len(rows), None, None, None)])
    with exported(dsn) as snapshot:
        copied = copy(dsn, described(conn, "t"), snapshot)
    found = [tuple(row.values()) for row in copied.to_pylist()]
    assert sorted(found) == [*rows, (len(rows), None, None, None)]


def test_rows_larger_than_the_buffer_come_whole(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key, a text, b bytea)")
    size = 2 * copy_out.PORTION_BYTES
    conn.execute(
        """insert into t select i, repeat('"', %(size)s), decode(repeat('00ff', %(size)s / 4), 'hex')
        from generate_series(1, 3) i""",
        {"size": size},
    )
    with exported(dsn) as snapshot:
        copied = copy(dsn, described(conn, "t"), snapshot)
    assert copied.column("a").to_pylist() == ['"' * size] * 3
    assert copied.column("b").to_pylist() == [b"\x00\xff" * (size // 4)] * 3


def test_libpq_and_the_bare_socket_bring_the_same_rows(conn: psycopg.Connection) -> None:
    conn.execute("set client_min_messages = notice")
    conn.execute(
        """create function told(i int) returns int language plpgsql as
        $$begin if i % 1000 = 0 then raise notice E'row\\nd %', i; end if; return i; end$$"""
    )
    rows = "select told(i), repeat(E'\\nd', i % 7), i % 3 from generate_series(1, 20000) i"
    found = []
    for read in (copy_out.by_libpq, copy_out.past_libpq):
        portions = read(conn, f"copy ({rows}) to stdout".encode())
        found.append(b"".join(bytes(each.buffer[each.begin : each.end]) for each in portions))
    assert found[0] == found[1]
    assert found[0].count(b"\nd\0") == 19_999
    assert conn.execute("select 1").fetchone() == (1,), "libpq is where it was"


def test_an_error_among_the_rows_is_the_drivers(conn: psycopg.Connection) -> None:
    statement = b"copy (select 1 / (9999 - i) from generate_series(1, 20000) i) to stdout"
    for read in (copy_out.by_libpq, copy_out.past_libpq):
        with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero") as caught:
            list(read(conn, statement))
        assert (caught.value.sqlstate, caught.value.diag.severity) == ("22012", "ERROR")
        assert conn.execute("select 1").fetchone() == (1,)


def test_a_connection_that_is_ended_among_the_rows_is_an_error(conn: psycopg.Connection, dsn: str) -> None:
    ended = "pg_terminate_backend(pg_backend_pid())"
    statement = f"copy (select case when i = 9999 then {ended} end from generate_series(1, 20000) i) to stdout"
    with connect(dsn) as other, pytest.raises(psycopg.OperationalError):
        list(copy_out.past_libpq(other, statement.encode()))


def test_names_are_printed_alike_however_a_chunk_is_asked_for(conn: psycopg.Connection, dsn: str) -> None:
    """A reader may stay in the user's search path until it prints rows, and a condition is read there."""
    conn.execute("create schema own; create function own.is_odd(int) returns bool language sql as 'select $1 % 2 = 1'")
    conn.execute("create table t (gone text, id int, of regclass); alter table t drop gone")
    conn.execute("insert into t select i, 't' from generate_series(1, 2000) i")
    name = conn.execute("select current_database()").fetchone()
    assert name is not None
    conn.execute(f'alter database "{name[0]}" set search_path = public, own')
    info = described(conn, "t")
    (plain,) = chunks.plan(info, 1 << 30)
    with exported(dsn) as snapshot:
        for sent, condition in ((None, None), ("id % 2 = 1", None), (None, "is_odd(id)"), ("id > 0", "is_odd(id)")):
            chunk = replace(plain, sent=sent, condition=condition)
            read = chunks.read(IdleConnections(dsn), snapshot, chunk, schema_of(info))
            rows = pa.Table.from_batches(list(read)).to_pylist()
            step = 1 if sent is None and condition is None else 2
            assert rows == [{"id": number, "of": "public.t"} for number in range(1, 2001, step)]


def test_rows_without_columns_are_counted(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (); insert into t default values; insert into t default values")
    info = described(conn, "t")
    (plain,) = chunks.plan(info, 1 << 30)
    with exported(dsn) as snapshot:
        for sent, condition in ((None, None), ("true", None), (None, "true")):
            chunk = replace(plain, sent=sent, condition=condition)
            read = chunks.read(IdleConnections(dsn), snapshot, chunk, schema_of(info))
            assert sum(batch.num_rows for batch in read) == 2


def test_a_table_with_large_values_is_cut_by_its_whole_size(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key, body text); alter table t alter body set storage external")
    conn.execute("insert into t select i, repeat('z', 10000) from generate_series(1, 2000) i")
    info = described(conn, "t")
    assert info.parts[0].blocks < 20
    assert 5 < len(chunks.plan(info, 2 << 20)) < 20


def test_an_empty_table_is_one_chunk_without_rows(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key); create table p (id int primary key) partition by hash (id)")
    for name in ("t", "p"):
        info = described(conn, name)
        assert len(chunks.plan(info, 1)) == 1
        with exported(dsn) as snapshot:
            assert copy(dsn, info, snapshot).num_rows == 0


def test_a_partitioned_table_is_read_from_its_leaves(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        """create table p (id int primary key, "Odd ""name" text) partition by hash (id);
        create table "Leaf 0" partition of p for values with (modulus 2, remainder 0);
        create table p1 partition of p for values with (modulus 2, remainder 1) partition by range (id);
        create table p10 partition of p1 for values from (minvalue) to (500);
        create table p11 ("Odd ""name" text, id int not null);
        alter table p1 attach partition p11 for values from (500) to (maxvalue);
        insert into p select i, 'n' || i from generate_series(1, 1000) i"""
    )
    info = described(conn, "p")
    assert {part.table.name for part in info.parts} == {"Leaf 0", "p10", "p11"}
    with exported(dsn) as snapshot:
        copied = copy(dsn, info, snapshot, 8192)
    expected = [{"id": number, 'Odd "name': f"n{number}"} for number in range(1, 1001)]
    assert copied.sort_by("id").to_pylist() == expected


def test_children_by_inheritance_are_tables_of_their_own(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table parent (id int primary key); create table child () inherits (parent)")
    conn.execute("insert into parent values (1); insert into child values (2)")
    with exported(dsn) as snapshot:
        assert copy(dsn, described(conn, "parent"), snapshot).column("id").to_pylist() == [1]


def test_generated_columns_are_left_out(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key, twice int generated always as (id * 2) stored, n int)")
    conn.execute("insert into t values (1, default, 7)")
    with exported(dsn) as snapshot:
        assert copy(dsn, described(conn, "t"), snapshot).to_pylist() == [{"id": 1, "n": 7}]


def test_a_snapshot_that_is_gone_is_worth_another_try_with_a_new_one(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key)")
    with exported(dsn) as snapshot:
        pass
    with pytest.raises(TransientError, match="is gone"):
        copy(dsn, described(conn, "t"), snapshot)


@pytest.mark.parametrize(
    "rewrite",
    [
        "alter table t alter n type bigint",
        "vacuum full t",
        "truncate t",
        "drop table t",
        "alter table t rename to t_old; create table t (id int primary key, n int)",
        "alter table t rename to t_old; create table t (like t_old); alter table t_old rename to t_older",
    ],
)
def test_a_table_rewritten_after_the_snapshot_is_refused_and_never_read_as_empty(
    conn: psycopg.Connection, dsn: str, rewrite: str
) -> None:
    conn.execute("create table t (id int primary key, n int); insert into t select i, i from generate_series(1, 9) i")
    info = described(conn, "t")
    with exported(dsn) as snapshot:
        conn.execute(rewrite)
        with pytest.raises(TransientError, match=r"table public\.t was rewritten") as caught:
            copy(dsn, info, snapshot)
    assert caught.value.table == "public.t"
    if rewrite == "vacuum full t":
        with exported(dsn) as snapshot:
            assert copy(dsn, info, snapshot).num_rows == 9


def test_rows_hidden_by_row_security_are_an_error_and_never_missing(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key); insert into t values (1), (2)")
    conn.execute("alter table t enable row level security; create policy visible on t using (id = 1)")
    conn.execute("drop role if exists limited; create role limited login; grant select on t to limited")
    info = described(conn, "t")
    limited = dsn.replace("postgres@", "limited@")
    with exported(dsn) as snapshot, pytest.raises(DefiniteError, match="row-level security") as caught:
        copy(limited, info, snapshot)
    assert (caught.value.hint, caught.value.table) == ('alter role "limited" bypassrls;', "public.t")
    conn.execute("drop owned by limited; drop role limited")


def test_a_table_that_may_not_be_read_says_so_with_the_grants_that_are_missing(
    conn: psycopg.Connection, dsn: str
) -> None:
    conn.execute("drop role if exists stranger; create role stranger login; create schema shop")
    conn.execute("create table t (id int primary key); create table shop.orders (id int primary key)")
    conn.execute("grant select on shop.orders to stranger")
    theirs = dsn.replace("postgres@", "stranger@")
    for name, grant in {
        "public.t": 'grant select on "public"."t" to "stranger";',
        "shop.orders": 'grant usage on schema "shop" to "stranger";',
    }.items():
        info = described(conn, name)
        with exported(dsn) as snapshot, pytest.raises(DefiniteError, match="may not read") as caught:
            copy(theirs, info, snapshot)
        assert (caught.value.hint, caught.value.table) == (grant, name)
        conn.execute(grant)
        with exported(dsn) as snapshot:
            assert copy(theirs, info, snapshot).num_rows == 0
    conn.execute("drop owned by stranger; drop role stranger")


@pytest.fixture
def crowded(conn: psycopg.Connection, dsn: str) -> Iterator[str]:
    """The table `t`, and a role that may read it on one connection at a time."""
    conn.execute("drop role if exists crowded; create role crowded login connection limit 1")
    conn.execute("create table t (id int primary key); insert into t values (1), (2); grant select on t to crowded")
    yield dsn.replace("postgres@", "crowded@")
    conn.execute("drop owned by crowded; drop role crowded")


def test_a_reader_waits_for_a_connection_that_another_one_will_give_back(
    conn: psycopg.Connection, dsn: str, crowded: str
) -> None:
    info = described(conn, "t")
    with exported(dsn) as snapshot, ThreadPoolExecutor() as pool:
        with psycopg.connect(crowded):
            reading = pool.submit(copy, crowded, info, snapshot)
            refused = "select count(*) from pg_stat_activity where usename = 'crowded'"
            wait_until(lambda: conn.execute(refused).fetchone() == (1,))
            with pytest.raises(TimeoutError):
                reading.result(timeout=1)
        assert reading.result(timeout=20).num_rows == 2


def test_a_reader_that_gets_no_connection_says_how_many_are_needed(
    conn: psycopg.Connection, dsn: str, crowded: str
) -> None:
    info = described(conn, "t")
    with exported(dsn) as snapshot, psycopg.connect(crowded), pytest.raises(TransientError) as caught:
        copy(crowded, info, snapshot, patience_seconds=1.0)
    assert "no connection left for crowded; waited 1 s for one" in caught.value.message
    assert "needs at least 3" in (caught.value.hint or "")
