"""One hosted connector: does what `lifecycle` decides, one decision after another.

A run is a `Connector` in threads of its own, made from the configuration that is stored when it starts. Its end,
whatever ends it, is an event like any other, so a connector that breaks touches nothing but itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tailrace.connector.connector import Connector, Status
from tailrace.connector.events import ConnectorState, CutPublished, Event, StreamProgressed
from tailrace.connector.messages import owned
from tailrace.errors import DefiniteError, TailraceError
from tailrace.hidden import masked
from tailrace.lake.home import LakeHome
from tailrace.server.errors import RequestError
from tailrace.server.hints import in_properties
from tailrace.server.supervisor import lifecycle
from tailrace.server.supervisor.hub import LifeChanged, Told
from tailrace.server.supervisor.lifecycle import (
    BACKOFF,
    Action,
    Life,
    Phase,
    Progressed,
    RunEnd,
    RunEnded,
    Target,
)
from tailrace.server.supervisor.store import StoredConnector

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hosting:
    """What a hosted connector asks of the server around it."""

    build: Callable[[], Connector]
    """A connector with the configuration that is stored now; may raise what is wrong with it."""
    store_target: Callable[[Target], None]
    """Durable when it returns."""
    tell: Callable[[Told], None]


class HostedRun:
    """One run, from before its connector is made to its end."""

    def __init__(self) -> None:
        self.connector: Connector | None = None
        self.begun = time.monotonic()
        self.is_held = self.is_ending = False


class Hosted:
    """Any thread. `life` and the run change under one lock, together with the stored target."""

    def __init__(self, stored: StoredConnector, hosting: Hosting) -> None:
        self.name = stored.name
        self.stored = stored
        """Its configuration as it is stored: this server alone changes it, so no one has to ask for it. Its target is
        in `life`."""
        self.lake: tuple[StoredConnector, LakeHome] | None = None
        """Where its lake is, and of which configuration that was read."""
        self._hosting = hosting
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._run: HostedRun | None = None
        self._timer: threading.Timer | None = None
        self.life = Life(stored.target)

    def begin(self) -> None:
        """After the server's start: bring it to its target."""
        self.hear(lifecycle.TargetWanted(self.life.target))

    def want(self, target: Target) -> None:
        """The target is stored, then it takes effect."""
        with self._lock:
            self._hosting.store_target(target)
            self.hear(lifecycle.TargetWanted(target))

    def hear(self, event: lifecycle.Event) -> None:
        with self._lock:
            was = self.life
            self.life, actions = lifecycle.step(self.life, event)
            for action in actions:
                self._do(action)
            if self.life != was:
                self._hosting.tell(LifeChanged(self.life))
            self._changed.notify_all()

    def status(self) -> Status | None:
        """Of the run; None where there is none yet."""
        run = self._run
        return run.connector.status() if run is not None and run.connector is not None else None

    def wait_for_end(self, seconds: float) -> bool:
        """Until there is no run; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.life.has_run, seconds)

    @contextmanager
    def kept_stopped(self) -> Iterator[None]:
        """For what may only be done to a stopped connector: no run begins inside. If it is not stopped, that is no
        conflict: clients of Kafka Connect would take that for a reason to ask again."""
        with self._lock:
            if self.life.target is not Target.STOPPED or self.life.phase is not Phase.IDLE:
                raise RequestError(
                    "Connectors must be in the STOPPED state before their offsets can be modified",
                    f"PUT /connectors/{self.name}/stop, then wait for the state STOPPED",
                )
            yield

    def _do(self, action: Action) -> None:
        run = self._run
        match action:
            case Action.START:
                self._start()
            case Action.RETRY_LATER:
                due = owned(partial(self.hear, lifecycle.RetryDue()))
                self._timer = threading.Timer(self.life.retry_seconds, due)
                self._timer.daemon = True
                self._timer.start()
            case Action.STORE_STOPPED:
                self._store_stopped()
            case Action.PAUSE | Action.RESUME if run is not None:
                run.is_held = action is Action.PAUSE
                if run.connector is not None:
                    (run.connector.pause if run.is_held else run.connector.resume)()
            case Action.END if run is not None:
                run.is_ending = True
                if run.connector is not None:
                    run.connector.stop()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._run = run = HostedRun()
        # What is said of the run from outside is for the server's messages, not for those of any lake.
        threading.Thread(target=owned(partial(self._watch, run)), name=f"run of {self.name}", daemon=True).start()

    def _store_stopped(self) -> None:
        try:
            self._hosting.store_target(Target.STOPPED)
        except TailraceError as error:
            # The next server starts it once more, and it ends once more.
            logger.warning("target not stored", extra={"connector": self.name, "reason": error.message})

    def _watch(self, run: HostedRun) -> None:
        """The run, from its beginning to its end."""
        try:
            connector = self._hosting.build()
            connector.subscribe(lambda event: self._heard(run, event))
            with self._lock:
                if not run.is_ending:
                    run.connector = connector
                    connector.start()
                    if run.is_held:
                        connector.pause()
            connector.wait()
            ended = RunEnded(RunEnd.DONE)
        except BaseException as error:
            ended = ended_by(error)
            logger.warning("connector ended", extra={"connector": self.name, "reason": ended.trace})
        with self._lock:
            self._run = None
            self.hear(ended)

    def _heard(self, run: HostedRun, event: Event) -> None:
        is_progress = isinstance(event, CutPublished) or (
            isinstance(event, StreamProgressed) and time.monotonic() - run.begun > BACKOFF.most_seconds
        )
        if is_progress and (self.life.failures or self.life.trace):
            self.hear(Progressed())
        self._hosting.tell(event)


def ended_by(error: BaseException) -> RunEnded:
    """What an error means for the next run. One that is not ours may be anything: it is tried again, ever later."""
    if isinstance(error, TailraceError):
        trace = error.message if error.hint is None else f"{error.message}\nhint: {in_properties(error.hint)}"
        return RunEnded(RunEnd.DEFINITE if isinstance(error, DefiniteError) else RunEnd.TRANSIENT, trace)
    first_line = masked(str(error) or type(error).__name__).strip().splitlines()[0]
    return RunEnded(RunEnd.TRANSIENT, f"unexpected: {first_line[:300]}")


def shown_state(life: Life, status: Status | None) -> str:
    """Kafka Connect's word for it."""
    state = status.state if status else None
    match life.phase:
        case Phase.WAITING:
            return "RESTARTING"
        case Phase.FAILED:
            return "FAILED"
        case Phase.IDLE:
            return "UNASSIGNED" if life.target is Target.RUNNING else life.target.value
        case Phase.ENDING if life.target is not Target.STOPPED:
            return "RESTARTING"
        case Phase.HELD if state is ConnectorState.PAUSED:
            return "PAUSED"
    return "UNASSIGNED" if state in (None, ConnectorState.STARTING) else "RUNNING"
