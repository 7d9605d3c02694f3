"""What is asked of a running connector from other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tailrace.connector.events import Event, TroubleChanged
from tailrace.engine.door import Engine
from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem, Waiting

STOP_POLL_SECONDS = 1.0
BREAK_OFF_SECONDS = 5.0
"""How long a job may go on after we are to stop: most end by then, and what they did is published."""


class StopRequest(BaseException):
    """The connector was asked to stop."""


class RunControl:
    """Any thread, any signal handler."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._resyncs: list[TableId] = []
        self.home: LakeHome | None = None
        """The lake, once it is ours alone."""

    def stop(self) -> None:
        self._stopping.set()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def resync(self, table: TableId) -> None:
        self._resyncs.append(table)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def is_paused(self) -> bool:
        return self._paused.is_set()

    def take_resyncs(self) -> list[TableId]:
        taken = list(self._resyncs)
        del self._resyncs[: len(taken)]
        return taken

    def check(self) -> None:
        """Raises when we are to stop."""
        if self._stopping.is_set():
            raise StopRequest

    def wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)


class BreakingOff:
    """Inside its `with`, work that has not ended some seconds after we are to stop is broken off: a job may hang, and
    nothing of it counts before it has ended."""

    def __init__(self, control: RunControl, engine: Engine, groups: Sequence[str]) -> None:
        self._control, self._engine, self._groups = control, engine, groups
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="breaking off", daemon=True)

    def _watch(self) -> None:
        while not self._control.is_stopping:
            self._control.wait(STOP_POLL_SECONDS)
            if self._left.is_set():
                return
        while not self._left.wait(BREAK_OFF_SECONDS):
            for group in self._groups:
                self._engine.cancel(group)

    def __enter__(self) -> BreakingOff:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()


class HeldUpError(TransientError):
    """Another process held the source up for longer than we wait."""


class Waits:
    """What a call to the source waits for, told once, until the call is over or we are to stop."""

    def __init__(self, control: RunControl, tell: Callable[[Event], None]) -> None:
        self._control = control
        self._tell = tell
        self._told: Problem | None = None

    def __call__(self, problem: Problem | None) -> None:
        """A `Waiting` of the source's door."""
        self._control.check()
        if problem is not None and problem != self._told:
            self._told = problem
            self._tell(TroubleChanged(problem.message, problem.hint))

    def at_most(self, seconds: float) -> Waiting:
        """The same, but what takes longer becomes a `HeldUpError`."""
        deadline = time.monotonic() + seconds

        def wait(problem: Problem | None) -> None:
            self(problem)
            if time.monotonic() > deadline:
                raise HeldUpError(
                    problem.message if problem else "the source does not answer", problem.hint if problem else None
                )

        return wait

    def over(self) -> None:
        if self._told is not None:
            self._told = None
            self._tell(TroubleChanged(None))
