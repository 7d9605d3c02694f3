"""A signal table of a real server: sent whatever its identity, copied only when asked for, and what is wrong with it is
said before anything begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until

from tailrace.connector.signals.channels import TableChannel
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.source.door.tables import Check
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

SIGNALS, ORDERS = TableId("ops", "signals"), TableId("public", "orders")
SETUP = "create schema ops; create table orders (id int primary key, v text); insert into orders values (1, 'a')"
TABLES = {
    "with a key": "create table ops.signals (id varchar(42) primary key, type varchar(32), data varchar(2048))",
    "without a key": "create table ops.signals (id text, type char(20), data jsonb)",
    "without identity": "create table ops.signals (id text primary key, type text, data json, at timestamptz); "
    "alter table ops.signals replica identity nothing",
    "with whole rows": "create table ops.signals (id text, type text, data text); "
    "alter table ops.signals replica identity full",
    "partitioned": "create table ops.signals (id text, type text, data text) partition by list (type); "
    "create table ops.signals_rest partition of ops.signals default",
}


def source_of(dsn: str, **options: Any) -> PostgresSource:
    return PostgresSource(dsn, signal_table="ops.signals", **options)


def chosen(source: PostgresSource, *include: str) -> list[TableId]:
    return [each.table for each in source.tables(include, []) if each.problem is None]


def signal_check(source: PostgresSource) -> Check:
    return next(check for check in source.examine([], []) if check.name == "signal table")


def signals_in(log: Path) -> list[tuple[str, str, str]]:
    table = TableChannel(SIGNALS, PostgresSource.decode)
    arrivals, _ = table.read(LogReader(log), table.begin(None, None))
    return [(each.signal.id, each.signal.type, each.signal.data) for each in arrivals]


@pytest.mark.parametrize("kind", TABLES)
def test_rows_arrive_as_signals_whatever_identifies_them_and_are_not_copied(
    dsn: str, conn: psycopg.Connection, tmp_path: Path, kind: str
) -> None:
    conn.execute(SETUP)
    conn.execute(TABLES[kind])
    source = source_of(dsn)
    assert signal_check(source) == Check("signal table", True, "ops.signals is there")
    assert chosen(source) == [ORDERS]
    claim = source.claim(None)
    assert source.prepare(claim, chosen(source), None).refused == {}
    assert source.prepare(claim, chosen(source), None).done == [], "everything is as it should be"
    with Capture(source, claim, tmp_path / "log") as capture:
        conn.execute("begin; insert into ops.signals values ('1', 'log', '{\"a\": 1}'), ('2', 'stop-snapshot', null)")
        conn.execute("update orders set v = 'b'; commit")
        if kind in ("with a key", "with whole rows"):
            conn.execute("update ops.signals set type = 'log'")
        else:
            conn.execute("update ops.signals set type = 'changed'; delete from ops.signals")
        conn.execute("insert into ops.signals values ('3', 'pause-snapshot', '{}')")
        wait_until(lambda: capture.head.ordinal >= source.now().ordinal)
    assert signals_in(tmp_path / "log") == [
        ("1", "log", '{"a": 1}'),
        ("2", "stop-snapshot", ""),
        ("3", "pause-snapshot", "{}"),
    ]


def test_a_signal_table_is_copied_where_a_pattern_is_its_whole_name(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute(SETUP)
    conn.execute(TABLES["with a key"])
    source = source_of(dsn)
    assert chosen(source, "ops.signals", "orders") == [SIGNALS, ORDERS]
    claim = source.claim(None)
    assert source.prepare(claim, [SIGNALS, ORDERS], None).refused == {}
    assert source.unsent(claim, [SIGNALS, ORDERS]) == set()
    with pytest.raises(DefiniteError, match=r"no table matches 'ops\.nothing'"):
        source.tables(["ops.nothing"], [])


def test_one_that_is_not_there_is_an_error_of_doctor_and_start_whose_hint_makes_it(
    dsn: str, conn: psycopg.Connection
) -> None:
    conn.execute(SETUP)
    source = source_of(dsn)
    check = signal_check(source)
    assert (check.ok, check.found) == (False, "signal table ops.signals is not there")
    with pytest.raises(DefiniteError, match="is not there") as caught:
        source.claim(None)
    assert caught.value.hint == check.fix
    conn.execute(check.fix or "")
    assert signal_check(source).ok
    claim = source.claim(None)
    source.prepare(claim, [ORDERS], None)
    conn.execute("drop table ops.signals")
    assert source.prepare(claim, [ORDERS], None).refused == {}, "while it runs, the copy continues"
    with pytest.raises(DefiniteError, match="is not there"):
        source.claim(claim)


def test_one_whose_changes_are_not_in_the_wal_is_an_error_whose_hint_puts_them_there(
    dsn: str, conn: psycopg.Connection
) -> None:
    conn.execute(f"{SETUP}; create unlogged table ops.signals (id text, type text, data text)")
    check = signal_check(source_of(dsn))
    assert check.found == "signal table ops.signals is unlogged: its changes are not in the write-ahead log"
    conn.execute(check.fix or "")
    assert signal_check(source_of(dsn)).ok


@pytest.mark.parametrize("columns", ["id text, type text", "id int, type text, data text"])
def test_one_of_another_shape_is_an_error(dsn: str, conn: psycopg.Connection, columns: str) -> None:
    conn.execute(f"{SETUP}; create table ops.signals ({columns})")
    check = signal_check(source_of(dsn))
    assert check.found == "signal table ops.signals does not begin with three columns of text, for id, type and data"
    conn.execute(check.fix or "")
    assert signal_check(source_of(dsn)).ok


def test_a_name_without_a_namespace_is_refused_before_anything_is_connected_to() -> None:
    with pytest.raises(DefiniteError, match="is not the whole name of a table"):
        PostgresSource("postgresql://127.0.0.1:1/x", signal_table="signals")


@pytest.fixture
def owner(conn: psycopg.Connection, dsn: str) -> Iterator[str]:
    """A role that owns the orders and may copy them, but does not own the signal table."""
    conn.execute("drop role if exists keeper; create role keeper login replication")
    conn.execute(f"{SETUP}; {TABLES['with a key']}; alter table orders owner to keeper")
    conn.execute(
        "grant usage on schema ops to keeper; do $$ begin execute 'grant create on database ' || "
        "quote_ident(current_database()) || ' to keeper'; end $$"
    )
    yield dsn.replace("postgres@", "keeper@")
    conn.execute("drop owned by keeper cascade; drop role keeper")


def test_a_missing_right_is_an_error_whose_hint_gives_it(owner: str, conn: psycopg.Connection) -> None:
    source = source_of(owner)
    check = signal_check(source)
    assert check.found == "user keeper does not own table ops.signals and cannot publish it"
    conn.execute((check.fix or "").partition(", or")[0])
    assert signal_check(source).ok
    assert source.claim(None)["inserts"]


def test_a_lake_that_was_begun_without_it_needs_a_key_there(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute(f"{SETUP}; {TABLES['without a key']}")
    plain = PostgresSource(dsn)
    claim: Claim = plain.claim(None)
    plain.prepare(claim, [ORDERS], None)
    with pytest.raises(DefiniteError, match="has no primary key, and this lake was begun without --signal-table"):
        source_of(dsn).claim(claim)
    conn.execute("alter table ops.signals add primary key (id)")
    later = source_of(dsn)
    assert later.claim(claim) == claim
    said = f"publication {claim['publication']} sends 1 table more, 2 in all"
    assert later.prepare(claim, [ORDERS], None).done == [said]


def test_a_publication_of_others_must_send_it(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute(f"{SETUP}; {TABLES['with a key']}; create publication mine for table orders")
    source = source_of(dsn, publication="mine")
    check = signal_check(source)
    assert check.found == "publication mine does not send table ops.signals"
    conn.execute((check.fix or "").partition("; if")[0])
    assert signal_check(source).ok
    assert source.prepare(source.claim(None), [ORDERS], None).refused == {}
