"""The process that others are forked from. `forks.py` starts it and asks it; nothing else does.

It has one thread, because a fork of several keeps one and the locks of all. It ends with its socket, so with the
process that asks. It reaps its forks and tells how each ended.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tailrace.forks.forks import PID_BYTES, SECONDS

REQUEST_BYTES_MAX = 4096
FILES_MAX = 8
_DIE_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG."""


@dataclass
class _Child:
    end: int
    """The pipe that is told how it ended."""
    deadline: float
    is_late: bool = False


class ForkServer:
    """Forks when it is asked and tells how forks have ended, until no one can ask any more."""

    def __init__(
        self,
        requests: socket.socket,
        prepare: Callable[[str], None],
        become: Callable[[list[int]], int],
        *,
        kills_forks: bool,
    ) -> None:
        self._requests = requests
        self._prepare = prepare
        self._become = become
        self._kills_forks = kills_forks
        self._pid = os.getpid()
        self._prepared: set[str] = set()
        self._children: dict[int, _Child] = {}
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker):
            each.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for each in (self._requests, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # It ends with its socket. A signal for the whole group is meant for those who know what is to be done.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def run(self) -> None:
        try:
            self._run()
        finally:
            if self._kills_forks:
                for pid in self._children:
                    os.kill(pid, signal.SIGKILL)

    def _run(self) -> None:
        is_asked = True
        while is_asked:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._requests:
                    is_asked = self._serve()
            with suppress(BlockingIOError):
                while self._woken.recv(1024):
                    pass
            self._kill_late()
            self._reap()

    def prepare(self, needs: str) -> None:
        """Load what forks need, once."""
        if needs not in self._prepared:
            self._prepare(needs)
            self._prepared.add(needs)

    def _patience(self) -> float | None:
        first = min((child.deadline for child in self._children.values() if not child.is_late), default=math.inf)
        return None if first == math.inf else max(0.0, first - time.monotonic())

    def _serve(self) -> bool:
        """One request; False where none can come any more."""
        try:
            request, files, _, _ = socket.recv_fds(self._requests, REQUEST_BYTES_MAX, FILES_MAX)
            if not request:
                return False
            (seconds,) = SECONDS.unpack_from(request)
            self.prepare(request[SECONDS.size :].decode())
            self._requests.sendall(self._fork(files, time.monotonic() + seconds).to_bytes(PID_BYTES))
        except ConnectionError:
            # The asker has died since. What was forked notices: its files are closed.
            return False
        return True

    def _fork(self, files: list[int], deadline: float) -> int:
        """The new process's number; 0 where there can be no more."""
        *its_own, end = files
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            self._be_forked(its_own, end)
        for file in its_own:
            os.close(file)
        if pid < 0:
            os.close(end)
            return 0
        self._children[pid] = _Child(end, deadline)
        return pid

    def _be_forked(self, files: list[int], end: int) -> None:
        """In the new process, which does not return: it must never continue as the one it was forked from."""
        code = 1
        try:
            if self._kills_forks:
                self._die_with_server()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            # A pipe that a stranger holds open never ends.
            self._selector.close()
            for each in (self._requests, self._woken, self._waker):
                each.close()
            for file in (end, *(child.end for child in self._children.values())):
                os.close(file)
            code = self._become(files)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            # Nothing that was forked along is tidied up here.
            os._exit(code)

    def _die_with_server(self) -> None:
        """Also where the fork server is killed and can kill no one. Only Linux has this."""
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != self._pid:
            os._exit(1)

    def _kill_late(self) -> None:
        for pid, child in self._children.items():
            if not child.is_late and child.deadline <= time.monotonic():
                child.is_late = True
                # It is not reaped yet, so no other process has its number.
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            child = self._children.pop(pid)
            told = {"exit": os.waitstatus_to_exitcode(status), "is_late": child.is_late}
            with suppress(BrokenPipeError):
                os.write(child.end, json.dumps(told).encode())
            os.close(child.end)


def serve(prepare: Callable[[str], None], become: Callable[[list[int]], int], *, kills_forks: bool) -> None:
    """The main function of a fork server.

    `prepare` loads what the named forks need. `become` is the work of a fork, with the files that came with its
    request; it returns the exit code. With `kills_forks`, no fork outlives the fork server.
    """
    server = ForkServer(socket.socket(fileno=int(sys.argv[1])), prepare, become, kills_forks=kills_forks)
    server.prepare(sys.argv[2])
    # What is there now stays: looking through it would copy its pages into every fork.
    gc.collect()
    gc.freeze()
    server.run()
