"""A server that restarts, dies or falls silent: capture and questions find it again, and nothing is lost or twice."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.test_capture import ids, insert, reaches_now
from tests.postgres import wait_until

from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    with TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as server:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute("create table t (id int primary key, body text)")
        yield server


def add(server: EmbeddedPostgres, *numbers: int) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        insert(conn, *numbers)


def test_a_server_that_restarts_or_crashes_is_found_again_by_capture_and_by_questions(
    own_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    source = PostgresSource(own_server.dsn())
    claim = source.claim(None)
    source.prepare(claim, [T], None)
    with Capture(source, claim, tmp_path / "log") as capture:
        add(own_server, 1)
        reaches_now(capture, source)
        for number, end in enumerate((own_server.stop, own_server.kill)):
            end()
            wait_until(lambda: capture.problem)
            assert source.lag_bytes(capture.head.ordinal) is None, "unknown, not none"
            own_server.start()
            stood = capture.head.ordinal
            add(own_server, 10 + number)
            lag = source.lag_bytes(stood)
            assert lag is not None
            assert lag > 0
            wait_until(lambda: capture.is_streaming, 30)
            reaches_now(capture, source)
            assert source.lag_bytes(capture.head.ordinal) == 0
    assert ids(source, tmp_path / "log") == [1, 10, 11]


class Relay:
    """A port that leads to the server until it is cut: then nothing passes, and neither side is told."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_cut = threading.Event()
        self._is_closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """What is connected hears nothing any more; new connections lead to the server."""
        self._is_cut.set()

    def close(self) -> None:
        self._is_closed.set()
        self._listener.close()
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _accept(self) -> None:
        while not self._is_closed.is_set():
            with suppress(OSError):
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._pairs.append((near, far))
                # Those that come after the cut are not concerned by it.
                is_cut = threading.Event() if self._is_cut.is_set() else self._is_cut
                threading.Thread(target=self._relay, args=(near, far, is_cut), daemon=True).start()

    def _relay(self, near: socket.socket, far: socket.socket, is_cut: threading.Event) -> None:
        other = {near: far, far: near}
        with suppress(OSError, ValueError):
            while not is_cut.is_set() and not self._is_closed.is_set():
                for end in select.select([near, far], [], [], 0.05)[0]:
                    data = end.recv(65536)
                    if not data:
                        near.close()
                        far.close()
                        return
                    other[end].sendall(data)


def test_a_network_that_is_cut_without_a_word_is_noticed_and_left(own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    with ExitStack() as stack:
        relay = Relay(own_server.port)
        stack.callback(relay.close)
        relayed = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres"
        source = PostgresSource(relayed, stream={"silence_seconds_max": 2.0})
        direct = PostgresSource(own_server.dsn())
        claim = direct.claim(None)
        direct.prepare(claim, [T], None)
        with psycopg.connect(own_server.dsn(), autocommit=True) as conn:
            capture = stack.enter_context(Capture(source, claim, tmp_path / "log"))
            insert(conn, 1)
            reaches_now(capture, direct)
            relay.cut()
            wait_until(lambda: capture.problem, 30)
            assert "the server has not answered for 2 s" in capture.problem
            # The server does not know yet that the connection is gone, and keeps the slot for it.
            conn.execute(
                "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots where active_pid is not null"
            )
            insert(conn, 2)
            wait_until(lambda: capture.is_streaming, 30)
            reaches_now(capture, direct)
    assert ids(direct, tmp_path / "log") == [1, 2]
