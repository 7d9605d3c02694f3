"""Processes that start at once, and share the memory of what they have in common.

What such a process imports takes half a second of processor time and most of its memory. So one process imports it, the
*fork server* (`server.py`), and the others are forked from there:

    asker ── a socket: one request and its files for each fork ──▶ fork server ── fork ──▶ fork
      ▲ ▲                                                             │                     │
      │ └──────────────── a pipe: how the fork ended ─────────────────┘                     │
      └────────────────── the files that came with the request ─────────────────────────────┘

A fork server ends with its socket, so with the process that asks, however that ends.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

SECONDS = struct.Struct("<d")
"""Before the text of a request: how long its fork may live."""
PID_BYTES = 8
"""The answer to a request: the fork's number, 0 if no process can be started."""
UNKNOWN = -1
"""The exit code of a fork whose fork server was killed before it could tell."""

_WITHOUT_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Libraries would start threads when they are imported, and a process with threads cannot be forked safely."""


class Fork:
    """A process that was forked for us. `wait`, `poll` and `kill` work like those of `subprocess.Popen`."""

    def __init__(self, pid: int, end: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.is_late = False
        """It was killed because its time was over."""
        self._end = open(end, "rb")  # noqa: SIM115

    def __enter__(self) -> Fork:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def poll(self) -> int | None:
        """The exit code; None while it lives."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("fork", timeout or 0.0)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Take no more notice of it. It may live on."""
        self._end.close()

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                return None
            told = json.loads(self._end.read() or "{}")
            self.close()
            self.is_late = told.get("is_late", False)
            self.returncode = told.get("exit", UNKNOWN)
        return self.returncode


class Forks:
    """The forks of one kind. Their fork server is started when it is first needed, and again when it died. Any thread.

    `module` is the fork server's main module. `environment` gives the variables that it sees. It has `grace_seconds` to
    end by itself before it is killed, and `answer_seconds` to answer a request, its own start included.
    """

    def __init__(
        self,
        module: str,
        environment: Callable[[], Mapping[str, str]],
        *,
        stderr: int | None = None,
        grace_seconds: float = 0.0,
        answer_seconds: float | None = None,
    ) -> None:
        self._module = module
        self._environment = environment
        self._stderr = stderr
        self._grace_seconds = grace_seconds
        self._answer_seconds = answer_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._owner = 0
        """The process that started the fork server. After a fork, the other one must leave it alone."""
        atexit.register(self.end)

    def prepare(self, needs: str) -> None:
        """Start the fork server beside other work. `needs` tells it what its forks will need loaded."""
        with self._lock:
            self._running(needs)

    def start(self, needs: str, files: Sequence[int], seconds_max: float = math.inf) -> Fork:
        """A new fork, with files of its own like these; it is killed when its time is over.

        TimeoutError where the fork server does not answer, BlockingIOError where no more processes can be started.
        """
        with self._lock:
            try:
                return self._ask(needs, files, seconds_max)
            except ConnectionError:
                # The fork server was killed, perhaps at this moment.
                self._forget()
                return self._ask(needs, files, seconds_max)

    def end(self) -> None:
        """End the fork server. Whether its forks live on is its own affair."""
        with self._lock:
            self._forget()

    def _ask(self, needs: str, files: Sequence[int], seconds_max: float) -> Fork:
        requests = self._running(needs)
        end, told = os.pipe()
        try:
            socket.send_fds(requests, [SECONDS.pack(seconds_max) + needs.encode()], [*files, told])
            return Fork(self._answer(requests), end)
        except BaseException:
            os.close(end)
            raise
        finally:
            os.close(told)

    def _answer(self, requests: socket.socket) -> int:
        try:
            answer = requests.recv(PID_BYTES, socket.MSG_WAITALL)
        except TimeoutError:
            # Its answer would be taken for that to the next request.
            self._forget()
            raise
        if len(answer) < PID_BYTES:
            raise ConnectionResetError("the fork server is gone")
        pid = int.from_bytes(answer)
        if not pid:
            raise BlockingIOError("no more processes can be started")
        return pid

    def _running(self, needs: str) -> socket.socket:
        is_alive = self._process is not None and self._owner == os.getpid() and self._process.poll() is None
        if self._requests is not None and is_alive:
            return self._requests
        self._forget()
        self._requests, theirs = socket.socketpair()
        self._requests.settimeout(self._answer_seconds)
        with theirs:
            # A session of its own keeps the terminal's Ctrl-C away.
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, str(theirs.fileno()), needs],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
                env={**self._environment(), **_WITHOUT_THREADS},
                start_new_session=True,
            )
        self._owner = os.getpid()
        return self._requests

    def _forget(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            try:
                process.wait(self._grace_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
