"""The server's side of the processes that answer queries: each is forked for one query, and asked over a socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from contextlib import suppress

from tailrace.errors import TailraceError, TransientError
from tailrace.forks.forks import UNKNOWN, Fork, Forks
from tailrace.lake.home import LakeHome
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.queries._wire import ANSWER, FRAME, raised, request
from tailrace.server.queries.answer import ANSWER_BYTES_MAX, Query

GRACE_SECONDS = 60.0
"""How much longer than its query may take an answer is waited for, and how long the fork server has to fork."""
END_SECONDS = 5.0
FRAME_BYTES_MAX = ANSWER_BYTES_MAX + (16 << 20)
"""Of one answer, its columns' names included."""
VARIABLES = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
"""What the processes see of our environment, besides Python's own: others may be secrets."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class QueryStop:
    """Kills the process of one query when someone asks for that, also if it has yet to be forked. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fork: Fork | None = None
        self.is_stopped = False

    def stop(self) -> None:
        with self._lock:
            self.is_stopped = True
            self._kill()

    def begun(self, fork: Fork) -> None:
        """This process answers the query."""
        with self._lock:
            self._fork = fork
            if self.is_stopped:
                self._kill()

    def over(self) -> None:
        """The process has answered or ended: its number may soon be another process's."""
        with self._lock:
            self._fork = None

    def _kill(self) -> None:
        if self._fork is not None:
            with suppress(ProcessLookupError):
                os.kill(self._fork.pid, signal.SIGKILL)


class QueryProcess:
    """Any thread."""

    def __init__(self) -> None:
        self._forks = Forks(
            "tailrace.server.queries._fork_server",
            _environment,
            stderr=subprocess.DEVNULL,
            grace_seconds=END_SECONDS,
            answer_seconds=GRACE_SECONDS,
        )

    def ask(self, home: LakeHome, query: Query, stopping: QueryStop) -> bytes:
        """The answer as JSON.

        A request error where the query is too slow, too large, wrong or stopped; a transient one where others killed
        it.
        """
        connection, fork = self.begin(query.seconds_max)
        with connection, fork:
            connection.settimeout(query.seconds_max + GRACE_SECONDS)
            try:
                stopping.begun(fork)
                connection.sendall(request(home, query))
                connection.shutdown(socket.SHUT_WR)
                kind, body = _frame(connection)
            except TimeoutError:
                raise _stuck() from None
            except OSError:
                if stopping.is_stopped:
                    raise RequestConflictError("the query was stopped", "DELETE /query/ID did it: ask again") from None
                raise _why_silent(fork, query) from None
            finally:
                stopping.over()
        if kind == ANSWER:
            return body
        raise raised(body)

    def begin(self, seconds_max: float) -> tuple[socket.socket, Fork]:
        """A process that waits for one request, on this connection. It is killed when its time is over."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                return ours, self._forks.start("", [theirs.fileno()], seconds_max)
            except TimeoutError:
                ours.close()
                raise _stuck() from None
            except OSError as error:
                ours.close()
                reason = error.strerror or str(error)
                raise TransientError(f"no process for a query: {reason}", "ask again later") from None

    def close(self) -> None:
        """End the fork server, and what its forks are answering."""
        self._forks.end()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in VARIABLES or name[:6] == "PYTHON"}
    # A pool that reserves memory leaves none of what a query may take.
    return kept | {"ARROW_DEFAULT_MEMORY_POOL": "system"}


def _frame(connection: socket.socket) -> tuple[bytes, bytes]:
    kind, length = FRAME.unpack(_receive(connection, FRAME.size))
    if length > FRAME_BYTES_MAX:
        raise RequestError("the answer has too much text in its columns' names", "ask for fewer columns")
    return kind, _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytes:
    """ConnectionError where it ends before."""
    received = bytearray(length)
    room = memoryview(received)
    while room:
        count = connection.recv_into(room)
        if count == 0:
            raise ConnectionResetError
        room = room[count:]
    return bytes(received)


def _why_silent(fork: Fork, query: Query) -> TailraceError:
    """Why a query's process has not answered."""
    try:
        code = fork.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return _stuck()
    if fork.is_late:
        return query.too_slow()
    if code == UNKNOWN or -code in FROM_OUTSIDE:
        return TransientError(
            "something else killed the query's process",
            "ask again; if the machine has too little memory, ask for less",
        )
    name = f"signal {-code}" if code < 0 else f"exit code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return RequestError(f"the query's process died of it ({name})", "it may need too much memory: ask for less at once")


def _stuck() -> TransientError:
    return TransientError("the process that answers queries is stuck", "ask again later")
