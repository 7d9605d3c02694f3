"""The run of this process's own connector: what `tailrace sync --ui` can be told by its console.

`supervisor.lifecycle` decides what follows from what is asked. A run that ends by itself, because it is done or by an
error, is the command's end too, as without a console: nothing is tried again here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tailrace.connector.connector import Connector, Status
from tailrace.server.errors import RequestError
from tailrace.server.supervisor import lifecycle
from tailrace.server.supervisor.hub import LifeChanged, Told
from tailrace.server.supervisor.lifecycle import Action, Life, Phase, RestartAsked, RunEnd, RunEnded, Target

LOOK_SECONDS = 0.2


class LiveRun:
    """A `LakeRun`. Any thread asks; the one that began it waits for its end."""

    refusals: Mapping[str, str] = {}

    def __init__(self, connector: Connector, tell: Callable[[Told], None]) -> None:
        self._connector = connector
        self._tell = tell
        self._lock = threading.RLock()
        self._life = Life(Target.RUNNING)
        self._is_over = threading.Event()
        connector.subscribe(tell)

    @property
    def life(self) -> Life:
        return self._life

    @property
    def status(self) -> Status | None:
        return self._connector.status() if self._life.has_run else None

    def begin(self) -> None:
        self._hear(lifecycle.TargetWanted(Target.RUNNING))

    def end(self) -> None:
        """End the run for ever. Any signal handler: takes no lock."""
        self._is_over.set()
        self._connector.stop()

    def want(self, target: Target) -> None:
        self._hear(lifecycle.TargetWanted(target))

    def restart(self, *, only_failed: bool) -> None:
        """One that has failed has ended this process."""
        if not only_failed:
            self._hear(RestartAsked())

    @contextmanager
    def kept_stopped(self) -> Iterator[None]:
        with self._lock:
            if self._life.target is not Target.STOPPED or self._life.phase is not Phase.IDLE:
                raise RequestError(
                    "Connectors must be in the STOPPED state before their offsets can be modified",
                    "stop it first: its lake stays, and it stays stopped until it is resumed",
                )
            yield

    def wait(self) -> bool:
        """For a moment; whether there is more to wait for. Raises the error that ended the run. One that was stopped
        here may be started again here."""
        if not self._life.has_run:
            return not self._is_over.wait(LOOK_SECONDS)
        if not self._connector.wait(LOOK_SECONDS):
            return True
        with self._lock:
            was_asked = self._life.phase is Phase.ENDING
            if not was_asked or self._is_over.is_set():
                return False
            self._hear(RunEnded(RunEnd.DONE))
        return True

    def _hear(self, event: lifecycle.Event) -> None:
        with self._lock:
            was = self._life
            self._life, actions = lifecycle.step(self._life, event)
            for action in actions:
                self._do(action)
            if self._life != was:
                self._tell(LifeChanged(self._life))

    def _do(self, action: Action) -> None:
        match action:
            case Action.START if not self._is_over.is_set():
                self._connector.start()
            case Action.PAUSE:
                self._connector.pause()
            case Action.RESUME:
                self._connector.resume()
            case Action.END:
                self._connector.stop()
