"""The catalog against servers, and the problems it finds against what the servers really refuse."""

from __future__ import annotations

import time

import psycopg
import pytest

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.postgres.catalog.problems import problems
from tailrace.source.postgres.catalog.tables import QUERIES, CatalogTable, list_tables, measured, schema_of
from tailrace.source.postgres.source import PostgresSource


def described(conn: psycopg.Connection, name: str = "t") -> CatalogTable:
    (info,) = list_tables(conn, [name])
    return info


def names(conn: psycopg.Connection, *include: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [str(info.table) for info in list_tables(conn, include, exclude)]


def test_patterns_choose_tables_and_nothing_else(conn: psycopg.Connection) -> None:
    conn.execute(
        """create table orders (id int primary key); create table items (id int primary key);
        create schema "Sales"; create table "Sales".orders (id int primary key);
        create view order_view as table orders; create materialized view order_sums as table orders;
        create unlogged table scratch (id int primary key); create temp table passing (id int primary key);
        create table parted (id int primary key) partition by range (id);
        create table parted_1 partition of parted for values from (1) to (9)"""
    )
    assert names(conn) == ["Sales.orders", "public.items", "public.orders", "public.parted"]
    assert names(conn, "public.*", exclude=("*s",)) == ["public.parted"]
    assert names(conn, "orders") == ["Sales.orders", "public.orders"]
    assert names(conn, "Sales.*", "item?") == ["Sales.orders", "public.items"]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("oders", "did you mean public.orders"),
        ("public.Orders", "did you mean public.orders"),
        ("scratch", "public.scratch is unlogged"),
        ("order_view", "public.order_view is a view"),
        ("parted_1", "public.parted_1 is a partition"),
        ("nothing_like_it", "the database has public.orders"),
        ("pg_catalog.*", "the database has public.orders"),
    ],
)
def test_a_pattern_that_names_no_table_says_what_was_meant(conn: psycopg.Connection, pattern: str, hint: str) -> None:
    conn.execute(
        """create table orders (id int primary key); create view order_view as table orders;
        create unlogged table scratch (id int primary key);
        create table parted (id int primary key) partition by range (id);
        create table parted_1 partition of parted for values from (1) to (9)"""
    )
    with pytest.raises(DefiniteError) as caught:
        list_tables(conn, ["orders", pattern])
    assert caught.value.message == f"no table matches '{pattern}'"
    assert hint in (caught.value.hint or "")


def test_a_database_without_tables_says_so(conn: psycopg.Connection) -> None:
    with pytest.raises(DefiniteError, match="no table that can be copied"):
        list_tables(conn, [])


def test_the_shape_follows_the_columns_that_are_left(conn: psycopg.Connection) -> None:
    conn.execute("create table t (gone int, b text, a int, primary key (a, b)); alter table t drop gone")
    schema = schema_of(described(conn))
    assert schema.names == ("b", "a")
    assert schema.key == ("b", "a")
    assert schema.table == TableId("public", "t")
    conn.execute("alter table t add column c numeric(6,2)")
    column = schema_of(described(conn)).column("c")
    assert (column.type, column.source_type) == ("decimal(6,2)", "numeric(6,2)")


def test_an_estimate_of_rows_and_bytes_comes_from_the_parts(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key) partition by hash (id)")
    for remainder in range(2):
        conn.execute(f"create table t{remainder} partition of t for values with (modulus 2, remainder {remainder})")
    conn.execute("insert into t select generate_series(1, 1000)")
    conn.execute("analyze t")
    info = described(conn)
    assert info.rows_estimated == 1000
    assert measured(conn, info).size_bytes >= 1000 * 28
    assert len(info.parts) == 2


def test_a_table_that_was_never_analyzed_has_estimates_all_the_same_and_no_one_waits_for_a_lock(
    conn: psycopg.Connection, dsn: str
) -> None:
    source, table = PostgresSource(dsn), TableId("public", "t")
    conn.execute("create table t (id int primary key, v text) with (autovacuum_enabled = off)")
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("insert into t select n, repeat('x', 100) from generate_series(1, 5000) n")
    found = source.describe([table])[table]
    assert 2500 <= found.rows_estimated <= 10_000
    assert 100 <= (found.row_bytes_estimated or 0) <= 300
    with psycopg.connect(dsn) as locker:
        locker.execute("lock table t")
        begun = time.monotonic()
        assert source.describe([table])[table].row_bytes_estimated is None
        assert time.monotonic() - begun < 2


WITHOUT_PROBLEM = {
    "a primary key": "create table t (id int primary key, n int)",
    "full with a primary key": "create table t (id int primary key, n int); alter table t replica identity full",
    "an identity index": "create table t (id int not null unique, n int); "
    "alter table t replica identity using index t_id_key",
    "an index with more columns than its key": "create table t (id int not null, n int); "
    "create unique index i on t (id) include (n); alter table t replica identity using index i",
    "a partitioned table": "create table t (id int primary key, n int) partition by range (id); "
    "create table t1 partition of t for values from (0) to (9)",
    "a partition with full": "create table t (id int primary key, n int) partition by range (id); "
    "create table t1 partition of t for values from (0) to (9); alter table t1 replica identity full",
}
WITH_PROBLEM = {
    "no key": "create table t (id int, n int)",
    "identity nothing": "create table t (id int primary key, n int); alter table t replica identity nothing",
    "a deferrable key": "create table t (id int primary key deferrable, n int)",
    "a dropped identity index": "create table t (id int not null, n int); create unique index i on t (id); "
    "alter table t replica identity using index i; drop index i",
    "a partition with nothing": "create table t (id int primary key, n int) partition by range (id); "
    "create table t1 partition of t for values from (0) to (9); alter table t1 replica identity nothing",
    "partitions without key": "create table t (id int, n int) partition by range (id); "
    "create table t1 partition of t for values from (0) to (9)",
}


def publish_and_update(conn: psycopg.Connection, definition: str) -> CatalogTable:
    conn.execute(definition)
    conn.execute("insert into t (id, n) values (1, 1)")
    info = described(conn)
    conn.execute("create publication p for table t with (publish_via_partition_root = true)")
    conn.execute("update t set n = 2")
    return info


@pytest.mark.parametrize("shape", WITHOUT_PROBLEM)
def test_a_table_without_problems_can_be_updated_once_published(conn: psycopg.Connection, shape: str) -> None:
    info = publish_and_update(conn, WITHOUT_PROBLEM[shape])
    assert problems(info) == []
    assert schema_of(info).key == ("id",)


@pytest.mark.parametrize("shape", WITH_PROBLEM)
def test_a_table_whose_updates_publishing_would_break_has_a_problem(conn: psycopg.Connection, shape: str) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        publish_and_update(conn, WITH_PROBLEM[shape])
    found = problems(described(conn))
    assert found
    assert all(problem.hint.startswith("alter table") for problem in found)


def test_full_identity_with_a_generated_column_is_a_problem_where_the_server_refuses_updates(
    conn: psycopg.Connection,
) -> None:
    definition = "create table t (id int primary key, n int, g int generated always as (n + 1) stored); "
    definition += "alter table t replica identity full"
    if conn.info.server_version < 180000:
        assert problems(publish_and_update(conn, definition)) == []
    else:
        with pytest.raises(psycopg.errors.InvalidColumnReference):
            publish_and_update(conn, definition)
        assert "generated" in problems(described(conn))[0].message


GENERATED_KEYS = {
    "a primary key": "create table t (id int, n int, g int generated always as (n + 1) stored, primary key (id, g))",
    "an identity index": "create table t (id int not null, n int, g int generated always as (n + 1) stored not null); "
    "create unique index i on t (id, g); alter table t replica identity using index i",
    "a primary key under full": "create table t (id int, n int, g int generated always as (n + 1) stored, "
    "primary key (g)); alter table t replica identity full",
}


@pytest.mark.parametrize("shape", GENERATED_KEYS)
def test_a_generated_column_in_the_key_is_a_problem_because_changes_do_not_carry_it(
    conn: psycopg.Connection, shape: str
) -> None:
    if conn.info.server_version >= 180000:
        with pytest.raises(psycopg.errors.InvalidColumnReference):
            publish_and_update(conn, GENERATED_KEYS[shape])
    else:
        publish_and_update(conn, GENERATED_KEYS[shape])
    problem = problems(described(conn))[0]
    assert problem.message == "column g in the key of table public.t is generated: changes do not carry it"
    assert problem.hint.startswith('alter table "public"."t" replica identity using index …')
    conn.execute("alter table t add column key int generated by default as identity unique")
    conn.execute(problem.hint.partition(" index …")[0] + " index t_key_key")
    assert problems(described(conn)) == []
    conn.execute("update t set n = 3")


FULL_WITHOUT_KEY = {
    "no key": "create table t (id int, n int)",
    "a deferrable key": "create table t (id int primary key deferrable, n int)",
    "a unique index alone": "create table t (id int unique, n int)",
}


@pytest.mark.parametrize("shape", FULL_WITHOUT_KEY)
def test_the_hint_for_a_table_without_a_key_lets_it_be_published_and_updated(
    conn: psycopg.Connection, shape: str
) -> None:
    conn.execute(FULL_WITHOUT_KEY[shape])
    (problem,) = problems(described(conn))
    info = publish_and_update(conn, problem.hint.partition(",")[0])
    assert (problems(info), schema_of(info).key) == ([], ())


def test_a_partitioned_table_without_a_key_is_refused_because_new_partitions_could_not_be_updated(
    conn: psycopg.Connection,
) -> None:
    conn.execute(
        "create table t (id int, n int) partition by range (id); alter table t replica identity full; "
        "create table t1 partition of t for values from (0) to (9); alter table t1 replica identity full"
    )
    (problem,) = problems(described(conn))
    assert problem.message == "table public.t is partitioned and has no primary key"
    conn.execute("create publication p for table t with (publish_via_partition_root = true)")
    conn.execute("create table t2 partition of t for values from (10) to (19); insert into t values (11)")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        conn.execute("update t set n = 2")


def test_a_table_without_a_column_to_copy_is_refused(conn: psycopg.Connection) -> None:
    conn.execute("create table t (); alter table t replica identity full")
    (problem,) = problems(described(conn))
    assert problem.message == "table public.t has no columns that can be copied"


def test_of_columns_that_differ_only_in_case_the_later_ones_have_their_numbers_in_the_lake(
    conn: psycopg.Connection,
) -> None:
    conn.execute('create table t ("Id" int, id int, a int, "A" int generated always as (1) stored, primary key (id))')
    assert problems(described(conn)) == []
    schema = schema_of(described(conn))
    assert (schema.names, schema.key) == (("Id", "id_2", "a"), ("id_2",))
    assert [column.in_source for column in schema.columns] == ["Id", "id", "a"]


def test_a_column_named_like_one_of_ours_is_a_problem(conn: psycopg.Connection) -> None:
    conn.execute('create table t (id int primary key, _op int, "Tailrace:mine" int, tailrace int)')
    (problem,) = problems(described(conn))
    assert problem.message == "column Tailrace:mine of table public.t has a name that Tailrace uses"


def test_a_table_that_is_dropped_while_it_is_looked_at_is_not_taken_for_one_that_may_not_be_read(database: str) -> None:
    """The state of the look still has it; what the server says of its rights is of now, and null."""
    with psycopg.connect(database, autocommit=True) as conn, psycopg.connect(database, autocommit=True) as other:
        conn.execute("create table t (id int primary key); create table u (id int primary key)")
        oids = [
            row[0] for row in conn.execute("select oid::bigint from pg_class where relname in ('t', 'u')").fetchall()
        ]
        conn.execute("begin isolation level repeatable read")
        assert conn.execute("select count(*) from pg_class where oid = any(%s)", [oids]).fetchone() == (2,)
        other.execute("drop table t")
        found = conn.execute(QUERIES["access"], {"oids": oids}).fetchall()
        assert [row[2] for row in found] == [True]
