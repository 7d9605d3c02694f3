"""Capture through the door: everything once, across pauses, restarts and other servers' claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until

from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.change import ORDINAL
from tailrace.model.table import TableId
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")


@pytest.fixture
def source(conn: psycopg.Connection, dsn: str) -> PostgresSource:
    conn.execute("create table t (id int primary key, body text)")
    # A client that is silent for this long is cut off.
    return PostgresSource(f"{dsn}?options=-c%20wal_sender_timeout%3D2s")


@pytest.fixture
def claim(source: PostgresSource) -> Claim:
    made = source.claim(None)
    source.prepare(made, [T], None)
    return made


def insert(conn: psycopg.Connection, *ids: int) -> None:
    for number in ids:
        conn.execute("insert into t values (%s, 'x')", [number])


def changes(source: PostgresSource, log: Path) -> Any:
    """All that the log has of the table, decoded."""
    reader = LogReader(log)
    schema = source.describe([T])[T].schema
    upto = reader.head.seq
    batches = [
        source.decode(batch, schema)
        for piece in reader.ranges(0, upto, 1 << 20)
        for batch in read(log, piece, 0, upto, {schema.relation})
    ]
    return pa.Table.from_batches(batches)


def ids(source: PostgresSource, log: Path) -> list[int]:
    return list(changes(source, log).column("id").to_pylist())


def reaches_now(capture: Capture, source: PostgresSource) -> None:
    now = source.now().ordinal
    wait_until(lambda: capture.is_streaming and capture.head.ordinal >= now)


def walsender(conn: psycopg.Connection, claim: Claim) -> Any:
    query = "select active_pid, reply_time from pg_replication_slots join pg_stat_replication on pid = active_pid"
    return conn.execute(f"{query} where slot_name = %s", [claim["slot"]]).fetchone()


def test_each_change_arrives_once_also_after_a_restart_and_an_idle_server_is_reached(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    with Capture(source, claim, tmp_path / "log") as capture:
        insert(conn, 1, 2)
        reaches_now(capture, source)
        # Nothing of this is published.
        conn.execute("create table elsewhere (id int)")
        reaches_now(capture, source)
        assert source.lag_bytes(capture.head.ordinal) == 0
    insert(conn, 3)
    with Capture(source, claim, tmp_path / "log") as capture:
        reaches_now(capture, source)
    assert ids(source, tmp_path / "log") == [1, 2, 3]


def test_a_paused_capture_takes_nothing_keeps_its_connection_and_then_takes_all_of_it_once(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    with Capture(source, claim, tmp_path / "log") as capture:
        insert(conn, 1)
        reaches_now(capture, source)
        capture.control.pause()
        before = source.now().ordinal
        pid, since = walsender(conn, claim)
        # More than the network holds, so that the server has to wait with it.
        conn.execute("insert into t select i, repeat('large', 5000) from generate_series(2, 1000) i")
        insert(conn, 1001)
        # Longer than the server waits for a sign of life.
        wait_until(lambda: (walsender(conn, claim)[1] - since).total_seconds() > 3)
        assert walsender(conn, claim)[0] == pid
        assert capture.head.ordinal <= before
        assert capture.head.seq == 1
        capture.control.resume()
        reaches_now(capture, source)
        assert walsender(conn, claim)[0] == pid
    assert ids(source, tmp_path / "log") == list(range(1, 1002))


def test_a_snapshot_shows_exactly_the_commits_that_it_says(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    with Capture(source, claim, tmp_path / "log") as capture:
        insert(conn, 1, 2)
        with source.snapshot() as point:
            insert(conn, 3, 4)
            described = source.describe([T])[T]
            batches = [
                batch
                for chunk in source.chunks(described, 1 << 20)
                for batch in source.read_chunk(point, chunk, described.schema)
            ]
        reaches_now(capture, source)
    shown = pa.Table.from_batches(batches).column("id").to_pylist()
    logged = changes(source, tmp_path / "log")
    limit = source.shown_up_to(point.position)
    commits = zip(logged["id"].to_pylist(), logged[ORDINAL].to_pylist(), strict=True)
    assert sorted(shown) == [number for number, ordinal in commits if ordinal <= limit] == [1, 2]


def test_the_log_of_another_database_is_not_continued(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    other = {**source.identify(), "database": "another"}
    LogWriter.open(tmp_path / "log", other).close()
    capture = Capture(source, claim, tmp_path / "log")
    capture.identity = other
    with capture:
        wait_until(lambda: capture.has_ended)
    assert capture.error is not None
    assert f"database {conn.info.dbname}; the log is of system" in capture.error.message
    assert "database another" in capture.error.message


def test_a_server_on_another_timeline_is_not_captured_from(
    source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    with Capture(source, {**claim, "timeline": 7}, tmp_path / "log") as capture:
        wait_until(lambda: capture.has_ended)
    assert capture.error is not None
    assert "is on timeline 1, not 7: timeline 7 is none of its own" in capture.error.message


def test_a_slot_that_is_in_use_is_waited_for(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    with Capture(source, claim, tmp_path / "first") as first:
        wait_until(lambda: first.is_streaming)
        with Capture(source, claim, tmp_path / "second") as second:
            wait_until(lambda: second.problem)
            pid = walsender(conn, claim)[0]
            assert f"slot {claim['slot']} is held by process {pid} of the server (tailrace from " in second.problem
            first.control.stopping.set()
            wait_until(lambda: second.is_streaming)


def test_capture_ends_when_its_publication_is_dropped_also_where_the_server_does_not_mind(
    conn: psycopg.Connection, dsn: str, claim: Claim, tmp_path: Path
) -> None:
    source = PostgresSource(dsn, stream={"upkeep_seconds": 0.1})
    with Capture(source, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.is_streaming)
        conn.execute(f"drop publication {claim['publication']}")
        wait_until(lambda: capture.has_ended)
    assert capture.error is not None
    assert capture.error.message == f"publication {claim['publication']} is gone: the server sends no more changes"


@pytest.mark.parametrize("is_paused", [False, True])
def test_capture_connects_again_when_the_server_cuts_it_off_also_while_paused(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path, is_paused: bool
) -> None:
    with Capture(source, claim, tmp_path / "log") as capture:
        insert(conn, 1)
        reaches_now(capture, source)
        if is_paused:
            capture.control.pause()
            insert(conn, 2)
        conn.execute("select pg_terminate_backend(%s, 5000)", [walsender(conn, claim)[0]])
        insert(conn, 3)
        wait_until(lambda: len(capture.reports) > 2)
        assert "trying again" in capture.reports[1]
        assert capture.is_streaming
        if is_paused:
            assert capture.head.seq == 1
            capture.control.resume()
        reaches_now(capture, source)
    assert ids(source, tmp_path / "log") == ([1, 2, 3] if is_paused else [1, 3])
