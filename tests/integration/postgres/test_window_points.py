"""States of real servers: what is in the log and not in the state, and the other way round.

Rows read under a window, with the changes of what `unseen` names on top, are the table at the log's end. Each test has
a server of its own, because it changes what all sessions of the server see.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.reading import described, read
from tests.postgres import wait_until

from tailrace.log.reader import LogReader
from tailrace.source.door.rows import WindowPoint
from tailrace.source.postgres.rows.visibility import unseen
from tailrace.source.postgres.source import PostgresSource


@contextmanager
def server_of_its_own(**settings: str) -> Iterator[EmbeddedPostgres]:
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=settings) as server,
    ):
        yield server


@contextmanager
def captured(dsn: str) -> Iterator[tuple[psycopg.Connection, PostgresSource, Capture]]:
    """The table `t` of a database, whose changes are captured."""
    source = PostgresSource(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn, TemporaryDirectory() as folder:
        conn.execute("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
        claim = source.claim(None)
        source.prepare(claim, [table.table for table in source.tables(["t"], [])], None)
        with Capture(source, claim, Path(folder) / "log") as capture:
            wait_until(lambda: capture.is_streaming)
            yield conn, source, capture
        source.drop(claim)


def rows_under(source: PostgresSource, point: WindowPoint) -> dict[int, int]:
    table = described(source)
    found = read(source, point, table, source.key_chunks(point, table, (None, None), 1, 9))
    return {row["id"]: row["n"] for row in found.to_pylist()}


def logged(capture: Capture, upto: int) -> Any:
    """The log's index as soon as the log has reached a position."""
    wait_until(lambda: LogReader(capture.log).head.ordinal >= upto, seconds=30)
    reader = LogReader(capture.log)
    return reader.transactions(0, reader.head.seq)


@contextmanager
def waiting_for_a_standby(conn: psycopg.Connection, dsn: str, statement: str) -> Iterator[None]:
    """Inside, the statement is committed and waits for a synchronous standby that is not there."""
    conn.execute("set synchronous_commit = local")
    conn.execute("alter system set synchronous_standby_names = 'nowhere'")
    conn.execute("select pg_reload_conf()")
    with psycopg.connect(dsn, autocommit=True) as writer:
        wait_until(lambda: writer.execute("show synchronous_standby_names").fetchone() == ("nowhere",))
        writing = threading.Thread(target=writer.execute, args=[statement])
        writing.start()
        try:
            pid = [writer.info.backend_pid]
            waits = "select wait_event = 'SyncRep' from pg_stat_activity where pid = %s"
            wait_until(lambda: conn.execute(waits, pid).fetchone() == (True,))
            yield
        finally:
            conn.execute("select pg_cancel_backend(%s)", pid)
            writing.join()
            conn.execute("alter system reset synchronous_standby_names")
            conn.execute("select pg_reload_conf()")


def test_an_idle_server_flushes_what_an_open_transaction_has_written_when_a_window_waits_for_it() -> None:
    """By itself it would do so after 15 seconds or more, and a copy waits for every window."""
    with server_of_its_own() as server, captured(server.create_database("idle")) as (conn, source, capture):
        conn.execute("create table other (n int)")
        conn.execute("checkpoint")
        with psycopg.connect(server.dsn("idle")) as writer:
            writer.execute("insert into other values (1)")
            begun = time.monotonic()
            for _ in range(3):
                with source.window() as point:
                    writer.execute("insert into other values (2)")
                wait_until(lambda upto=point.position.ordinal: LogReader(capture.log).head.ordinal >= upto, seconds=30)
            logged(capture, source.now().ordinal)
            assert time.monotonic() - begun < 12


def test_a_commit_that_waits_for_a_standby_is_in_the_log_and_is_not_shown() -> None:
    with server_of_its_own() as server, captured(server.dsn()) as (conn, source, capture):
        with waiting_for_a_standby(conn, server.dsn(), "update t set n = 1 where id = 1"):
            conn.execute("update t set n = 2 where id = 2")
            with source.window() as point:
                assert rows_under(source, point) == {1: 0, 2: 2}
            index = logged(capture, point.position.ordinal)
            assert point.is_exact
            assert source.unseen(point.view, index).tolist() == [True, False]
        assert source.unseen(source.view(), index).tolist() == [False, False]
        with source.window() as point:
            assert rows_under(source, point) == {1: 1, 2: 2}


def test_a_transaction_that_commits_after_the_state_was_taken_is_unseen_whatever_its_number() -> None:
    with server_of_its_own() as server:
        server.stop()
        # As after four thousand million transactions: the stream has the last 32 bits of their numbers alone.
        run(server, "pg_resetwal", "-e", "1", "-D", str(server.data_dir))
        server.start()
        with captured(server.dsn()) as (conn, source, capture), psycopg.connect(server.dsn()) as older:
            older.execute("update t set n = 1 where id = 1")
            conn.execute("update t set n = 2 where id = 2")
            with source.window() as point:
                assert point.view["xmax"] >> 32 == 1
                conn.execute("insert into t values (3, 3)")
                older.commit()
                assert rows_under(source, point) == {1: 0, 2: 2}
            index = logged(capture, source.now().ordinal)
            assert max(index.column("xid").to_pylist()) < 1 << 32
            assert source.unseen(point.view, index).tolist() == [False, True, True]
            assert source.unseen(source.view(), index).tolist() == [False, False, False]


def run(server: EmbeddedPostgres, program: str, *arguments: str) -> None:
    command = [server.bin_dir / program, *arguments]
    user = server.data_dir.owner()
    subprocess.run(command, check=True, capture_output=True, user=user, group=user, extra_groups=[], cwd="/")


@contextmanager
def standby_of(primary: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    """A standby that streams from the primary."""
    with TemporaryDirectory(prefix="tailrace-") as folder:
        standby = EmbeddedPostgres(Path(folder) / "data", primary.version)
        standby.data_dir.mkdir(mode=0o700)
        standby._open_to_system_user()
        run(primary, "pg_basebackup", "-d", primary.dsn(), "-D", str(standby.data_dir), "-c", "fast", "-R")
        (standby.data_dir / "port").unlink()
        with standby:
            yield standby


def test_a_transaction_that_is_open_on_the_primary_is_unseen_in_a_state_of_its_standby() -> None:
    with (
        server_of_its_own() as primary,
        captured(primary.dsn()) as (conn, source, capture),
        standby_of(primary) as server,
        psycopg.connect(primary.dsn()) as older,
        psycopg.connect(server.dsn(), autocommit=True) as there,
    ):
        standby = PostgresSource(server.dsn())
        older.execute("update t set n = 1 where id = 1")
        conn.execute("update t set n = 2 where id = 2")
        end = conn.execute("select pg_current_wal_flush_lsn()::text").fetchone()
        wait_until(lambda: there.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", end).fetchone() == (True,))
        with standby.window() as point:
            older.commit()
            conn.execute("insert into t values (3, 3)")
            wait_until(lambda: there.execute("select count(*) from t").fetchone() == (3,))
            assert rows_under(standby, point) == {1: 0, 2: 2}
        index = logged(capture, source.now().ordinal)
        assert point.is_exact
        assert standby.unseen(point.view, index).tolist() == [False, True, True]
        assert standby.unseen(standby.view(), index).tolist() == [False, False, False]
        assert index.column("end_ordinal")[0].as_py() <= point.position.ordinal < source.now().ordinal


def test_whatever_a_standby_shows_while_it_replays_lies_between_what_is_seen_and_the_position() -> None:
    with (
        server_of_its_own() as primary,
        captured(primary.dsn()) as (_, source, capture),
        standby_of(primary) as server,
    ):
        standby = PostgresSource(server.dsn())
        stop = threading.Event()

        def write() -> None:
            with psycopg.connect(primary.dsn(), autocommit=True) as writer:
                while not stop.is_set():
                    writer.execute("update t set n = n + 1 where id = 1")

        writing = threading.Thread(target=write)
        writing.start()
        try:
            states = []
            for _ in range(10):
                with standby.window() as point:
                    states.append((point, rows_under(standby, point)[1]))
        finally:
            stop.set()
            writing.join()
        index = logged(capture, source.now().ordinal)
        for point, n in states:
            seen = int((~unseen(point.view, index)).sum())
            reached = sum(end <= point.position.ordinal for end in index.column("end_ordinal").to_pylist())
            assert seen <= n <= reached
            assert not point.is_exact or seen == n
        assert states[-1][1] > 0


def test_a_window_needs_no_right_but_to_read_and_leaves_nothing() -> None:
    with server_of_its_own() as server, psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create table t (id int primary key, n int); insert into t values (1, 5)")
        conn.execute("create role reading login; grant select on t to reading")
        source = PostgresSource(server.dsn(user="reading"))
        before = conn.execute("select pg_current_wal_insert_lsn(), pg_current_snapshot()::text").fetchone()
        with source.window() as point:
            assert rows_under(source, point) == {1: 5}
            assert conn.execute("select count(*) from pg_replication_slots").fetchone() == (0,)
        assert conn.execute("select pg_current_wal_insert_lsn(), pg_current_snapshot()::text").fetchone() == before
        assert source.view() == point.view


def test_a_commit_that_did_not_wait_for_the_disk_is_safe_when_the_window_ends() -> None:
    with server_of_its_own(wal_writer_delay="3s") as server, psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create table t (id int primary key, n int)")
        conn.execute("set synchronous_commit = off")
        source = PostgresSource(server.dsn())
        unsafe = "select pg_current_wal_flush_lsn() < %s::pg_lsn"
        heard: list[object] = []
        conn.execute("insert into t values (1, 5)")
        with source.window(heard.append) as point:
            assert rows_under(source, point) == {1: 5}
            was_unsafe = conn.execute(unsafe, [source.format(point.position)]).fetchone() == (True,)
        assert conn.execute(unsafe, [source.format(point.position)]).fetchone() == (False,)
        assert bool(heard) == was_unsafe
