"""A first sync that others' transactions hold up says which, can be stopped, and leaves nothing behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests import journey
from tests.postgres import wait_until


class Sync:
    """`tailrace sync` in a process of its own, and what it has printed so far."""

    def __init__(self, dsn: str, lake: Path) -> None:
        self.process = journey.start("sync", dsn, str(lake), "--once")
        self.output = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line

    def says(self, text: str) -> bool:
        return text in self.output

    def end(self) -> tuple[int, str]:
        """Its exit code and what it printed as an error."""
        assert self.process.stderr is not None
        self._reader.join(60)
        return self.process.wait(60), self.process.stderr.read()


@contextmanager
def syncing(dsn: str, lake: Path) -> Iterator[Sync]:
    sync = Sync(dsn, lake)
    with sync.process:
        try:
            yield sync
        finally:
            sync.process.kill()


@pytest.fixture
def blocker(database: str) -> Iterator[psycopg.Connection]:
    """A session that has written and not committed."""
    with psycopg.connect(database) as conn:
        conn.execute("create table orders (id int primary key)")
        conn.commit()
        conn.execute("insert into orders values (1)")
        yield conn
        conn.rollback()


def slots(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        rows = conn.execute("select slot_name from pg_replication_slots where database = current_database()")
        return [name for (name,) in rows]


def test_an_open_transaction_is_named_and_ctrl_c_stops_the_wait_at_once_without_a_slot(
    database: str, blocker: psycopg.Connection, tmp_path: Path
) -> None:
    with syncing(database, tmp_path / "lake") as sync:
        wait_until(lambda: sync.says(f"pid {blocker.info.backend_pid} (postgres)"), 20)
        # The hint is the next line, which may take a moment longer.
        wait_until(lambda: sync.says(f"select pg_terminate_backend({blocker.info.backend_pid});"), 20)
        assert sync.says("insert into orders values (1)")
        assert len(slots(database)) == 1
        asked = time.monotonic()
        sync.process.send_signal(signal.SIGINT)
        code, told = sync.end()
        assert (code, told.count("\n")) == (130, 1), told
        assert told.startswith("interrupted")
        assert time.monotonic() - asked < 5
    assert slots(database) == []


def test_a_sync_that_died_while_it_waited_is_no_trouble_for_the_next_one(
    database: str, blocker: psycopg.Connection, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with syncing(database, lake) as first:
        wait_until(lambda: len(slots(database)) == 1, 20)
        first.process.kill()
        first.process.wait()
    (half_made,) = slots(database)
    with syncing(database, lake) as second:
        wait_until(lambda: second.says(f"pid {blocker.info.backend_pid} (postgres)"), 20)
        assert slots(database) == [half_made]
        blocker.rollback()
        assert second.end()[0] == 0
    assert slots(database) == [half_made]
