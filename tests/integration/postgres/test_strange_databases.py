"""Databases as strangers have them: whatever they are called and written in, the stream and the copy say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from psycopg import sql
from tests.doors.capturing import logged_changes
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until

from tailrace.errors import DefiniteError, ResyncError
from tailrace.model.change import PREFIX
from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource

Rows = dict[str, list[dict[str, Any]]]


def copied(source: PostgresSource, *tables: TableId) -> Rows:
    """All rows as a copy reads them, in many chunks."""
    rows: Rows = {}
    with source.snapshot() as point:
        for table, described in source.describe(tables).items():
            assert described.problem is None, described.problem
            chunks = source.chunks(described, 8192)
            batches = [batch for chunk in chunks for batch in source.read_chunk(point, chunk, described.schema)]
            rows[str(table)] = [row for batch in batches for row in batch.to_pylist()]
    return rows


def streamed(source: PostgresSource, log: Path, write: Callable[[], object], *tables: TableId) -> Rows:
    """The rows that `write` inserts, as the stream tells them."""
    claim = source.claim(None)
    assert source.prepare(claim, tables, None).refused == {}
    with Capture(source, claim, log) as capture:
        wait_until(lambda: capture.is_streaming)
        write()
        now = source.now().ordinal
        wait_until(lambda: capture.head.ordinal >= now)
    changes = {str(table): logged_changes(PostgresSource, log, str(table)) for table in tables}
    return {table: [_row(change) for change in found] for table, found in changes.items()}


def _row(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if not name.startswith(PREFIX)}


@pytest.fixture
def encoded(server: EmbeddedPostgres) -> Iterator[Callable[[str], str]]:
    """Makes databases of an encoding."""
    made = []

    def make(encoding: str) -> str:
        made.append(f"in_{encoding.lower()}")
        create = f"create database {made[-1]} encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'"
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute(create)  # type: ignore[call-overload]
        return server.dsn(made[-1])

    yield make
    for name in made:
        server.drop_database(name)


def test_a_latin1_database_is_copied_and_streamed_in_utf8(encoded: Callable[[str], str], tmp_path: Path) -> None:
    dsn = encoded("LATIN1")
    source = PostgresSource(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute('create schema "Münze"; create table "Münze"."Größe" ("Straße" text primary key, mood text)')
        table = TableId("Münze", "Größe")
        insert = "insert into \"Münze\".\"Größe\" values ('é ü ß ÿ', E'\\u00a7'), ('plain', null)"
        rows = streamed(source, tmp_path / "log", lambda: conn.execute(insert), table)
        assert rows == copied(source, table)
        assert rows == {
            "Münze.Größe": [{"Straße": "é ü ß ÿ", "mood": "§"}, {"Straße": "plain", "mood": None}],
        }


def test_text_without_an_encoding_is_copied_where_it_is_utf8_and_stops_its_table_where_it_is_not(
    encoded: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = encoded("SQL_ASCII")
    source = PostgresSource(dsn)
    fine, odd = TableId("public", "fine"), TableId("public", "odd")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table fine (id int primary key, v text); create table odd (like fine including all)")
        write = (
            rb"insert into fine values (1, E'\xc3\xa4'), (2, E'\\x'); insert into odd values (1, E'a'), (2, E'\xe4')"
        )
        with pytest.raises(DefiniteError) as caught:
            streamed(source, tmp_path / "log", lambda: conn.execute(write), fine, odd)
        assert logged_changes(PostgresSource, tmp_path / "log", "public.fine")[0]["v"] == "ä"
        assert copied(source, fine) == {"public.fine": [{"id": 1, "v": "ä"}, {"id": 2, "v": "\\x"}]}
        with pytest.raises(DefiniteError) as in_copy:
            copied(source, odd)
        for error in (caught.value, in_copy.value):
            assert error.message == "public.odd column v: a value is not valid UTF-8"
            assert (error.table, "encoding" in (error.hint or "")) == ("public.odd", True)


def test_names_that_are_not_utf8_are_their_tables_trouble_and_the_hints_rename_them(
    encoded: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = encoded("SQL_ASCII")
    source, fine = PostgresSource(dsn), TableId("public", "fine")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            b'create table fine (id int primary key); create table "gr\xf6\xdfe" (id int primary key);'
            b'create schema "caf\xe9"; create table "caf\xe9".inside (id int primary key);'
            b'create table odd (id int primary key, "stra\xdfe" int); create type "t\xfcr" as enum (\'a\');'
            b'create table typed (id int primary key, v "t\xfcr")'
        )
        found = {str(each.table): each.problem for each in source.tables([], [])}
        problems = {table: problem for table, problem in found.items() if problem is not None}
        assert {table: problem.message for table, problem in problems.items()} == {
            "caf\\xe9.inside": "the name of schema caf\\xe9 is not UTF-8",
            "public.gr\\xf6\\xdfe": "the name of table public.gr\\xf6\\xdfe is not UTF-8",
            "public.odd": "the name of column stra\\xdfe of table public.odd is not UTF-8",
        }
        assert {"public.fine", "public.typed"} < found.keys()
        conn.execute("create publication everything for all tables")
        source = PostgresSource(dsn, publication="everything")
        write = b'insert into fine values (1); insert into "gr\xf6\xdfe" values (1);'
        write += b"insert into typed values (1, 'a'); insert into odd values (1, 1); insert into fine values (2)"
        rows = streamed(source, tmp_path / "log", lambda: conn.execute(write), fine, TableId("public", "typed"))
        assert rows == {"public.fine": [{"id": 1}, {"id": 2}], "public.typed": [{"id": 1, "v": "a"}]}
        for number, problem in enumerate(problems.values()):
            conn.execute((problem.hint or "").replace("new_name", f"renamed_{number}"))
        assert [each.problem for each in source.tables([], [])] == [None] * 5


def test_a_message_that_nobody_asked_for_may_have_any_prefix(encoded: Callable[[str], str], tmp_path: Path) -> None:
    dsn = encoded("SQL_ASCII")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table t (id int primary key)")
        emit = b"select pg_logical_emit_message(%s, E'caf\xe9', E'\xe9');"
        write = emit % b"true" + b"insert into t values (1);" + emit % b"false" + b"insert into t values (2)"
        rows = streamed(PostgresSource(dsn), tmp_path / "log", lambda: conn.execute(write), TableId("public", "t"))
        assert rows == {"public.t": [{"id": 1}, {"id": 2}]}


def test_a_transaction_with_a_value_that_the_server_cannot_convert_is_stepped_over_and_said_to_be_so(
    encoded: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = encoded("WIN1252")
    source, fine, odd = PostgresSource(dsn), TableId("public", "fine"), TableId("public", "odd")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table fine (id int primary key, v text); create table odd (like fine including all)")
        conn.execute("set client_encoding = 'WIN1252'")

        def write() -> None:
            conn.execute(rb"insert into odd values (1, E'\x81')")
            conn.execute(b"insert into fine values (1, '\xe4')")

        with pytest.raises(ResyncError, match="the server cannot send what the transaction at") as caught:
            streamed(source, tmp_path / "log", write, fine, odd)
        assert caught.value.table == "public.odd"
        assert [row["v"] for row in logged_changes(PostgresSource, tmp_path / "log", "public.fine")] == ["ä"]
        with pytest.raises(DefiniteError, match=r"cannot read public\.odd: ") as in_copy:
            copied(source, odd)
        assert in_copy.value.table == "public.odd"


def test_names_among_values_are_printed_alike_however_the_database_quotes_them(
    conn: psycopg.Connection, dsn: str, tmp_path: Path
) -> None:
    conn.execute("create table t (id int primary key, of regclass, kind regtype)")
    source, table = PostgresSource(dsn), TableId("public", "t")
    insert = "insert into t values (1, 'pg_class', 'int4')"
    conn.execute(f"alter database {conn.info.dbname} set quote_all_identifiers = on")
    try:
        rows = streamed(source, tmp_path / "log", lambda: conn.execute(insert), table)
        assert rows == copied(source, table) == {"public.t": [{"id": 1, "of": "pg_class", "kind": "integer"}]}
    finally:
        conn.execute(f"alter database {conn.info.dbname} reset quote_all_identifiers")


def test_a_database_in_which_nothing_may_be_written_by_default_is_told_with_what_changes_that(
    conn: psycopg.Connection, dsn: str
) -> None:
    conn.execute("create table t (id int primary key)")
    conn.execute("create role modest login superuser")
    conn.execute(f"alter database {conn.info.dbname} set default_transaction_read_only = on")
    theirs = dsn.replace("postgres@", "modest@")
    source, table = PostgresSource(theirs), TableId("public", "t")
    try:
        claim = source.claim(None)
        with pytest.raises(DefiniteError, match="cannot execute CREATE PUBLICATION") as caught:
            source.prepare(claim, [table], None)
        _, _, statements = str(caught.value.hint).partition("as the same user: ")
        with psycopg.connect(theirs, autocommit=True) as asked:
            for statement in statements.split(";"):
                asked.execute(statement)  # type: ignore[call-overload]
        source = PostgresSource(theirs)
        source.prepare(claim, [table], None)
        source.drop(claim)
    finally:
        conn.execute(f"alter database {conn.info.dbname} reset default_transaction_read_only; drop role modest")


LONGEST = "täbelle_" + "x" * 54
"""63 bytes in UTF-8, the most that a name can have."""


def test_names_of_any_letters_and_of_the_greatest_length(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    names = [
        LONGEST,
        "日本語",
        "with space",
        'quo"te',
        "semi;colon",
        "back\\slash",
        "per%cent",
        "new\nline",
        "😀",
        "a.b",
    ]
    tables = [TableId("Schéma 1", name) for name in names]
    conn.execute('create schema "Schéma 1"')
    for table in tables:
        create = "create table {} ({} int primary key, {} text)"
        key, column = sql.Identifier(table.name), sql.Identifier(f"{table.name[:20]} v")
        conn.execute(sql.SQL(create).format(sql.Identifier(table.namespace, table.name), key, column))  # type: ignore[arg-type]

    def write() -> None:
        for table in tables:
            conn.execute(sql.SQL("insert into {} values (1, 'v')").format(sql.Identifier(*vars(table).values())))

    source = PostgresSource(dsn)
    assert len(LONGEST.encode()) == 63
    rows = streamed(source, tmp_path / "log", write, *tables)
    assert rows == copied(source, *tables)
    assert rows == {str(table): [{table.name: 1, f"{table.name[:20]} v": "v"}] for table in tables}


def test_parents_and_children_by_inheritance_are_tables_of_their_own(
    conn: psycopg.Connection, dsn: str, tmp_path: Path
) -> None:
    conn.execute(
        "create table parent (id int primary key, v text); create table keyed (primary key (id)) inherits (parent)"
    )
    conn.execute("create table keyless () inherits (parent)")
    source, parent, keyed = PostgresSource(dsn), TableId("public", "parent"), TableId("public", "keyed")
    found = {each.table.name: each.problem is None for each in source.tables([], [])}
    assert found == {"parent": True, "keyed": True, "keyless": False}

    def write() -> None:
        conn.execute(
            "insert into parent values (1, 'p'); insert into keyed values (2, 'c'); insert into keyless values (3)"
        )

    rows = streamed(source, tmp_path / "log", write, parent, keyed)
    assert rows == {"public.parent": [{"id": 1, "v": "p"}], "public.keyed": [{"id": 2, "v": "c"}]}
    assert rows == copied(source, parent, keyed)
    # A table without replica identity cannot be updated once it is published.
    conn.execute("update keyless set v = 'still ours'")
    claim = source.claim(None)
    source.prepare(claim, [keyed], None)
    source.prepare(claim, [keyed, parent], None)
    conn.execute("update parent set v = 'all three'")
    source.prepare(claim, [keyed], None)
    published = conn.execute("select tablename from pg_publication_tables where pubname = %s", [claim["publication"]])
    assert published.fetchall() == [("keyed",)]


def test_a_table_of_an_extension_is_copied_only_where_it_is_named(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table orders (id int primary key); create table internals (id int primary key)")
    conn.execute("alter extension plpgsql add table internals")
    source = PostgresSource(dsn)

    def chosen(*include: str) -> list[str]:
        return [each.table.name for each in source.tables(include, [])]

    try:
        assert chosen() == chosen("public.*") == ["orders"]
        assert chosen("internals") == chosen("public.internals") == ["internals"]
        assert chosen("orders", "internals") == ["internals", "orders"]
        with pytest.raises(DefiniteError, match="no table matches 'intern") as caught:
            chosen("intern*")
        assert caught.value.hint == "public.internals is part of the extension plpgsql: to copy it, give its whole name"
        told = [check.found for check in source.examine([], []) if check.name == "not copied"]
        assert told == ["public.internals is part of the extension plpgsql: to copy it, give its whole name"]
        assert list(source.describe([TableId("public", "internals")])) == [TableId("public", "internals")]
    finally:
        conn.execute("alter extension plpgsql drop table internals")


def test_what_is_no_table_or_has_nothing_to_copy_is_told(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        """create table t (id int primary key); create table empty ();
        create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
        create foreign table far (id int) server nowhere;
        create view seen as table t; create materialized view kept as table t;
        create temp table passing (id int primary key); create unlogged table scratch (id int primary key)"""
    )
    source = PostgresSource(dsn)
    found = {each.table.name: each.problem and each.problem.message for each in source.tables([], [])}
    assert found == {"t": None, "empty": "table public.empty has no columns that can be copied"}
    for name, what in {"far": "a foreign table", "seen": "a view", "kept": "a materialized view"}.items():
        with pytest.raises(DefiniteError) as caught:
            source.tables([name], [])
        assert caught.value.hint == f"public.{name} is {what}"
    conn.execute("drop foreign data wrapper nothing cascade")


def test_a_table_of_1600_columns(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} {'text' if number % 2 else 'int'}" for number in range(1599))
    conn.execute(f"create table wide (id int primary key, {columns})")
    source, table = PostgresSource(dsn), TableId("public", "wide")
    rows = streamed(source, tmp_path / "log", lambda: conn.execute("insert into wide values (1, 7, 'x')"), table)
    assert rows == copied(source, table)
    assert [len(rows["public.wide"][0]), rows["public.wide"][0]["c1"]] == [1600, "x"]


def test_a_schema_that_is_renamed_takes_its_tables_with_it(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create schema before; create table before.t (id int primary key)")
    source, before, after = PostgresSource(dsn), TableId("before", "t"), TableId("after", "t")
    claim = source.claim(None)
    source.prepare(claim, [before], None)
    relation = source.describe([before])[before].schema.relation
    conn.execute("alter schema before rename to after")
    (found,) = source.tables([], [])
    assert (found.table, found.schema.relation) == (after, relation)
    assert source.describe([before]) == {}
    assert source.unsent(claim, [before, after]) == {before}
    assert source.prepare(claim, [after], source.now()).done == []
