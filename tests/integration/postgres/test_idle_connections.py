"""Connections that are kept between the windows of a copy."""

from __future__ import annotations

import threading

import psycopg
import pytest
from tests.integration.postgres.reading import described, numbers, read
from tests.postgres import wait_until

from tailrace.errors import TransientError
from tailrace.source.postgres.server import connection
from tailrace.source.postgres.server.connection import ConnectionOptions, IdleConnections
from tailrace.source.postgres.server.refusals import ServerFullError
from tailrace.source.postgres.source import PostgresSource

OURS = "select pid from pg_stat_activity where application_name = 'tailrace' and datname = current_database()"


def pids(conn: psycopg.Connection) -> set[int]:
    return {pid for (pid,) in conn.execute(OURS)}


def test_the_next_window_reads_with_the_connections_of_the_last(conn: psycopg.Connection, dsn: str) -> None:
    source = PostgresSource(dsn, connections={"idle_seconds": 60.0})
    conn.execute("create table t (id int primary key); insert into t select generate_series(1, 10)")
    table, before = described(source), pids(conn)
    used = []
    for _ in range(2):
        with source.window() as point:
            chunks = source.key_chunks(point, table, (None, None), 5, 2)
            assert numbers(read(source, point, table, chunks)) == list(range(1, 11))
        wait_until(lambda: len(pids(conn) - before) == 1, 20)
        used.append(pids(conn) - before)
    assert used[0] == used[1]


def test_none_is_kept_for_long(conn: psycopg.Connection, dsn: str) -> None:
    kept, before = IdleConnections(dsn, ConnectionOptions(idle_seconds=0.5)), pids(conn)
    kept.keep()
    with kept.borrowed():
        pass
    assert pids(conn) - before
    wait_until(lambda: not pids(conn) - before, 20)


def test_one_that_broke_or_is_in_a_transaction_is_not_kept(conn: psycopg.Connection, dsn: str) -> None:
    kept, before = IdleConnections(dsn), pids(conn)
    kept.keep()
    with pytest.raises(TransientError), kept.borrowed():
        raise TransientError("broken")
    with kept.borrowed() as one:
        one.execute("begin")
    wait_until(lambda: not pids(conn) - before, 20)


def test_a_reader_that_the_server_has_no_connection_for_takes_one_that_is_given_back(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, refused = IdleConnections(dsn, ConnectionOptions(idle_seconds=60.0)), threading.Event()
    kept.keep()
    found: list[int] = []

    def none_left(_: str) -> psycopg.Connection:
        refused.set()
        raise ServerFullError("none left")

    def read() -> None:
        with kept.borrowed() as other:
            found.append(other.info.backend_pid)

    with kept.borrowed() as one:
        monkeypatch.setattr(connection, "connect", none_left)
        reader = threading.Thread(target=read)
        reader.start()
        assert refused.wait(20)
    reader.join(20)
    assert found == [one.info.backend_pid]
    with kept.session() as asking:
        assert asking.info.backend_pid == one.info.backend_pid


def test_nothing_is_kept_where_no_window_was_opened(conn: psycopg.Connection, dsn: str) -> None:
    """As in an executor, which reads one chunk."""
    before = pids(conn)
    with IdleConnections(dsn).borrowed() as one:
        assert one.info.backend_pid in pids(conn)
    wait_until(lambda: not pids(conn) - before, 20)
