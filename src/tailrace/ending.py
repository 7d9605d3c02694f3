"""How the command ends when it is interrupted: one line, nothing left behind, no stack trace.

A signal may come at any moment: while modules are imported, inside a call to the JVM, in a destructor. So nothing is
unwound. The handler prints its line, kills the processes and removes the folders that were entered here, and the
process is gone. Our files allow that: they survive a kill at any moment.

What is entered here is also removed when the process ends by itself. Only the command line watches signals; a program
that imports this package keeps its own handlers.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import Popen
    from types import FrameType

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
WAIT_SECONDS = 5.0
SHOW_CURSOR = b"\x1b[?25h\n"


class _Ending:
    """What this process must not leave behind, and how it ends. Any thread."""

    def __init__(self) -> None:
        self.code = INTERRUPTED
        self.line = "interrupted"
        self.owner = os.getpid()
        self.groups: list[Popen[bytes]] = []
        self.folders: list[Path] = []
        self.lock = threading.RLock()
        self.busy = 0
        """How many threads are in the middle of making something that is not entered yet."""
        self.has_begun = False
        self.is_command = False
        """The process is a command of ours, and not a program that imports this package."""
        self.is_awaited = False
        """A signal came while a thread was busy: that thread ends the process when it no longer is."""


_ending = _Ending()


def watch() -> None:
    """From now on SIGINT and SIGTERM end this process, unless whoever started it has them ignored."""
    _ending.is_command = True
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupted)


def on_interrupt(line: str, code: int = INTERRUPTED) -> None:
    """What an interruption from now on prints, if anything, and its exit code."""
    _ending.line, _ending.code = line, code


@contextmanager
def raised() -> Iterator[None]:
    """Inside, Ctrl-C is a KeyboardInterrupt, for code that can go on after it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Inside, the first signal asks for an orderly stop. The second one ends the process."""

    def handle(number: int, _: FrameType | None) -> None:
        stop()
        for each in SIGNALS:
            signal.signal(each, _interrupted)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def temporary_folder(prefix: str, below: Path | None = None) -> Path:
    """A new folder that is removed when the process ends; `below` another one, or where this machine has such."""
    from pathlib import Path
    from tempfile import mkdtemp

    with undisturbed():
        folder = Path(mkdtemp(prefix=prefix, dir=below))
        _ending.folders.append(folder)
    return folder


def started(start: Callable[[], Popen[bytes]]) -> Popen[bytes]:
    """A process that leads a group of its own. The whole group is killed when this process ends."""
    with undisturbed():
        process = start()
        _ending.groups.append(process)
    return process


@contextmanager
def undisturbed() -> Iterator[None]:
    """Inside, which must be brief, no signal takes effect: what is made is entered before the process ends. A process
    that is ending makes nothing more."""
    with _ending.lock:
        is_late = _ending.has_begun
        _ending.busy += not is_late
    if is_late:
        _wait_for_the_end()
    try:
        yield
    finally:
        with _ending.lock:
            _ending.busy -= 1
            is_next = _ending.is_awaited and not _ending.busy
        if is_next:
            end()


def end() -> NoReturn:
    """Now, with the line and the code that an interruption has."""
    with _ending.lock:
        is_late, _ending.has_begun = _ending.has_begun, True
    if is_late:
        _wait_for_the_end()
    # Not through Python's own streams: this thread may be in the middle of writing to one.
    line = f"{_ending.line}\n".encode() if _ending.line else b""
    with suppress(OSError):
        os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + line)
    _be_silent()
    _tidy()
    os._exit(_ending.code)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    with _ending.lock:
        if _ending.has_begun or _ending.busy:
            _ending.is_awaited = True
            return
    end()


def _be_silent() -> None:
    """Other threads are about to meet processes that are gone. No one needs to hear of it."""
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)


def _wait_for_the_end() -> NoReturn:
    while True:
        time.sleep(WAIT_SECONDS)


def _tidy() -> None:
    if os.getpid() != _ending.owner:
        return
    for process in _ending.groups:
        # One that has been waited for may have left its number to a stranger.
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    _ending.groups.clear()
    if _ending.folders:
        from shutil import rmtree

        for folder in _ending.folders:
            rmtree(folder, ignore_errors=True)
        _ending.folders.clear()


@atexit.register
def _at_exit() -> None:
    """A thread may be starting something at this moment: what it starts is waited for, and killed."""
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupted:
            # It is over: the exit code is the command's own.
            signal.signal(number, signal.SIG_IGN)
    deadline = time.monotonic() + WAIT_SECONDS
    with _ending.lock:
        _ending.has_begun = True
    while _ending.busy and time.monotonic() < deadline:
        time.sleep(0.01)
    if _ending.is_command and _ending.groups:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        _be_silent()
    _tidy()
