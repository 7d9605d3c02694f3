"""What windows write to a real server's signal table, and what is wrong with that table is said before anything
begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.test_signal_table import signals_in
from tests.integration.postgres.test_window_points import server_of_its_own, waiting_for_a_standby
from tests.postgres import wait_until

from tailrace.errors import DefiniteError, TransientError
from tailrace.model.table import TableId
from tailrace.settings import Watermarking
from tailrace.source.postgres.catalog.signal_table import SignalTable
from tailrace.source.postgres.rows.watermarks import SignalWatermarks
from tailrace.source.postgres.source import PostgresSource

SETUP = """
create schema ops; create table orders (id int primary key); insert into orders values (1);
create table ops.signals (id varchar(42) primary key, type varchar(32), data varchar(2048));
"""
WRITING = [Watermarking.INSERT_INSERT, Watermarking.INSERT_DELETE]
Rows = list[tuple[str, str]]


def source_of(dsn: str, how: Watermarking) -> PostgresSource:
    return PostgresSource(dsn, signal_table="ops.signals", watermarks=how)


def types(conn: psycopg.Connection) -> list[str]:
    return [type_ for (type_,) in conn.execute("select type from ops.signals order by type desc")]


@pytest.mark.parametrize(
    ("how", "inside", "after"),
    [
        (Watermarking.READ_ONLY, [], []),
        (Watermarking.INSERT_INSERT, ["snapshot-window-open"], ["snapshot-window-open", "snapshot-window-close"]),
        (Watermarking.INSERT_DELETE, ["snapshot-window-open"], []),
    ],
)
def test_a_window_is_opened_before_its_state_is_taken_and_closed_after_it(
    dsn: str, conn: psycopg.Connection, how: Watermarking, inside: list[str], after: list[str]
) -> None:
    conn.execute(SETUP)
    with source_of(dsn, how).window() as point:
        conn.execute("begin isolation level repeatable read; set transaction snapshot '" + point.token + "'")
        assert types(conn) == inside
        conn.execute("commit; begin; rollback")
        assert types(conn) == inside
    assert types(conn) == after
    ids = [id_.removesuffix("-open").removesuffix("-close") for (id_,) in conn.execute("select id from ops.signals")]
    assert len(set(ids)) <= 1


@pytest.mark.parametrize("how", WRITING)
def test_watermarks_are_in_the_log_and_are_no_signals(
    dsn: str, conn: psycopg.Connection, tmp_path: Path, how: Watermarking
) -> None:
    conn.execute(SETUP)
    source = source_of(dsn, how)
    claim = source.claim(None)
    source.prepare(claim, [TableId("public", "orders")], None)
    with Capture(source, claim, tmp_path / "log") as capture:
        with source.window():
            conn.execute("insert into ops.signals values ('1', 'log', '{}')")
        wait_until(lambda: capture.head.ordinal >= source.now().ordinal)
        assert capture.head.seq == 3
    assert signals_in(tmp_path / "log") == [("1", "log", "{}")]


@pytest.mark.parametrize("how", WRITING)
def test_a_window_that_breaks_off_is_closed_too(dsn: str, conn: psycopg.Connection, how: Watermarking) -> None:
    conn.execute(SETUP)
    with pytest.raises(TransientError, match="stopped"), source_of(dsn, how).window():
        raise TransientError("stopped")
    assert types(conn) == (["snapshot-window-open", "snapshot-window-close"] if "delete" not in how else [])


def test_what_a_session_has_left_that_is_no_more_is_deleted_before_the_next_window(
    dsn: str, conn: psycopg.Connection
) -> None:
    conn.execute(SETUP)
    source = source_of(dsn, Watermarking.INSERT_DELETE)
    foreign = '{"openWindowTimestamp": "2026-11-17T00:00:00Z"}'
    conn.execute("insert into ops.signals values ('debezium-open', 'snapshot-window-open', %s)", [foreign])
    with source.window():
        (mine,) = conn.execute("select id from ops.signals where id <> 'debezium-open'").fetchone() or ("",)
        conn.execute(
            "insert into ops.signals select 'stale-open', type, replace(data, 'session ', 'session 1')"
            " from ops.signals where id = %s",
            [mine],
        )
        with source.window():
            found = {id_ for (id_,) in conn.execute("select id from ops.signals")}
            assert {"debezium-open", mine} < found
            assert "stale-open" not in found
    assert types(conn) == ["snapshot-window-open"]


def test_neither_waits_for_a_standby_that_is_away() -> None:
    with server_of_its_own() as server, psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute(SETUP)
        with (
            waiting_for_a_standby(conn, server.dsn(), "insert into orders values (2)"),
            source_of(server.dsn(), Watermarking.INSERT_INSERT).window(),
        ):
            assert types(conn) == ["snapshot-window-open"]
        assert types(conn) == ["snapshot-window-open", "snapshot-window-close"]


def test_without_a_signal_table_they_are_refused_before_anything_is_connected_to() -> None:
    with pytest.raises(DefiniteError, match="--watermarks insert_insert needs a signal table") as caught:
        PostgresSource("postgresql://127.0.0.1:1/x").watermarked(Watermarking.INSERT_INSERT)
    assert "--signal-table" in (caught.value.hint or "")


@pytest.fixture
def writer(conn: psycopg.Connection, dsn: str) -> Iterator[str]:
    """A role that owns the signal table through another role, and may do nothing with its rows."""
    conn.execute(f"drop role if exists keeper; create role keeper login replication; {SETUP}")
    conn.execute("alter table ops.signals owner to keeper; alter table orders owner to keeper")
    conn.execute("grant usage on schema ops to keeper; revoke insert, delete, select on ops.signals from keeper")
    conn.execute(
        "do $$ begin execute 'grant create on database ' || quote_ident(current_database()) || ' to keeper'; end $$"
    )
    yield dsn.replace("postgres@", "keeper@")
    conn.execute("drop owned by keeper cascade; drop role keeper")


@pytest.mark.parametrize("how", WRITING)
def test_a_right_that_is_missing_is_named_and_the_hint_gives_it(
    writer: str, conn: psycopg.Connection, how: Watermarking
) -> None:
    source = source_of(writer, how)
    with pytest.raises(DefiniteError, match="takes no watermarks: permission denied") as told:
        source.claim(None)
    check = next(check for check in source.examine([], []) if check.name == "signal table")
    assert (check.ok, check.fix) == (False, told.value.hint)
    with pytest.raises(TransientError, match="permission denied") as caught, source.window():
        pass
    assert caught.value.hint == told.value.hint, "while it runs, the copy waits for the right"
    conn.execute(told.value.hint or "")
    assert source.claim(None)
    with source.window():
        pass


@pytest.mark.parametrize(
    ("columns", "how", "error"),
    [
        ("id text, type text, data text", Watermarking.INSERT_DELETE, "has no primary key: its deletes are not sent"),
        ("id varchar(20) primary key, type text, data text", Watermarking.INSERT_INSERT, "value too long"),
        ("id text primary key, type char(20), data text", Watermarking.INSERT_INSERT, "value too long"),
        ("id text primary key, type text, data text, by text not null", Watermarking.INSERT_INSERT, "null value"),
    ],
)
def test_a_table_that_does_not_take_them_is_refused(
    dsn: str, conn: psycopg.Connection, columns: str, how: Watermarking, error: str
) -> None:
    conn.execute(f"{SETUP}; drop table ops.signals; create table ops.signals ({columns})")
    with pytest.raises(DefiniteError, match=error):
        source_of(dsn, how).claim(None)
    assert conn.execute("select count(*) from ops.signals").fetchone() == (0,)


def test_a_signal_table_that_is_locked_is_told_and_not_waited_for(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute(SETUP)
    marks = SignalWatermarks(SignalTable.named("ops.signals"), Watermarking.INSERT_INSERT, lock_seconds=1)
    with psycopg.connect(dsn) as other:
        other.execute("lock table ops.signals")
        with (
            pytest.raises(TransientError, match=r"signal table ops\.signals is locked by another session"),
            marks.around(conn),
        ):
            pass
