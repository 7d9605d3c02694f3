"""Open transactions in the log: whatever sessions do to each other, the log's playback is what they committed.

The scenarios are those in which Postgres's own tests look for mistakes: aborted sub-transactions, definitions that
change inside a streamed transaction, truncates, parts of several transactions among each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.playing import T, U, assert_same, kinds, replayed
from tests.postgres import wait_until

from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions
from tailrace.model.kind import Kind
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

SOON = "?options=-c%20logical_decoding_work_mem%3D64kB"
AT_ONCE = f"{SOON}%20-c%20debug_logical_replication_streaming%3Dimmediate"
"""Every change is streamed as soon as the server has read it: from Postgres 16 on."""
PROTOCOLS = [2, 4]


@pytest.fixture
def at_once(conn: psycopg.Connection) -> None:
    """For a test of what the server sends of a small open transaction."""
    if conn.info.server_version < 160000:
        pytest.skip("before Postgres 16, only large transactions are streamed")


@pytest.fixture(params=PROTOCOLS)
def source(conn: psycopg.Connection, dsn: str, request: pytest.FixtureRequest) -> PostgresSource:
    conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
    how = AT_ONCE if conn.info.server_version >= 160000 else SOON
    return PostgresSource(f"{dsn}{how}", stream={"protocol_max": request.param})


@pytest.fixture
def claim(source: PostgresSource) -> Claim:
    made = source.claim(None)
    source.prepare(made, [T, U], None)
    return made


@pytest.fixture
def capture(source: PostgresSource, claim: Claim, tmp_path: Path) -> Iterator[Capture]:
    with Capture(source, claim, tmp_path / "log") as running:
        wait_until(lambda: running.is_streaming)
        yield running


def reaches_now(capture: Capture, source: PostgresSource) -> None:
    now = source.now().ordinal
    wait_until(lambda: capture.is_streaming and capture.head.ordinal >= now, 30)


def streamed(log: Path) -> list[bool]:
    reader = LogReader(log)
    return list(reader.transactions(0, reader.head.seq)["streamed"].to_pylist())


@pytest.mark.usefixtures("at_once")
def test_changes_are_in_the_log_before_their_commit_and_readers_see_them_after_it(
    conn: psycopg.Connection, dsn: str, source: PostgresSource, capture: Capture
) -> None:
    with psycopg.connect(dsn) as other:
        other.execute("insert into t select n, 'open' from generate_series(1, 500) n")
        conn.execute("insert into u values (1, 'short')")
        wait_until(lambda: kinds(capture.log).count(Kind.INSERT) == 501 and capture.head.seq == 1)
        other.commit()
    reaches_now(capture, source)
    assert capture.head.seq == 2
    assert_same(conn, source, capture.log)


@pytest.mark.usefixtures("at_once")
def test_what_is_rolled_back_as_a_whole_or_in_part_is_not_played_back(
    conn: psycopg.Connection, source: PostgresSource, capture: Capture
) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("insert into t values (1, 'never')")
    with conn.transaction():
        conn.execute("insert into t values (1, 'top')")
        with conn.transaction(force_rollback=True):
            conn.execute("insert into t values (2, 'lost'); update t set body = 'lost' where id = 1")
            with conn.transaction():
                conn.execute("insert into t values (3, 'released within what is lost')")
        with conn.transaction():
            conn.execute("insert into t values (4, 'released')")
            with conn.transaction(force_rollback=True):
                conn.execute("delete from t")
        conn.execute("insert into t values (2, 'again')")
    reaches_now(capture, source)
    assert_same(conn, source, capture.log)
    found = kinds(capture.log)
    assert found.count(Kind.ROLLBACK) == 1
    assert found.count(Kind.ROLLBACK_SUB) == 3


def test_a_definition_that_changes_in_an_open_transaction_is_its_own_until_it_commits(
    conn: psycopg.Connection, dsn: str, source: PostgresSource, capture: Capture
) -> None:
    conn.execute("insert into t values (1, 'before')")
    with psycopg.connect(dsn) as other:
        other.execute("insert into t values (2, 'old shape')")
        other.execute("alter table t add column more int")
        other.execute("insert into t values (3, 'new shape', 3)")
        conn.execute("insert into u values (1, 'meanwhile')")
        other.execute("create type mood as enum ('fine'); alter table t add column mood mood")
        other.execute("insert into t values (4, 'newest shape', 4, 'fine')")
        other.execute("update t set body = 'renamed' where id = 3")
        other.commit()
    conn.execute("insert into t values (5, 'after', 5, 'fine')")
    reaches_now(capture, source)
    assert_same(conn, source, capture.log)
    shapes = [each.schema for each in LogReader(capture.log).schemas() if each.schema.table == T]
    assert all(column.number for shape in shapes for column in shape.columns), "told in full after the commit"


def test_a_definition_that_is_rolled_back_with_its_sub_transaction_leaves_the_old_one(
    conn: psycopg.Connection, source: PostgresSource, capture: Capture
) -> None:
    with conn.transaction():
        conn.execute("insert into t values (1, 'old')")
        with conn.transaction(force_rollback=True):
            conn.execute("alter table t add column more int; insert into t values (2, 'new', 2)")
        conn.execute("insert into t values (3, 'old')")
    with conn.transaction():
        with conn.transaction(force_rollback=True):
            # Its shape is announced here, and stays announced.
            conn.execute("insert into u values (1, 'lost')")
        conn.execute("insert into u values (2, 'kept')")
    conn.execute("insert into u values (3, 'later'); insert into t values (4, 'later')")
    reaches_now(capture, source)
    assert_same(conn, source, capture.log)


def test_truncates_of_several_tables_in_streamed_transactions_come_in_order(
    conn: psycopg.Connection, source: PostgresSource, capture: Capture
) -> None:
    conn.execute("insert into t values (1, 'a'); insert into u values (1, 'a')")
    with conn.transaction():
        conn.execute("insert into t values (2, 'b')")
        conn.execute("truncate t, u")
        conn.execute("insert into t values (3, 'c')")
        with conn.transaction(force_rollback=True):
            conn.execute("truncate t")
        conn.execute("insert into u values (4, 'd')")
    reaches_now(capture, source)
    assert_same(conn, source, capture.log)


def act_at_random(sessions: Sequence[psycopg.Connection], chance: random.Random) -> None:
    """Each session has its own keys, so that none waits for another."""
    for _ in range(120):
        number = chance.randrange(len(sessions))
        session, table = sessions[number], chance.choice("tu")
        key = chance.randrange(8) * len(sessions) + number
        statement = chance.choice(
            [
                f"insert into {table} values ({key}, '{chance.random()}') on conflict (id) do update set body = 'x'",
                f"update {table} set body = repeat('{chance.random()}', 20) where id = {key}",
                f"delete from {table} where id = {key}",
                f"savepoint s{chance.randrange(3)}",
                f"rollback to savepoint s{chance.randrange(3)}",
                f"release savepoint s{chance.randrange(3)}",
                "commit",
                "rollback",
            ]
        )
        try:
            session.execute(statement)
        except psycopg.errors.Error:
            session.rollback()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(3))
def test_sessions_that_do_anything_at_once_are_played_back_as_they_committed(
    conn: psycopg.Connection, dsn: str, source: PostgresSource, capture: Capture, seed: int
) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        act_at_random([stack.enter_context(psycopg.connect(dsn)) for _ in range(4)], chance)
    reaches_now(capture, source)
    assert_same(conn, source, capture.log)
    assert any(streamed(capture.log))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("protocol", [1, 3])
def test_sessions_that_do_anything_at_once_are_played_back_alike_by_the_other_protocols(
    conn: psycopg.Connection, dsn: str, tmp_path: Path, protocol: int
) -> None:
    conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
    source = PostgresSource(f"{dsn}{AT_ONCE}", stream={"protocol_max": protocol})
    claim = source.claim(None)
    source.prepare(claim, [T, U], None)
    with Capture(source, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.is_streaming)
        with ExitStack() as stack:
            act_at_random([stack.enter_context(psycopg.connect(dsn)) for _ in range(4)], random.Random(protocol))
        reaches_now(capture, source)
    assert_same(conn, source, tmp_path / "log")
    assert any(streamed(tmp_path / "log")) == (protocol > 1)


def cut_off(conn: psycopg.Connection, slot: str) -> None:
    found = conn.execute("select active_pid from pg_replication_slots where slot_name = %s", [slot]).fetchone()
    assert found is not None
    conn.execute("select pg_terminate_backend(%s, 5000)", [found[0]])


def restart(capture: Capture, source: PostgresSource, claim: Claim) -> Capture:
    return Capture(source, claim, capture.log)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("how", ["connection", "process"])
def test_an_open_transaction_that_is_sent_again_after_a_cut_is_there_once(
    conn: psycopg.Connection, dsn: str, source: PostgresSource, claim: Claim, tmp_path: Path, how: str
) -> None:
    with psycopg.connect(dsn) as other, ExitStack() as stack:
        capture = stack.enter_context(Capture(source, claim, tmp_path / "log"))
        wait_until(lambda: capture.is_streaming)
        other.execute("insert into t select n, 'open' from generate_series(1, 100) n")
        conn.execute("insert into u values (1, 'done')")
        wait_until(lambda: kinds(capture.log).count(Kind.INSERT) == 101)
        if how == "connection":
            cut_off(conn, claim["slot"])
            wait_until(lambda: len(capture.reports) > 2)
        else:
            stack.close()
            capture = stack.enter_context(restart(capture, source, claim))
        wait_until(lambda: capture.is_streaming)
        other.execute("insert into t select n, 'open' from generate_series(101, 200) n")
        other.commit()
        reaches_now(capture, source)
    assert kinds(tmp_path / "log").count(Kind.INSERT) == 301
    assert_same(conn, source, tmp_path / "log")


@pytest.fixture(scope="module")
def two_phase() -> Iterator[psycopg.Connection]:
    """A server that lets transactions be prepared."""
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings={"max_prepared_transactions": "5"}) as server,
        psycopg.connect(server.dsn(), autocommit=True) as conn,
    ):
        yield conn


def prepare(conn: psycopg.Connection, gid: str, statement: str) -> None:
    conn.execute(f"begin; {statement}; prepare transaction '{gid}'")


@pytest.mark.parametrize("with_restart", [False, True])
def test_a_prepared_transaction_is_logged_when_it_is_prepared_and_played_back_when_committed(
    two_phase: psycopg.Connection, tmp_path: Path, with_restart: bool
) -> None:
    conn = two_phase
    conn.execute("drop table if exists t, u")
    conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
    dsn = f"postgresql://postgres@127.0.0.1:{conn.info.port}/{conn.info.dbname}"
    source = PostgresSource(dsn, stream={"two_phase": True})
    claim = source.claim(None)
    source.prepare(claim, [T, U], None)
    with ExitStack() as stack:
        capture = stack.enter_context(Capture(source, claim, tmp_path / "log"))
        wait_until(lambda: capture.is_streaming)
        prepare(conn, "a", "insert into t values (1, 'prepared'), (2, 'prepared')")
        prepare(conn, "b", "insert into t values (3, 'rolled back')")
        prepare(conn, "c", "insert into t select n, repeat('large', 100) from generate_series(10, 2000) n")
        conn.execute("insert into u values (1, 'meanwhile')")
        reaches_now(capture, source)
        assert kinds(capture.log).count(Kind.PREPARE) == 3
        assert capture.head.seq == 1
        if with_restart:
            stack.close()
            capture = stack.enter_context(restart(capture, source, claim))
        conn.execute("rollback prepared 'b'")
        conn.execute("commit prepared 'c'")
        conn.execute("commit prepared 'a'")
        reaches_now(capture, source)
    # Nothing was sent again.
    assert kinds(tmp_path / "log").count(Kind.INSERT) == 2 + 1 + 1991 + 1
    assert_same(conn, source, tmp_path / "log")


def test_logical_messages_are_kept_with_their_transaction_or_alone(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, capture: Capture
) -> None:
    with conn.transaction():
        conn.execute("insert into t values (1, 'a')")
        conn.execute("select pg_logical_emit_message(true, 'audit', 'who')")
    conn.execute("select pg_logical_emit_message(false, 'note', 'alone')")
    reaches_now(capture, source)
    assert kinds(capture.log).count(Kind.MESSAGE) == 2
    cut_off(conn, claim["slot"])
    wait_until(lambda: len(capture.reports) > 2)
    conn.execute("insert into t values (2, 'b')")
    reaches_now(capture, source)
    assert kinds(capture.log).count(Kind.MESSAGE) == 2
    assert_same(conn, source, capture.log)


def test_changes_of_another_origin_are_left_out_when_asked_for(
    conn: psycopg.Connection, dsn: str, tmp_path: Path
) -> None:
    if conn.info.server_version < 160000:
        pytest.skip("origins came with Postgres 16")
    conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
    source = PostgresSource(dsn, stream={"origin": "none"})
    claim = source.claim(None)
    source.prepare(claim, [T, U], None)
    conn.execute("select pg_replication_origin_create('elsewhere')")
    try:
        with psycopg.connect(dsn, autocommit=True) as other, Capture(source, claim, tmp_path / "log") as capture:
            other.execute("select pg_replication_origin_session_setup('elsewhere')")
            other.execute("insert into t values (1, 'theirs')")
            conn.execute("insert into t values (2, 'ours')")
            reaches_now(capture, source)
            other.execute("select pg_replication_origin_session_reset()")
    finally:
        conn.execute("select pg_replication_origin_drop('elsewhere')")
    assert replayed(source, tmp_path / "log", T).keys() == {2}


@pytest.mark.usefixtures("at_once")
def test_an_open_transaction_that_would_fill_the_log_waits_at_the_server_and_the_others_are_taken(
    conn: psycopg.Connection, dsn: str, tmp_path: Path
) -> None:
    conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
    source = PostgresSource(f"{dsn}{AT_ONCE}")
    claim = source.claim(None)
    source.prepare(claim, [T, U], None)
    options = LogOptions(quota_bytes=4 << 20, segment_bytes_max=1 << 20)
    capture = Capture(source, claim, tmp_path / "log", options)
    with psycopg.connect(dsn) as other, capture:
        wait_until(lambda: capture.is_streaming)
        LogReader(capture.log).acknowledge("lake", 0)
        other.execute("insert into t select n, 'open' from generate_series(1, 200) n")

        def takes_all() -> bool:
            reader = LogReader(capture.log)
            reader.acknowledge("lake", reader.head.seq)
            return reader.head.seq == 60

        for number in range(60):
            conn.execute("insert into u values (%s, repeat(md5(%s::text), 6000))", [number, number])
        wait_until(takes_all, 60)
        assert any("open transactions wait at the server" in report for report in capture.reports)
        other.commit()
        wait_until(lambda: capture.head.seq == 61, 30)
    (last,) = LogReader(capture.log).transactions(60, 61).to_pylist()
    assert last["changes"] == 200
