"""What a table's definition shows of each statement, on a real server: followed, or a reason to copy again."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tailrace.model.table import TableId
from tailrace.source.door.values import Claim, SourceTable
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")
CLAIM = {"publication": "p"}
SETUP = """
create type mood as enum ('sad', 'ok');
create type pair as (a int, b int);
create table t (id int primary key, v int, c text, i int, w varchar(10), m mood, ms mood[], p pair, n numeric(5,2),
                g int generated always as (i * 2) stored, e timestamp(3));
insert into t (id, v, c) values (1, 1, 'a'), (2, 2, 'b');
create publication p for table t with (publish_via_partition_root = true);
"""
PARTITIONED = """
create table t (id int, d int, primary key (id, d)) partition by range (d);
create table t1 partition of t for values from (0) to (10);
create table t2 partition of t for values from (10) to (20);
insert into t select i, i from generate_series(1, 15) i;
create publication p for table t with (publish_via_partition_root = true);
"""

HARMLESS = {
    "a nullable column": "alter table t add x int",
    "a column that is filled and made not null": "alter table t add x int; update t set x = 1; "
    "alter table t alter x set not null",
    "a default for later rows": "alter table t add x int; alter table t alter x set default 7",
    "a default of an old column": "alter table t alter v set default 7",
    "a dropped column": "alter table t drop v cascade",
    "a column dropped and made again": "alter table t drop c; alter table t add c text",
    "a renamed column": "alter table t rename c to d",
    "a renamed key": "alter table t rename id to ident",
    "longer text": "alter table t alter w type varchar(20)",
    "unlimited text": "alter table t alter w type text",
    "a finer time": "alter table t alter e type timestamp(6)",
    "an enum label more": "alter type mood add value 'glad' before 'sad'",
    "a renamed type": "alter type mood rename to moods",
    "a vacuum": "vacuum full t",
    "a cluster": "cluster t using t_pkey",
    "a truncate": "truncate t",
    "an index": "create index on t (c)",
    "a constraint": "alter table t add check (v < 100)",
    "not null": "alter table t alter v set not null",
    "a privilege": "grant select (c) on t to public",
    "a comment, storage and statistics": "comment on column t.c is 'x'; alter table t alter c set storage external; "
    "alter table t alter c set statistics 10",
    "an analyze": "analyze t",
    "another owner": "do $$ begin create role other; exception when duplicate_object then null; end $$; "
    "alter table t owner to other",
    "full identity": "alter table t replica identity full",
    "another table sent": "create table u (id int primary key); alter publication p add table u",
}
DOUBTFUL = {
    "a default that old rows show": ("alter table t add x int default 5", "added with a default"),
    "a default dropped at once": (
        "alter table t add x int default 5; alter table t alter x drop default",
        "added with",
    ),
    "a volatile default": (
        "alter table t add k uuid default gen_random_uuid(); alter table t alter k drop default",
        "rewritten",
    ),
    "a default made real": (
        "alter table t add x int default 5; alter table t alter x drop default; vacuum full t",
        "rewritten",
    ),
    "a computed column let go": ("alter table t alter g drop expression", "sent now and was not"),
    "a computed column": ("alter table t add h int generated always as (v + 1) stored", "rewritten"),
    "the same type with another value": ("alter table t alter c type text using upper(c)", "rewritten"),
    "a number with another value": ("alter table t alter v type int using v + 1", "rewritten"),
    "text with another value": ("alter table t alter w type text using upper(w)", "was character varying"),
    "another scale": ("alter table t alter n type numeric(6,1)", "was numeric"),
    "more digits": ("alter table t alter n type numeric(8,2)", "was numeric"),
    "a wider number": ("alter table t alter v type bigint", "was integer"),
    "there and back": ("alter table t alter v type bigint; alter table t alter v type int", "rewritten"),
    "an enum label renamed": ("alter type mood rename value 'sad' to 'blue'", "enum label"),
    "a composite's attribute": ("alter type pair add attribute z int", "composite type"),
    "exchanged": (
        "alter table t rename v to x; alter table t rename id to v; alter table t rename x to id",
        "another column",
    ),
    "another key": ("alter table t drop constraint t_pkey; alter table t add primary key (id, v)", "key changed"),
    "out and back": ("alter publication p drop table t; alter publication p add table t", "publication"),
    "a filter for a while": (
        "alter publication p set table t where (id > 1); alter publication p set table t",
        "publication",
    ),
    "a kind of change for a while": (
        "alter publication p set (publish = 'insert'); "
        "alter publication p set (publish = 'insert, update, delete, truncate')",
        "publication",
    ),
}
BY_SCHEMA = SETUP.replace("for table t", "for tables in schema public")
PARTITIONED_BY_SCHEMA = PARTITIONED.replace("for table t", "for tables in schema public")
LEFT = {
    "moved away and back": "create schema away; alter table t set schema away; alter table away.t set schema public",
    "moved away and back in one transaction": "begin; create schema away; alter table t set schema away; "
    "alter table away.t set schema public; commit",
    "moved away and back in a sub-transaction": "begin; create schema away; savepoint s; "
    "alter table t set schema away; alter table away.t set schema public; release savepoint s; commit",
    "its schema left out for a while": "alter publication p drop tables in schema public; "
    "alter publication p add tables in schema public",
    "its publication made again": "drop publication p; create publication p for tables in schema public",
    "partitions by their own names for a while": "alter publication p set (publish_via_partition_root = false); "
    "alter publication p set (publish_via_partition_root = true)",
}
PARTITIONS_HARMLESS = {
    "a new partition": "create table t3 partition of t for values from (20) to (30)",
    "a new partition with rows after": "create table t3 partition of t for values from (20) to (30); "
    "insert into t values (25, 25)",
    "a new subtree": "create table t3 partition of t for values from (20) to (30) partition by range (id); "
    "create table t31 partition of t3 for values from (0) to (100)",
    "a new partition with rows after, in one transaction": "begin; create table t3 partition of t (d default 25) "
    "for values from (20) to (30); savepoint s; insert into t values (25, 25); release savepoint s; commit",
    "attached without rows in one transaction": "begin; create table t3 (like t including all); "
    "alter table t attach partition t3 for values from (20) to (30); commit",
    "a column": "alter table t add x int",
}
PARTITIONS_DOUBTFUL = {
    "emptied": ("truncate t1", "emptied"),
    "made, filled and emptied": (
        "create table t3 partition of t for values from (20) to (30); insert into t values (25, 25); truncate t3",
        "emptied",
    ),
    "emptied and filled": ("truncate t1; insert into t1 values (1, 1)", "emptied"),
    "attached": (
        "create table t3 (like t including all); insert into t3 values (20, 20); "
        "alter table t attach partition t3 for values from (20) to (30)",
        "attached with its rows",
    ),
    "attached in one transaction": (
        "begin; create table t3 (like t including all); insert into t3 values (20, 20); "
        "alter table t attach partition t3 for values from (20) to (30); commit",
        "attached with its rows",
    ),
    "filled in a sub-transaction and attached": (
        "begin; create table t3 (like t including all); savepoint s; insert into t3 values (20, 20); "
        "release savepoint s; alter table t attach partition t3 for values from (20) to (30); commit",
        "attached with its rows",
    ),
    "filled by a block that catches errors and attached": (
        "do $$ begin create table t3 (like t including all); "
        "begin insert into t3 values (20, 20); exception when others then null; end; "
        "alter table t attach partition t3 for values from (20) to (30); end $$",
        "attached with its rows",
    ),
    "a subtree filled in a sub-transaction and attached": (
        "begin; create table t3 (like t) partition by range (id); "
        "create table t31 partition of t3 for values from (0) to (100); "
        "savepoint s; insert into t3 values (20, 20); release savepoint s; "
        "alter table t attach partition t3 for values from (20) to (30); commit",
        "attached with its rows",
    ),
    "detached": ("alter table t detach partition t1", "detached or dropped"),
    "dropped": ("drop table t1", "detached or dropped"),
    "out and back": (
        "alter table t detach partition t1; insert into t1 values (99, 9); "
        "alter table t attach partition t1 for values from (0) to (10)",
        "detached and attached",
    ),
    "a default that old rows show": ("alter table t add x int default 5", "added with a default"),
    "a volatile default": ("alter table t add k uuid default gen_random_uuid()", "rewritten"),
}


def verdict(dsn: str, conn: psycopg.Connection, setup: str, ddl: str, table: TableId = T) -> str | None:
    """What a copy made before `ddl` must do after it."""
    conn.execute(setup)
    source = PostgresSource(dsn)
    old = _through_json(source.define(CLAIM, {table: None})[table].definition)
    for statement in [ddl] if ddl.startswith(("begin", "do")) else ddl.split("; "):
        conn.execute(statement)
    new = _through_json(source.define(CLAIM, {table: old})[table].definition)
    assert source.why_copy(new, old) is None, "an older definition says nothing"
    return source.why_copy(old, new)


def mark_is_another(dsn: str, conn: psycopg.Connection, setup: str, ddl: str) -> bool:
    conn.execute(setup)
    source = PostgresSource(dsn)
    before = source.mark()
    assert before == source.mark()
    for statement in [ddl] if ddl.startswith(("begin", "do")) else ddl.split("; "):
        conn.execute(statement)
    return source.mark() != before


def _through_json(definition: Any) -> Any:
    return json.loads(json.dumps(definition))


@pytest.mark.parametrize("ddl", HARMLESS.values(), ids=HARMLESS)
def test_what_changes_no_row_that_is_there_is_followed(dsn: str, conn: psycopg.Connection, ddl: str) -> None:
    assert verdict(dsn, conn, SETUP, ddl) is None


@pytest.mark.parametrize(("ddl", "reason"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_may_change_rows_without_a_word_means_a_new_copy(
    dsn: str, conn: psycopg.Connection, ddl: str, reason: str
) -> None:
    assert reason in (verdict(dsn, conn, SETUP, ddl) or "nothing")


@pytest.mark.parametrize("ddl", HARMLESS.values(), ids=HARMLESS)
def test_what_changes_no_row_is_followed_where_the_publication_sends_a_schema(
    dsn: str, conn: psycopg.Connection, ddl: str
) -> None:
    assert verdict(dsn, conn, BY_SCHEMA, ddl) is None


@pytest.mark.parametrize("setup", [BY_SCHEMA, PARTITIONED_BY_SCHEMA], ids=["table", "partitions"])
@pytest.mark.parametrize("ddl", LEFT.values(), ids=LEFT)
def test_a_table_that_left_its_publication_and_came_back_is_copied_again(
    dsn: str, conn: psycopg.Connection, setup: str, ddl: str
) -> None:
    assert "publication" in (verdict(dsn, conn, setup, ddl) or "nothing")


def test_a_partition_whose_root_left_the_publication_and_came_back_is_copied_again(
    dsn: str, conn: psycopg.Connection
) -> None:
    """The partition's own schema is not sent. It is sent by its own name, because of its root's schema."""
    setup = (
        "create schema parts; create table r (id int primary key) partition by range (id); "
        "create table t (id int primary key); alter table t set schema parts; "
        "alter table r attach partition parts.t for values from (0) to (9); "
        "create publication p for tables in schema public"
    )
    ddl = "create schema away; alter table r set schema away; alter table away.r set schema public"
    assert "publication" in (verdict(dsn, conn, setup, ddl, TableId("parts", "t")) or "nothing")


@pytest.mark.parametrize("ddl", PARTITIONS_HARMLESS.values(), ids=PARTITIONS_HARMLESS)
def test_a_partition_that_was_made_empty_is_followed(dsn: str, conn: psycopg.Connection, ddl: str) -> None:
    assert verdict(dsn, conn, PARTITIONED, ddl) is None


@pytest.mark.parametrize(("ddl", "reason"), PARTITIONS_DOUBTFUL.values(), ids=PARTITIONS_DOUBTFUL)
def test_what_happens_to_a_whole_partition_means_a_new_copy(
    dsn: str, conn: psycopg.Connection, ddl: str, reason: str
) -> None:
    assert reason in (verdict(dsn, conn, PARTITIONED, ddl) or "nothing")


def test_a_table_that_may_have_been_unlogged_is_copied_again(dsn: str, conn: psycopg.Connection) -> None:
    """With `for all tables` the server lets a table be unlogged, and its changes are nowhere."""
    setup = "create table t (id int primary key, v int); create publication p for all tables"
    ddl = "alter table t set unlogged; insert into t values (1, 1); alter table t set logged"
    assert "unlogged" in (verdict(dsn, conn, setup, ddl) or "nothing")


def test_a_table_with_text_that_was_unlogged_is_copied_again(dsn: str, conn: psycopg.Connection) -> None:
    setup = "create table t (id int primary key, v text); create publication p for all tables"
    ddl = "alter table t set unlogged; insert into t values (1, 'x'); alter table t set logged"
    assert verdict(dsn, conn, setup, ddl) == "the table was rewritten"


def test_a_gone_table_has_no_definition(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute("create publication p")
    assert PostgresSource(dsn).define(CLAIM, {T: None}) == {}


def test_a_table_that_is_locked_holds_up_no_look(dsn: str, conn: psycopg.Connection) -> None:
    """A long `alter table` is one table's affair: a look at it, before every cut of all others, must not wait."""
    conn.execute(PARTITIONED)
    conn.execute("create table other (id int primary key); insert into other values (1)")
    source = PostgresSource(dsn)
    claim = source.claim(None) | {"publication": "p", "owns_publication": False}
    source.prepare(claim, [T], None)
    before = source.define(claim, {T: None})[T].definition
    with psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as pool:
        other.execute("alter table t add x int default 5; lock table other in access exclusive mode")
        looked = pool.submit(_look, source, claim, before)
        try:
            tables, definition, chunks = looked.result(timeout=20)
        finally:
            other.rollback()
    assert {str(each.table) for each in tables} == {"public.other", "public.t"}
    assert definition == before
    assert len(chunks) == 1


def _look(source: PostgresSource, claim: Claim, before: Any) -> tuple[list[SourceTable], Any, list[Any]]:
    """Everything that a look asks of the source, and what a copy asks before it reads."""
    tables = source.tables((), ())
    assert source.unsent(claim, [each.table for each in tables]) == {TableId("public", "other")}
    assert set(source.describe([T])) == {T}
    assert list(source.prepare(claim, [T], None).refused) == []
    (other,) = [each for each in tables if each.table.name == "other"]
    return tables, source.define(claim, {T: before})[T].definition, source.chunks(other, 1 << 20)


CHANGED = {
    **{f"{name}, a table": (SETUP, ddl) for name, ddl in HARMLESS.items() if name != "an analyze"},
    **{f"{name}, a table": (SETUP, ddl) for name, (ddl, _) in DOUBTFUL.items()},
    **{f"{name}, partitions": (PARTITIONED, ddl) for name, ddl in PARTITIONS_HARMLESS.items()},
    **{f"{name}, partitions": (PARTITIONED, ddl) for name, (ddl, _) in PARTITIONS_DOUBTFUL.items()},
    "a right to a schema": (SETUP, "grant create on schema public to public"),
    "row security": (SETUP, "alter table t enable row level security; create policy x on t using (true)"),
    "a new table": (SETUP, "create table u (id int primary key)"),
    "a table that is gone": (SETUP, "drop table t"),
    "a renamed schema": (SETUP, "alter schema public rename to other"),
    "all tables of a schema sent": (SETUP, "alter publication p add tables in schema public"),
    "a domain": (SETUP, "create domain positive as int check (value > 0); alter domain positive drop not null"),
}


@pytest.mark.parametrize(("setup", "ddl"), CHANGED.values(), ids=CHANGED)
def test_whatever_a_look_could_find_makes_another_mark(
    dsn: str, conn: psycopg.Connection, setup: str, ddl: str
) -> None:
    assert mark_is_another(dsn, conn, setup, ddl)


def test_rows_statistics_temporary_tables_and_what_was_taken_back_leave_the_mark_as_it_was(
    dsn: str, conn: psycopg.Connection
) -> None:
    nothing = "update t set v = 7; insert into t (id) values (9); delete from t where id = 1; analyze t; vacuum t"
    temporary = "create temp table x (id int primary key, m mood default 'ok'); drop table x"
    assert not mark_is_another(dsn, conn, SETUP, f"{nothing}; {temporary}; create temp table y (id int)")
    with psycopg.connect(dsn) as other:
        before = PostgresSource(dsn).mark()
        other.execute("alter table t add x int default 5")
        assert PostgresSource(dsn).mark() == before
        other.rollback()
    assert PostgresSource(dsn).mark() == before
