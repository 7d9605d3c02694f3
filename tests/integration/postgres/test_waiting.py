"""What others hold up at the server is told while we wait, and can be given up at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.postgres import wait_until

from tailrace.errors import TransientError
from tailrace.model.table import TableId
from tailrace.source.door.source import Source
from tailrace.source.door.values import Problem
from tailrace.source.postgres.server.connection import KeptConnection
from tailrace.source.postgres.server.lock_waits import Waiter
from tailrace.source.postgres.source import PostgresSource
from tailrace.source.postgres.stream.slot import exported_snapshot

T, U = TableId("public", "t"), TableId("public", "u")
WRITTEN = "create table t (id int primary key)"


class Given(BaseException):
    """The test does not want to wait any longer."""


class Patience:
    """A `Waiting` that remembers what it was told, and gives up when it has been told something."""

    def __init__(self, *, gives_up: bool) -> None:
        self.told: list[Problem] = []
        self._gives_up = gives_up

    def __call__(self, problem: Problem | None) -> None:
        if problem is not None:
            self.told.append(problem)
            if self._gives_up:
                raise Given


@pytest.fixture
def blocker(conn: psycopg.Connection, dsn: str) -> Iterator[psycopg.Connection]:
    """A session that has written and not committed."""
    conn.execute(WRITTEN)
    with psycopg.connect(dsn) as blocker:
        blocker.execute("insert into t values (1)")
        yield blocker
        blocker.rollback()


def slots(conn: psycopg.Connection) -> list[str]:
    rows = conn.execute("select slot_name from pg_replication_slots where database = current_database()")
    return [name for (name,) in rows]


@contextmanager
def waiting(call: Callable[[], object]) -> Iterator[threading.Thread]:
    """A call that waits in a thread until the `with` has ended what it waits for."""
    thread = threading.Thread(target=call)
    thread.start()
    yield thread
    thread.join(20)
    assert not thread.is_alive()


def take_snapshot(source: Source, patience: Patience) -> None:
    with source.snapshot(patience):
        pass


def test_a_slot_that_waits_for_a_transaction_says_whose_it_is_and_is_made_when_it_ends(
    conn: psycopg.Connection, source: PostgresSource, blocker: psycopg.Connection
) -> None:
    patience = Patience(gives_up=False)
    claim = source.claim(None)
    started = time.monotonic()
    with waiting(lambda: source.prepare(claim, [T], None, patience)):
        wait_until(lambda: len(patience.told) >= 3)
        assert time.monotonic() - started < 5
        blocker.rollback()
    pid = blocker.info.backend_pid
    message = patience.told[0].message
    assert message.startswith(f"creating slot {claim['slot']} waits for pid {pid} (postgres) in {conn.info.dbname}, ")
    assert "open since 2" in message
    assert message.endswith(": insert into t values (1)")
    assert patience.told[0].hint == f"let them end, or end them: select pg_terminate_backend({pid});"
    assert set(patience.told) == {patience.told[0]}
    assert slots(conn) == [claim["slot"]]


def test_giving_up_the_wait_takes_no_time_and_leaves_no_slot(
    conn: psycopg.Connection, source: PostgresSource, blocker: psycopg.Connection
) -> None:
    claim = source.claim(None)
    for call in (lambda to: source.prepare(claim, [T], None, to), lambda to: take_snapshot(source, to)):
        patience = Patience(gives_up=True)
        started = time.monotonic()
        with pytest.raises(Given):
            call(patience)
        assert time.monotonic() - started < 3
        assert len(patience.told) == 1
        assert slots(conn) == []
    blocker.rollback()
    assert source.prepare(claim, [T], None, patience).refused == {}
    assert slots(conn) == [claim["slot"]]


def test_a_transaction_of_another_database_is_named_with_its_database(
    server: EmbeddedPostgres, conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(WRITTEN)
    patience = Patience(gives_up=True)
    with psycopg.connect(server.dsn()) as blocker:
        blocker.execute("create temp table passing (id int)")
        with pytest.raises(Given):
            take_snapshot(source, patience)
        assert f"pid {blocker.info.backend_pid} (postgres) in postgres, " in patience.told[0].message


def test_whose_transaction_it_is_can_be_told_by_a_user_who_may_not_see_what_it_does(
    conn: psycopg.Connection, dsn: str, blocker: psycopg.Connection
) -> None:
    conn.execute("drop role if exists onlooker; create role onlooker login replication")
    patience = Patience(gives_up=True)
    with pytest.raises(Given):
        take_snapshot(PostgresSource(dsn.replace("postgres@", "onlooker@")), patience)
    pid = blocker.info.backend_pid
    assert patience.told[0].message.endswith(f" waits for pid {pid} (postgres) in {conn.info.dbname}")
    conn.execute("drop role onlooker")


def test_a_prepared_transaction_is_named_with_what_ends_it() -> None:
    patience = Patience(gives_up=True)
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings={"max_prepared_transactions": "5"}) as server,
        psycopg.connect(server.dsn(), autocommit=True) as conn,
    ):
        conn.execute(WRITTEN)
        for statement in ("begin", "insert into t values (1)", "prepare transaction 'it''s forgotten'"):
            conn.execute(statement)
        source = PostgresSource(server.dsn())
        with pytest.raises(Given):
            take_snapshot(source, patience)
        (told,) = patience.told
        assert "waits for the prepared transaction it's forgotten (postgres) in postgres, since 2" in told.message
        assert "rollback prepared 'it''s forgotten'; or commit prepared 'it''s forgotten'; in postgres" in told.hint
        conn.execute("rollback prepared 'it''s forgotten'")
        take_snapshot(source, patience)


def test_a_wait_without_end_is_given_up_in_the_end(
    conn: psycopg.Connection, dsn: str, blocker: psycopg.Connection
) -> None:
    waiter = Waiter(KeptConnection(dsn), Patience(gives_up=False), seconds_max=1.0)
    with pytest.raises(TransientError, match="; gave up"), exported_snapshot(dsn, "tailrace_waits", waiter):
        pass
    assert slots(conn) == []


def test_a_lock_on_a_table_is_waited_for_and_told_before_the_table_is_published(
    conn: psycopg.Connection, source: PostgresSource, dsn: str
) -> None:
    conn.execute(WRITTEN)
    claim, patience = source.claim(None), Patience(gives_up=True)
    with psycopg.connect(dsn) as blocker:
        blocker.execute("lock table t in share mode")
        with pytest.raises(Given):
            source.prepare(claim, [T], None, patience)
        blocking = f"publishing the tables waits for pid {blocker.info.backend_pid} (postgres) in {conn.info.dbname}, "
        assert patience.told[0].message.startswith(blocking)
        assert conn.execute("select count(*) from pg_publication").fetchone() == (0,)
    source.prepare(claim, [T], None, patience)
    assert slots(conn) == [claim["slot"]]


class HalfMade:
    """A slot that the server is making for a process that has gone."""

    def __init__(self, dsn: str, name: str) -> None:
        self._conn = psycopg.connect(dsn, replication="database", autocommit=True)
        self.pid = self._conn.info.backend_pid
        self._conn.pgconn.send_query(f'CREATE_REPLICATION_SLOT "{name}" LOGICAL pgoutput'.encode())
        while self._conn.pgconn.flush():
            pass

    def abandon(self) -> None:
        self._conn.close()


def test_a_half_made_slot_of_ours_is_made_again(
    conn: psycopg.Connection, source: PostgresSource, dsn: str, blocker: psycopg.Connection
) -> None:
    claim = source.claim(None)
    half_made = HalfMade(dsn, claim["slot"])
    wait_until(lambda: slots(conn) == [claim["slot"]])
    half_made.abandon()
    with pytest.raises(Given):
        source.prepare(claim, [T], None, Patience(gives_up=True))
    assert slots(conn) == []
    half_made = HalfMade(dsn, claim["slot"])
    wait_until(lambda: slots(conn) == [claim["slot"]])
    half_made.abandon()
    assert source.drop(claim)[0].startswith(f"slot {claim['slot']} "), "dropped, or gone with its process"
    assert slots(conn) == []


def test_a_half_made_slot_that_may_not_be_ended_is_named_with_its_process(
    conn: psycopg.Connection, dsn: str, blocker: psycopg.Connection
) -> None:
    conn.execute("drop role if exists onlooker; create role onlooker login replication")
    conn.execute("create table u (id int primary key); alter table u owner to onlooker")
    conn.execute(f"grant create on database {conn.info.dbname} to onlooker")
    theirs = PostgresSource(dsn.replace("postgres@", "onlooker@"))
    claim = theirs.claim(None)
    half_made = HalfMade(dsn, claim["slot"])
    wait_until(lambda: slots(conn) == [claim["slot"]])
    with pytest.raises(TransientError, match=f"is still being made by process {half_made.pid}") as caught:
        theirs.prepare(claim, [U], None)
    assert caught.value.hint == f"select pg_terminate_backend({half_made.pid});"
    named = PostgresSource(dsn, slot=claim["slot"])
    with pytest.raises(TransientError, match=f"process {half_made.pid}"):
        named.prepare({**claim, "owns_slot": False}, [U], None)
    assert slots(conn) == [claim["slot"]]
    conn.execute(caught.value.hint)
    wait_until(lambda: slots(conn) == [])
    half_made.abandon()
    conn.execute("drop owned by onlooker; drop role onlooker")
