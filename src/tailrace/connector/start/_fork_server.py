"""The process that captures are forked from. `_forks` starts it and asks it; nothing else does.

    connector ── a socket: one message and its files for each capture ──▶ this ── fork ──▶ capture
        ▲ ▲                                                                │                 │
        │ └──────────────── a pipe: how it ended ──────────────────────────┘                 │
        └────────────────── two pipes: commands and reports ─────────────────────────────────┘

It has one thread, because of a process with several a fork keeps one and the locks of all. It ends with its socket, so
with the process that asks. A capture ends with its own pipes, not with this: when this is killed, captures live on
until they are told.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tailrace.connector.start import capture_process

MESSAGE_BYTES_MAX = 4096
FILES = 4
"""Of a capture: its standard input, output and error, and the pipe that is told how it ended."""
NAME = "capture"
"""What a capture is called where processes are listed: its command line is that of this process."""


class ForkServer:
    """Forks when it is asked and tells how forks have ended, until no one can ask any more."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._ends: dict[int, int] = {}
        """Each capture that lives, and the pipe for its end."""
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # It ends with its socket. A signal for the whole group is meant for those who know what is to be done.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)

    def run(self) -> None:
        poll = select.poll()
        for each in (self._requests, self._woken):
            poll.register(each, select.POLLIN)
        while True:
            ready = {file for file, _ in poll.poll()}
            if self._woken.fileno() in ready:
                self._woken.recv(4096)
                self._reap()
            if self._requests.fileno() in ready:
                try:
                    message, files, _, _ = socket.recv_fds(self._requests, MESSAGE_BYTES_MAX, FILES)
                    if not message:
                        return
                    self._requests.sendall(self._fork(message.decode(), files).to_bytes(8))
                except ConnectionError:
                    # Whoever asked has died since. So does what was forked: its pipes are closed.
                    return

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                end = self._ends.pop(pid)
                with suppress(BrokenPipeError):
                    os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(end)

    def _fork(self, module: str, files: list[int]) -> int:
        """The new process's id; 0 where there can be no more."""
        *streams, end = files
        preload(module)
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            self._become_capture(streams, end)
        for each in streams:
            os.close(each)
        if pid < 0:
            os.close(end)
            return 0
        self._ends[pid] = end
        return pid

    def _become_capture(self, streams: list[int], end: int) -> None:
        """In the new process, which does not return."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for each in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(each, signal.SIG_DFL)
            # A session of its own keeps the terminal's Ctrl-C away: capture ends after the last batch, not before.
            os.setsid()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            # A pipe that a stranger holds open never ends.
            for file in (*streams, end, *self._ends.values()):
                os.close(file)
            for each_socket in (self._requests, self._woken, self._waker):
                each_socket.close()
            _rename()
            surroundings = sys.stdin.readline()
            if surroundings.endswith("\n"):
                _take_over(json.loads(surroundings))
                code = capture_process.main()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            # Nothing of what was forked along is to be tidied up here.
            os._exit(code)


def _rename() -> None:
    with suppress(OSError):  # Where there is no such file, names are a nicety.
        Path("/proc/self/comm").write_text(NAME)


def _take_over(surroundings: dict[str, object]) -> None:
    """Be where the connector is: its folder, its environment, its paths."""
    folder, environment, path = surroundings["folder"], surroundings["environment"], surroundings["path"]
    assert isinstance(folder, str)
    assert isinstance(environment, dict)
    assert isinstance(path, list)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path


def preload(module: str) -> None:
    """A module that cannot be imported here is left to the capture, which can say so."""
    with suppress(Exception):
        import_module(module)


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    preload(sys.argv[2])
    # What is there now is there for good: looking through it would copy its pages into every fork.
    gc.collect()
    gc.freeze()
    ForkServer(requests).run()


if __name__ == "__main__":
    main()
