"""Capture processes that start at once, and share the memory of what they have in common.

What a capture imports takes half a second of processor time and most of its memory. So one process imports it,
`_fork_server`, and every capture of this process is forked from there. When that process is gone, another is started.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO

UNKNOWN = -1
"""How a capture ended of which it cannot be told any more."""
# Threads that libraries start when they are imported; a process with threads cannot be forked safely.
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


class Fork:
    """A capture process. As `subprocess.Popen` has it, as far as that is needed here."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str], end: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._end = end
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("capture", timeout or 0.0)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                return None
            said = self._end.read()
            self._end.close()
            self.returncode = int(said) if said else UNKNOWN
        return self.returncode


class Forks:
    """The fork server of this process, started when it is first needed. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.end)

    def prepare(self, module: str) -> None:
        """Start the server beside other work; `module` is what captures will need besides our own."""
        with self._lock:
            self._require(module)

    def start(self, module: str) -> Fork:
        """A new capture, which has begun to read its standard input."""
        with self._lock:
            try:
                return self._ask(module)
            except ConnectionError:
                self._forget()
                return self._ask(module)

    def end(self) -> None:
        """Captures that live are not touched."""
        with self._lock:
            self._forget()

    def _require(self, module: str) -> None:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return
        self._forget()
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tailrace.connector.start._fork_server", str(theirs.fileno()), module],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **_WITHOUT_THREADS},
                start_new_session=True,
            )
        self._owner = os.getpid()

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._requests.close()
            if self._owner == os.getpid():
                process.kill()
                process.wait()

    def _ask(self, module: str) -> Fork:
        self._require(module)
        commands, stdin = os.pipe()
        stdout, reports = os.pipe()
        end, told = os.pipe()
        fork = Fork(0, open(stdin, "w"), open(stdout), open(end, "rb"))  # noqa: SIM115
        try:
            socket.send_fds(self._requests, [module.encode()], [commands, reports, 2, told])
            fork.pid = int.from_bytes(self._answer())
        except BaseException:
            for each in (fork.stdin, fork.stdout, fork._end):
                each.close()
            raise
        finally:
            for file in (commands, reports, told):
                os.close(file)
        _tell_surroundings(fork.stdin)
        return fork

    def _answer(self) -> bytes:
        answer = self._requests.recv(8, socket.MSG_WAITALL)
        if len(answer) < 8:
            raise ConnectionResetError("the fork server is gone")
        if not int.from_bytes(answer):
            raise BlockingIOError("no more processes can be started")
        return answer


def _tell_surroundings(stdin: IO[str]) -> None:
    """As a child would have them."""
    path = [each or os.getcwd() for each in sys.path]
    surroundings = {"folder": os.getcwd(), "environment": dict(os.environ), "path": path}
    # One that has died at once is noticed by who looks after it.
    with suppress(BrokenPipeError):
        stdin.write(json.dumps(surroundings) + "\n")
        stdin.flush()


FORKS = Forks()
