"""Capture in a process of its own: started, watched and ended by the connector.

The child lives no longer than the pipe to its parent: when the parent dies, however it dies, the
pipe closes and capture ends. The connection string travels through the pipe, never on the command line.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tailrace.errors import DefiniteError, TailraceError
from tailrace.log.writer import LogOptions
from tailrace.source.postgres.capture import CaptureOptions, run

RESTARTS_MAX = 5
RESTARTS_SECONDS = 60


@dataclass(frozen=True)
class Report:
    """The last thing capture had to say."""

    kind: str
    message: str
    hint: str | None = None


class CaptureProcess:
    """A running capture. Use as a context manager: leaving it ends the child."""

    def __init__(self, options: CaptureOptions) -> None:
        self._order = to_order(options)
        self.report: Report | None = None
        """A problem that capture met and is dealing with, or died of."""

        self._starts: deque[float] = deque(maxlen=RESTARTS_MAX)

    def __enter__(self) -> CaptureProcess:
        self._start()
        return self

    def _start(self) -> None:
        self._starts.append(time.monotonic())
        # A session of its own keeps the terminal's Ctrl-C away: capture ends after the last batch, not before.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tailrace.connector.capture_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._child.stdin is not None
        self._child.stdin.write(self._order + "\n")
        self._child.stdin.flush()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._listener.join(timeout=5)

    @property
    def pid(self) -> int:
        return self._child.pid

    def check(self) -> None:
        """Raise what capture died of, if it knew; start it again if it was killed."""
        if self._child.poll() is None:
            return
        self._listener.join(timeout=5)
        report = self.report
        if report is not None and report.kind == "definite":
            raise DefiniteError(report.message, report.hint)
        if len(self._starts) == RESTARTS_MAX and time.monotonic() - self._starts[0] < RESTARTS_SECONDS:
            raise DefiniteError(
                f"capture died {RESTARTS_MAX} times in {RESTARTS_SECONDS} s, last with exit code "
                f"{self._child.returncode}",
                report.message if report else None,
            )
        self._start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                report = Report(**json.loads(line))
                self.report = report if report.message else None


def to_order(options: CaptureOptions) -> str:
    """The options as the one line that the child reads."""
    return json.dumps({**asdict(options), "log": str(options.log)})


def from_order(line: str) -> CaptureOptions:
    order: dict[str, Any] = json.loads(line)
    order |= {"log": Path(order["log"]), "log_options": LogOptions(**order["log_options"])}
    return CaptureOptions(**order)


def main() -> int:
    """The child: one line of orders on standard input, reports on standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = from_order(sys.stdin.readline())
    stopping = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    try:
        run(options, stopping, lambda message: _say("transient", message))
    except TailraceError as error:
        _say("definite", error.message, error.hint)
        return 2
    return 0


def _say(kind: str, message: str, hint: str | None = None) -> None:
    # A parent that is gone hears nothing; that is no reason to die before the log is closed.
    try:
        print(json.dumps({"kind": kind, "message": message, "hint": hint}), flush=True)
    except BrokenPipeError:
        return


if __name__ == "__main__":
    sys.exit(main())
