"""What is asked of a running connector from other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tailrace.connector.events import Event, TroubleChanged
from tailrace.engine.door import Engine
from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.source.door.values import Problem, Waiting
from tailrace.stop import Stop

BREAK_OFF_SECONDS = 5.0
"""How long a job may go on after we are to stop: most end by then, and what they did is published."""


class RunControl:
    """Any thread, any signal handler."""

    def __init__(self) -> None:
        self.stop = Stop()
        self._paused = threading.Event()
        self.home: LakeHome | None = None
        """The lake, once it is ours alone."""

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    @property
    def is_paused(self) -> bool:
        return self._paused.is_set()


class BreakingOff:
    """Inside its `with`, work that has not ended some seconds after we are to stop is broken off: a job may hang, and
    nothing of it counts before it has ended."""

    def __init__(self, stop: Stop, engine: Engine, groups: Sequence[str]) -> None:
        self._engine, self._groups = engine, groups
        self._wanted = Stop(stop)
        """Set when the work is to stop, and when it has ended."""
        self._ended = Stop()
        self._thread = threading.Thread(target=self._watch, name="breaking off", daemon=True)

    def _watch(self) -> None:
        self._wanted.wait()
        while not self._ended.wait(BREAK_OFF_SECONDS):
            for group in self._groups:
                self._engine.cancel(group)

    def __enter__(self) -> BreakingOff:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._wanted.set()


class HeldUpError(TransientError):
    """Another process held the source up for longer than we wait."""


class Waits:
    """What a call to the source waits for, told once, until the call is over or we are to stop."""

    def __init__(self, stop: Stop, tell: Callable[[Event], None]) -> None:
        self._stop = stop
        self._tell = tell
        self._told: Problem | None = None

    def __call__(self, problem: Problem | None) -> None:
        """A `Waiting` of the source's door."""
        self._stop.check()
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
