"""Capture in a process of its own: started, watched, commanded and ended by the connector.

Both sides speak JSON lines. The first line tells the child what to capture; the others are commands. The child
lives no longer than the pipe to its parent: when the parent dies, however it dies, the pipe closes and capture ends.
The source's arguments travel through the pipe, never on the command line, because they may hold a password.

    parent → child   {"start": {...}}   {"pause": {}}   {"resume": {}}   {"confirm": {"ordinal": …}}   {"stop": {}}
    child → parent   {"report": {...}}   {"held": {}}   {"proven": {}}

A report is an error: a transient one is what capture deals with, and a definite one is what it died of. The parent
raises that as it is.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tailrace.connector.start._capture_fork import FORKS, CaptureFork
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.log.write.writer import LogOptions, LogWriter, give_memory_back
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim
from tailrace.source.kinds import load, path_of
from tailrace.without_pandas import keep_pandas_out

RESTARTS_MAX = 5
RESTARTS_SECONDS = 60
RETRY_SECONDS = 1.0
NAME = "capture"
"""What a capture is called where processes are listed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CaptureOrder:
    """What one capture process reads and where it writes."""

    source: str
    """Where `kinds.load` finds the source's class."""
    arguments: Mapping[str, Any]
    claim: Claim
    identity: Mapping[str, str]
    log: str
    keep_seconds: float
    log_options: Mapping[str, Any]
    """Of `LogOptions`."""
    waits_for_cuts: bool = False
    """The source is told of nothing that `confirm` has not said."""


class Capture(Protocol):
    """A capture, as a run sees it."""

    @property
    def report(self) -> TailraceError | None:
        """A problem that capture met and is dealing with, or died of."""
        ...

    @property
    def is_proven(self) -> bool:
        """The source has shown that it has what the log has."""
        ...

    def check(self) -> None:
        """Raise what capture died of, if it did."""
        ...

    def pause(self) -> None:
        """Take nothing more from the source."""
        ...

    def resume(self) -> None: ...

    def confirm(self, ordinal: int) -> None:
        """The lake has everything that committed up to here: the source may be told, where it waits for that."""
        ...


class Captures:
    """How a run begins its capture: in a process of its own."""

    def prepare(self, source: Source) -> None:
        """Load what a capture of this source needs beside other work, so that it starts at once."""
        FORKS.prepare(path_of(source).partition(":")[0])

    def begin(self, order: CaptureOrder) -> AbstractContextManager[Capture]:
        """The capture runs inside the `with`."""
        return CaptureProcess(order)


class CaptureProcess:
    """A running capture, from when it is made. Use as a context manager: leaving it ends the child."""

    def __init__(self, order: CaptureOrder) -> None:
        self._order = order
        self.report: TailraceError | None = None
        """A problem that capture met and is dealing with, or died of."""
        self.is_held = False
        """It has heard that it is paused, and takes nothing."""
        self.is_proven = False
        """The source has shown that it has what the log has."""
        self._is_paused = False
        self._confirmed = 0
        self._restart: TransientError | None = None
        """What was reported when it was last started again."""
        self._starts: deque[float] = deque(maxlen=RESTARTS_MAX)
        self._child, self._listener = self._start()

    def __enter__(self) -> CaptureProcess:
        return self

    def _start(self) -> tuple[CaptureFork, threading.Thread]:
        """A child that captures, and the thread that hears it."""
        self._starts.append(time.monotonic())
        self.is_held = self.is_proven = False
        child = CaptureFork(self._order.source.partition(":")[0])
        _send(child, "start", asdict(self._order))
        if self._is_paused:
            _send(child, "pause")
        if self._confirmed:
            _send(child, "confirm", {"ordinal": self._confirmed})
        listener = threading.Thread(target=self._listen, args=(child,), name="capture listener", daemon=True)
        listener.start()
        return child, listener

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._child.close_input()
        try:
            self._child.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._child.process.kill()
            self._child.process.wait()
        self._listener.join(timeout=5)

    @property
    def pid(self) -> int:
        return self._child.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives."""
        return self._child.process.poll()

    def pause(self) -> None:
        """Take nothing more from the source, but keep the connection and the position."""
        self._is_paused = True
        _send(self._child, "pause")

    def resume(self) -> None:
        self._is_paused = self.is_held = False
        _send(self._child, "resume")

    def confirm(self, ordinal: int) -> None:
        if ordinal > self._confirmed:
            self._confirmed = ordinal
            _send(self._child, "confirm", {"ordinal": ordinal})

    def check(self) -> None:
        """Raise what capture died of, if it knew; start it again if it was killed."""
        if self.exit_code is None:
            return
        self._listener.join(timeout=5)
        report = self.report
        if isinstance(report, DefiniteError):
            raise report
        if len(self._starts) == RESTARTS_MAX and time.monotonic() - self._starts[0] < RESTARTS_SECONDS:
            raise DefiniteError(
                f"capture died {RESTARTS_MAX} times in {RESTARTS_SECONDS} s, last with exit code {self.exit_code}",
                report.message if report and report is not self._restart else None,
            )
        self._child.close_input()
        logger.warning("capture died and is started again", extra={"exit_code": self.exit_code})
        # Told until it continues, which may be at once: the lake falls behind meanwhile.
        died = f"capture died (exit code {self.exit_code}) and is started again"
        self.report = self._restart = TransientError(f"{died}: it continues where the log ends")
        self._child, self._listener = self._start()

    def _continues(self) -> None:
        """The child that was started again is where the one before it was."""
        if self.report is self._restart:
            self.report = None

    def _listen(self, child: CaptureFork) -> None:
        with child.stdout as lines:
            for line in lines:
                message = json.loads(line)
                if "held" in message:
                    self.is_held = self._is_paused
                    self._continues()
                elif "proven" in message:
                    self.is_proven = True
                    self._continues()
                else:
                    report = TailraceError.from_fields(message["report"])
                    self.report = report if report.message else None


def _send(child: CaptureFork, command: str, fields: Mapping[str, Any] | None = None) -> None:
    try:
        child.stdin.write(json.dumps({command: fields or {}}) + "\n")
        child.stdin.flush()
    except BrokenPipeError:
        # It has died; `check` says of what and starts it again.
        return


def use_little_memory() -> None:
    """For a process that only captures."""
    # Arrow's own pool keeps what it has freed, some 30 MB of what passes through here.
    give_memory_back()
    keep_pandas_out()


def main() -> int:
    """The child: commands on standard input, reports on standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_little_memory()
    start = sys.stdin.readline()
    if not start.endswith("\n"):
        # The connector has died since it asked for this process.
        return 1
    order = CaptureOrder(**json.loads(start)["start"])
    control = CaptureControl(
        report=lambda message: _report(TransientError(message)),
        keep_seconds=order.keep_seconds,
        held=lambda: _tell("held", {}),
        proven=lambda: _tell("proven", {}),
        waits_for_cuts=order.waits_for_cuts,
    )
    signal.signal(signal.SIGTERM, lambda *_: control.stopping.set())
    threading.Thread(target=_obey, args=(control,), daemon=True).start()
    try:
        _capture(order, control)
    except TailraceError as error:
        # Capture itself tries again what may pass. What ends it is definite.
        is_definite = isinstance(error, DefiniteError)
        _report(error if is_definite else DefiniteError(error.message, error.hint, error.table))
        return 2
    return 0


def _capture(order: CaptureOrder, control: CaptureControl) -> None:
    source = load(order.source)(**order.arguments)
    options = LogOptions(**order.log_options)
    while not control.stopping.is_set():
        try:
            log = LogWriter.open(Path(order.log), order.identity, options)
        except DefiniteError:
            raise
        except TailraceError as error:
            control.report(f"{error.message}; trying again")
            control.stopping.wait(RETRY_SECONDS)
            continue
        try:
            source.capture(order.claim, log, control)
        finally:
            log.close()


def _obey(control: CaptureControl) -> None:
    for line in sys.stdin:
        match json.loads(line):
            case {"pause": _}:
                control.pause()
            case {"resume": _}:
                control.resume()
            case {"confirm": {"ordinal": ordinal}}:
                control.confirm(ordinal)
            case {"stop": _}:
                break
            case unknown:
                _report(TransientError(f"unknown command {', '.join(unknown)}"))
    control.stopping.set()


def _report(error: TailraceError) -> None:
    _tell("report", error.to_fields())


def _tell(what: str, fields: Mapping[str, Any]) -> None:
    # The parent may be gone. The log must be closed all the same.
    try:
        print(json.dumps({what: fields}, default=str), flush=True)
    except BrokenPipeError:
        return
