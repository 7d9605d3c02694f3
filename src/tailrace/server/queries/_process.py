"""The server's side of the process that answers queries: started when it is first needed, and again if it died."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tailrace.errors import TailraceError, TransientError
from tailrace.lake.home import LakeHome
from tailrace.server.errors import RequestError
from tailrace.server.queries._wire import ANSWER, ENDED, FRAME, SECONDS, raised, request
from tailrace.server.queries.answer import ANSWER_BYTES_MAX, Query

GRACE_SECONDS = 60.0
"""How much longer than its query may take an answer is waited for: the process may have to be started first."""
END_SECONDS = 5.0
TRIES = 3
FRAME_BYTES_MAX = ANSWER_BYTES_MAX + (16 << 20)
"""Of one answer, its columns' names included."""
VARIABLES = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
"""What the process sees of our environment, besides Python's own: others may be secrets."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class QueryProcess:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, where one has been started."""
        return None if self._child is None else self._child.pid

    def ask(self, home: LakeHome, query: Query) -> bytes:
        """The answer as JSON. A request error where it is too slow, too large or wrong; a transient one where it was
        killed by others."""
        with self._begun(query) as connection:
            try:
                connection.sendall(request(home, query))
                connection.shutdown(socket.SHUT_WR)
                kind, body = _frame(connection)
            except TimeoutError:
                raise _stuck() from None
            except OSError:
                raise _gone() from None
        if kind == ANSWER:
            return body
        raise _ended(json.loads(body), query) if kind == ENDED else raised(body)

    def _begun(self, query: Query) -> socket.socket:
        """To a process that waits for this query. A process that is dying when it is asked for one is started again."""
        for _ in range(TRIES):
            connection = self._connect(query.seconds_max)
            connection.settimeout(query.seconds_max + GRACE_SECONDS)
            try:
                if connection.recv(1):
                    return connection
            except TimeoutError:
                connection.close()
                raise _stuck() from None
            except OSError:
                pass
            connection.close()
        raise _gone()

    def close(self) -> None:
        """End it, and what it is answering."""
        with self._lock:
            self._end()

    def _connect(self, seconds: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                with self._lock:
                    self._hand_over(theirs, seconds)
            except OSError as error:
                ours.close()
                reason = error.strerror or str(error)
                raise TransientError(f"no process for a query: {reason}", "ask again later") from None
        return ours

    def _hand_over(self, connection: socket.socket, seconds: float) -> None:
        try:
            socket.send_fds(self._running(), [SECONDS.pack(seconds)], [connection.fileno()])
        except ConnectionError:
            # It is dying at this moment, which takes a while: nothing will come from it. The next try starts another.
            self._end()

    def _running(self) -> socket.socket:
        if self._control is None or self._child is None or self._child.poll() is not None:
            self._end()
            self._control, theirs = socket.socketpair()
            self._control.settimeout(END_SECONDS)
            with theirs:
                # A session of its own keeps the terminal's Ctrl-C away.
                self._child = subprocess.Popen(
                    [sys.executable, "-m", "tailrace.server.queries._worker", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=_environment(),
                    start_new_session=True,
                )
        return self._control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._child is not None:
            try:
                self._child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child = None


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in VARIABLES or name[:6] == "PYTHON"}
    # Threads would not live in a fork, and a pool that reserves memory leaves none of what a query may take.
    return kept | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


def _frame(connection: socket.socket) -> tuple[bytes, bytes]:
    kind, length = FRAME.unpack(_received(connection, FRAME.size))
    if length > FRAME_BYTES_MAX:
        raise RequestError("the answer has too much text in its columns' names", "ask for fewer columns")
    return kind, _received(connection, length)


def _received(connection: socket.socket, length: int) -> bytes:
    """ConnectionError where it ends before."""
    found = bytearray(length)
    room = memoryview(found)
    while room:
        count = connection.recv_into(room)
        if count == 0:
            raise ConnectionResetError
        room = room[count:]
    return bytes(found)


def _ended(told: Mapping[str, Any], query: Query) -> TailraceError:
    """Why a query's process has not answered."""
    if told["is_late"]:
        return query.too_slow()
    if -told["exit"] in FROM_OUTSIDE:
        return _gone()
    name = f"signal {-told['exit']}" if told["exit"] < 0 else f"exit code {told['exit']}"
    with suppress(ValueError):
        name = signal.Signals(-told["exit"]).name
    return RequestError(f"the query's process died of it ({name})", "it may need too much memory: ask for less at once")


def _stuck() -> TransientError:
    return TransientError("the process that answers queries is stuck", "ask again later")


def _gone() -> TransientError:
    return TransientError(
        "the query's process was killed by others", "ask again; if the machine has too little memory, ask for less"
    )
