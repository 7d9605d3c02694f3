"""How far the server is told that we are: WAL is released when nothing happens to our tables, and never too early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.test_capture import ids, insert, reaches_now, walsender
from tests.postgres import wait_until
from tests.standby import Pair, pair_of

from tailrace.errors import GapError
from tailrace.log.files.disk import LogDisk
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource
from tailrace.source.postgres.stream import capture as stream_capture
from tailrace.source.postgres.stream import slot_holder
from tailrace.source.postgres.stream.slot import find_slot, why_lost

T = TableId("public", "t")


def ready(source: PostgresSource) -> Claim:
    claim = source.claim(None)
    source.prepare(claim, [T], None)
    return claim


@pytest.fixture
def source(conn: psycopg.Connection, dsn: str) -> PostgresSource:
    conn.execute("create table t (id int primary key, body text); create table busy (id int, body text)")
    # A client that is silent for this long is cut off.
    return PostgresSource(f"{dsn}?options=-c%20wal_sender_timeout%3D3s")


def retained_bytes(conn: psycopg.Connection, slot: str) -> int:
    query = "select pg_current_wal_lsn() - least(restart_lsn, confirmed_flush_lsn) from pg_replication_slots"
    row = conn.execute(f"{query} where slot_name = %s", [slot]).fetchone()
    assert row is not None
    return int(row[0])


def test_a_busy_server_keeps_little_wal_for_a_table_to_which_nothing_happens(
    conn: psycopg.Connection, source: PostgresSource, tmp_path: Path
) -> None:
    claim = ready(source)
    with Capture(source, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.is_streaming)
        for _ in range(10):
            conn.execute("insert into busy select n, repeat('x', 1000) from generate_series(1, 2000) n")
        assert retained_bytes(conn, claim["slot"]) > 10 << 20

        def is_released() -> bool:
            # The server's own note of what runs, which it otherwise takes every 15 s, and then only when busy.
            conn.execute("checkpoint")
            return retained_bytes(conn, claim["slot"]) < 1 << 20

        wait_until(is_released, 30)
        assert capture.head.seq == 0


class StallingDisk(LogDisk):
    """Waits with every sync while it stalls."""

    def __init__(self) -> None:
        self.works = threading.Event()
        self.works.set()

    def sync(self, descriptor: int) -> None:
        self.works.wait()
        super().sync(descriptor)


def test_a_disk_that_stalls_for_longer_than_the_server_waits_does_not_cost_the_connection(
    conn: psycopg.Connection, source: PostgresSource, tmp_path: Path
) -> None:
    claim, disk = ready(source), StallingDisk()
    with Capture(source, claim, tmp_path / "log", disk=disk) as capture:
        insert(conn, 1)
        reaches_now(capture, source)
        pid, since = walsender(conn, claim)
        disk.works.clear()
        try:
            conn.execute("insert into t select i, repeat('large', 5000) from generate_series(2, 1000) i")
            wait_until(lambda: (walsender(conn, claim)[1] - since).total_seconds() > 5, 20)
            assert capture.head.seq == 1
            assert walsender(conn, claim)[0] == pid
        finally:
            disk.works.set()
        reaches_now(capture, source)
        assert walsender(conn, claim)[0] == pid
    assert ids(source, tmp_path / "log") == list(range(1, 1001))


def test_a_slot_that_the_server_gave_up_is_told_with_its_reason_and_the_remedy(tmp_path: Path) -> None:
    settings = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=settings) as server,
        psycopg.connect(server.dsn(), autocommit=True) as conn,
    ):
        conn.execute("create table t (id int primary key, body text)")
        source = PostgresSource(server.dsn())
        claim = ready(source)
        with Capture(source, claim, tmp_path / "log") as capture:
            insert(conn, 1)
            reaches_now(capture, source)
        for number in range(4):
            insert(conn, 10 + number)
            conn.execute("select pg_switch_wal()")
        conn.execute("checkpoint")
        with Capture(source, claim, tmp_path / "log") as capture:
            wait_until(lambda: capture.has_ended)
        assert isinstance(capture.error, GapError)
        assert "was invalidated: the server removed WAL that we had not read; changes since " in capture.error.message
        assert capture.error.hint is not None
        assert "max_slot_wal_keep_size" in capture.error.hint
        assert "--snapshot-mode when_needed" in capture.error.hint


@pytest.fixture
def pair() -> Iterator[Pair]:
    with pair_of() as made:
        made.run("create table t (id int primary key, body text)")
        yield made


def test_a_promoted_standby_with_our_slot_is_continued_from_and_nothing_is_missing(pair: Pair, tmp_path: Path) -> None:
    if pair.primary.version < 17:
        pytest.skip("failover slots came with Postgres 17")
    source = PostgresSource(pair.primary.dsn(), stream={"failover": True})
    claim = ready(source)
    with (
        psycopg.connect(pair.primary.dsn(), autocommit=True) as conn,
        psycopg.connect(pair.standby.dsn(), autocommit=True) as standby,
    ):

        def is_kept() -> bool:
            # A slot is kept there once it has moved here past what the standby still has.
            conn.execute("select pg_log_standby_snapshot()")
            reaches_now(capture, source)
            standby.execute("select pg_sync_replication_slots()")
            return standby.execute("select 1 from pg_replication_slots where not temporary").fetchone() is not None

        def has_replayed(ordinal: int) -> bool:
            row = standby.execute("select pg_last_wal_replay_lsn() - '0/0'").fetchone()
            return row is not None and int(row[0]) >= ordinal

        with Capture(source, claim, tmp_path / "log") as capture:
            insert(conn, 1, 2)
            wait_until(is_kept, 60)
            end = capture.head.ordinal
        # Not read by us any more, but by the standby.
        insert(conn, 3)
        now = source.now().ordinal
        wait_until(lambda: has_replayed(now), 30)
    pair.promote()
    after = PostgresSource(pair.standby.dsn(), stream={"failover": True})
    continued = after.require_continuity(claim, SourcePosition(end))
    assert (claim["timeline"], continued["timeline"]) == (1, 2)
    with psycopg.connect(pair.standby.dsn(), autocommit=True) as conn:
        with Capture(after, claim, tmp_path / "log") as capture:
            wait_until(lambda: capture.has_ended)
        assert capture.error is not None
        assert "nothing that we have read is lost" in capture.error.message
        with Capture(after, continued, tmp_path / "log") as capture:
            insert(conn, 4)
            reaches_now(capture, after)
    assert ids(after, tmp_path / "log") == [1, 2, 3, 4]


def test_a_promoted_standby_that_lacks_what_we_have_is_refused_with_the_repair(pair: Pair, tmp_path: Path) -> None:
    source = PostgresSource(pair.primary.dsn())
    claim = ready(source)
    with psycopg.connect(pair.standby.dsn(), autocommit=True) as conn:
        conn.execute("alter system set primary_conninfo = ''")
        conn.execute("select pg_reload_conf()")
        wait_until(lambda: conn.execute("select count(*) from pg_stat_wal_receiver").fetchone() == (0,))
    with (
        psycopg.connect(pair.primary.dsn(), autocommit=True) as conn,
        Capture(source, claim, tmp_path / "log") as capture,
    ):
        insert(conn, 1, 2)
        reaches_now(capture, source)
    pair.promote()
    after = PostgresSource(pair.standby.dsn())
    with Capture(after, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.has_ended)
    assert isinstance(capture.error, GapError)
    assert "is on timeline 2, not 1: timeline 1 was left at " in capture.error.message
    assert "--snapshot-mode when_needed" in (capture.error.hint or "")


def test_a_slot_that_was_not_read_for_too_long_is_told_so(tmp_path: Path) -> None:
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", 18, settings={"idle_replication_slot_timeout": "1s"}) as server,
        psycopg.connect(server.dsn(), autocommit=True) as conn,
    ):
        conn.execute("create table t (id int primary key, body text)")
        source = PostgresSource(server.dsn())
        claim = ready(source)

        def is_given_up() -> bool:
            conn.execute("checkpoint")
            return find_slot(conn, claim["slot"]).wal_status == "lost"  # type: ignore[union-attr]

        wait_until(is_given_up, 30)
        with pytest.raises(GapError, match="it was not read for longer than the server allows") as caught:
            source.require_continuity(claim, source.now())
        assert "idle_replication_slot_timeout" in (caught.value.hint or "")


def test_a_reason_that_only_a_newer_server_knows_is_told_as_it_is() -> None:
    assert why_lost("from_the_future")[0] == "the server's reason is from_the_future"


def test_a_slot_that_another_process_reads_is_waited_for_until_that_process_is_sure_to_stay(
    conn: psycopg.Connection, dsn: str, tmp_path: Path
) -> None:
    source = PostgresSource(dsn, stream={"alive_seconds": 1.0})
    claim = ready(source)
    with Capture(source, claim, tmp_path / "theirs") as theirs:
        wait_until(lambda: theirs.is_streaming)
        with Capture(source, claim, tmp_path / "ours") as ours:
            wait_until(lambda: ours.has_ended, 30)
        pid = walsender(conn, claim)[0]
    assert f"slot {claim['slot']} is held by process {pid} of the server" in ours.reports[0]
    assert ours.error is not None
    assert "another reader of the slot" in ours.error.message
    assert f"select pg_terminate_backend({pid});" in (ours.error.hint or "")


def test_a_server_that_reads_a_long_transaction_of_other_tables_is_left_at_its_work(
    conn: psycopg.Connection, source: PostgresSource, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready_claim = ready(source)
    # Without a time limit of its own the server says nothing while it reads.
    stream = {"is_streaming": False, "silence_seconds_max": 0.1}
    silent = PostgresSource(f"{dsn}?options=-c%20wal_sender_timeout%3D0", stream=stream)
    conn.execute("insert into busy select n, 'x' from generate_series(1, 1000000) n")
    insert(conn, 1)
    asked: list[bool] = []
    monkeypatch.setattr(
        stream_capture, "is_at_work", lambda *of: asked.append(slot_holder.is_at_work(*of)) or asked[-1]
    )
    with Capture(silent, ready_claim, tmp_path / "log") as capture:
        reaches_now(capture, source)
        assert any(asked)
        # On a busy machine it may be we who keep it waiting.
        assert False in asked or capture.reports == [""]
    assert ids(source, tmp_path / "log") == [1]
