"""The process that answers queries in DuckDB: one that forks another for each query, and sees to its end.

    server ── one connection for each query, and its seconds ──▶ this process ── fork ──▶ a process for one query

This process has everything loaded and no threads at work, so a fork takes milliseconds. The fork gets no more memory
than it may take, writes no file and is killed when its time is over. It answers on the query's connection; what it died
of is told there by this process. This process lives no longer than its connection to the server, however that dies, and
no fork lives longer than this process.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tailrace.lake import formats
from tailrace.read.duckdb import names_in
from tailrace.read.names import Dialect, TableNames
from tailrace.server.queries._confined_duckdb import MEMORY_BYTES_MAX, ask
from tailrace.server.queries._wire import ANSWER, BEGUN, ENDED, ERROR, SECONDS, framed, read_request, told
from tailrace.source import kinds

PROCESS_BYTES_MAX = MEMORY_BYTES_MAX + (512 << 20)
"""What one query's process may take: what DuckDB counts, the log's tail, and the answer."""
NICE = 5
_DIE_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG."""


@dataclass
class _Fork:
    """A query that is being answered."""

    connection: socket.socket
    deadline: float
    is_late: bool = False


class Forks:
    """One thread."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._forks: dict[int, _Fork] = {}
        self._selector = selectors.DefaultSelector()
        self._ended, waker = socket.socketpair()
        for each in (self._ended, waker):
            each.setblocking(False)
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        """Until the server is gone."""
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._control and not self._accept():
                    return
            with suppress(BlockingIOError):
                while self._ended.recv(1024):
                    pass
            self._kill_late()
            self._reap()

    def _patience(self) -> float | None:
        deadlines = [fork.deadline for fork in self._forks.values() if not fork.is_late]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _accept(self) -> bool:
        try:
            seconds, descriptors, _, _ = socket.recv_fds(self._control, SECONDS.size, 1)
        except ConnectionError:
            return False
        if len(seconds) < SECONDS.size or not descriptors:
            return False
        connection = socket.socket(fileno=descriptors[0])
        deadline = time.monotonic() + SECONDS.unpack(seconds)[0]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_fork(connection, parent)
        self._forks[pid] = _Fork(connection, deadline)
        return True

    def _become_fork(self, connection: socket.socket, parent: int) -> None:
        """Does not return: whatever happens, this process does not continue as the one it was forked from."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # Who waits for the end of another connection would wait for this process too.
            for each in (self._control, self._ended, self._waker, *(fork.connection for fork in self._forks.values())):
                each.close()
            self._selector.close()
            _limit(parent)
            connection.sendall(BEGUN)
            _answer(connection)
            code = 0
        finally:
            os._exit(code)

    def _kill_late(self) -> None:
        for pid, fork in self._forks.items():
            if not fork.is_late and fork.deadline <= time.monotonic():
                fork.is_late = True
                # Not reaped yet, so the number is no one else's.
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self._forks:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            fork = self._forks.pop(pid)
            ended = {"exit": os.waitstatus_to_exitcode(status), "is_late": fork.is_late}
            # A connection that cannot take it has an answer waiting, or no reader.
            with suppress(OSError), fork.connection:
                fork.connection.send(framed(ENDED, json.dumps(ended).encode()), socket.MSG_DONTWAIT)

    def close(self) -> None:
        for pid in self._forks:
            os.kill(pid, signal.SIGKILL)


def _limit(parent: int) -> None:
    """Of the process that answers one query: what it may take, and that it dies first."""
    sys.dont_write_bytecode = True
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.nice(NICE)
    for limit, value in (
        (resource.RLIMIT_DATA, _taken_bytes() + PROCESS_BYTES_MAX),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))


def _taken_bytes() -> int:
    """What this process has mapped to write to already, most of it shared with the one it was forked from."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _answer(connection: socket.socket) -> None:
    """The request that comes in whole, and its answer, or why there is none."""
    with connection.makefile("rb") as sent:
        home, query = read_request(sent.read())
    try:
        frame = framed(ANSWER, ask(home, query))
    except BaseException as error:
        frame = framed(ERROR, told(error))
    connection.sendall(frame)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    # All that a query needs is loaded here, once.
    names_in("select 1")
    TableNames([], Dialect.DUCKDB).read("select 1")
    formats.format_named(formats.DEFAULT)
    for kind in kinds.known():
        kinds.codec_of(kind)
    gc.collect()
    gc.freeze()
    forks = Forks(control)
    try:
        forks.run()
    finally:
        forks.close()


if __name__ == "__main__":
    main()
