"""Verifications that run in the background: one at a time for a connector, few in a server.

Each is `tailrace verify` by the engine that moves the connector's rows. It waits for the connector and never takes its
place: one whose connector is stopped meanwhile ends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tailrace.configuration.reading import Configuration
from tailrace.connector.messages import owned
from tailrace.errors import DefiniteError, TailraceError
from tailrace.hidden import masked
from tailrace.lake.home import LakeHome
from tailrace.server.errors import BusyError, NotFoundError, RequestConflictError
from tailrace.server.supervisor.lifecycle import Target
from tailrace.server.verifications.records import VerificationFiles, VerificationRecord, VerificationState
from tailrace.settings import VerifySettings
from tailrace.source.kinds import source_of
from tailrace.verify import events
from tailrace.verify.report import LakeReport
from tailrace.verify.verification import Verification

if TYPE_CHECKING:
    from tailrace.server.supervisor.door import ConnectorHost

RUNNING_MAX = 2
END_SECONDS = 15.0
KEY_CHARACTERS_MAX = 200
"""Of a value in a key that differs."""

logger = logging.getLogger(__name__)


class _EndedError(DefiniteError):
    """It is not to go on."""


@dataclass
class Underway:
    """One that runs, and how far it is. Its own thread writes, any reads."""

    record: VerificationRecord
    doing: str = "it begins"
    tasks_done: int = 0
    tasks: int = 0
    judged: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was found so far, by table."""
    wanted: VerificationState | None = None
    """What it becomes when it ends early."""
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class VerificationOrder:
    """What is to be compared."""

    name: str
    """The connector's."""
    tables: tuple[str, ...]
    keys_max: int
    who: str


class Verifications:
    """Any thread."""

    def __init__(self, running_max: int = RUNNING_MAX) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Underway] = {}
        self._running_max = running_max
        self._is_closed = False

    def begin(self, host: ConnectorHost, order: VerificationOrder) -> Underway:
        """In the background. `host` has the connector; a conflict if it does not run, or one is under way already."""
        home, configuration = host.lake(order.name), host.configuration(order.name)
        if not configuration.dsn:
            raise RequestConflictError("the address of the source is not known here", "tailrace ui LAKE --dsn DSN")
        _require_running(host, order.name)
        files = VerificationFiles(home)
        with self._lock:
            self._require_free(order.name)
            record = VerificationRecord(
                files.next_id(), VerificationState.RUNNING, order.who, order.tables, _now_us(), os.getpid()
            )
            files.write(record)
            self._running[order.name] = underway = Underway(record)
        work = partial(self._run, underway, partial(_outcome, host, order, home, configuration), home)
        threading.Thread(target=owned(work), name=f"verification of {order.name}", daemon=True).start()
        return underway

    def underway(self, name: str) -> Underway | None:
        return self._running.get(name)

    def all(self, name: str, home: LakeHome) -> list[VerificationRecord]:
        """Newest first."""
        return [self._current(name, each) for each in VerificationFiles(home).all()]

    def find(self, name: str, home: LakeHome, number: int) -> VerificationRecord:
        found = VerificationFiles(home).find(number)
        if found is None:
            raise NotFoundError(f"connector {name} has no verification {number}", "the last 20 are kept")
        return self._current(name, found)

    def stop(self, name: str, number: int) -> None:
        """Soon. A conflict if it does not run."""
        underway = self._running.get(name)
        if underway is None or underway.record.id != number:
            raise RequestConflictError(f"verification {number} of {name} does not run", "it has ended")
        underway.wanted = VerificationState.STOPPED

    def close(self, seconds: float = END_SECONDS) -> None:
        """All end soon, as interrupted; what does not end in time is left as after a crash."""
        with self._lock:
            self._is_closed = True
            left = list(self._running.values())
        for each in left:
            each.wanted = VerificationState.INTERRUPTED
        deadline = time.monotonic() + seconds
        for each in left:
            each.ended.wait(max(0.0, deadline - time.monotonic()))

    def _current(self, name: str, record: VerificationRecord) -> VerificationRecord:
        underway = self._running.get(name)
        return underway.record if underway is not None and underway.record.id == record.id else record

    def _require_free(self, name: str) -> None:
        if self._is_closed:
            raise RequestConflictError("the server ends", "ask the next one")
        if name in self._running:
            message = f"verification {self._running[name].record.id} of {name} runs already"
            raise RequestConflictError(message, "wait until it has ended, or stop it")
        if len(self._running) >= self._running_max:
            raise BusyError(f"{self._running_max} verifications run already", "ask again when one has ended")

    def _run(self, underway: Underway, work: Callable[[Underway], dict[str, Any]], home: LakeHome) -> None:
        try:
            ended = replace(underway.record, **work(underway))
            VerificationFiles(home).write(ended)
            underway.record = ended
        except (OSError, TailraceError) as error:
            logger.warning("verification not kept", extra={"lake": str(home.lake), "reason": str(error)})
        finally:
            with self._lock:
                self._running = {name: each for name, each in self._running.items() if each is not underway}
            underway.ended.set()


def _outcome(
    host: ConnectorHost, order: VerificationOrder, home: LakeHome, configuration: Configuration, underway: Underway
) -> dict[str, Any]:
    """The fields of the record that its end changes."""
    found: dict[str, Any] = {"state": VerificationState.DONE}
    try:
        readers_max = configuration.settings.readers_max
        settings = VerifySettings(home.lake, order.tables, order.keys_max, readers_max, is_watching=True)
        source = source_of(configuration.dsn, **configuration.source_options)
        engine = host.own.engine() if host.own.engine is not None else None
        tell = partial(_hear, host, order.name, underway)
        found["report"] = _kept(Verification(settings, source, engine, tell).run())
    except TailraceError as error:
        found = {"state": VerificationState.FAILED, "error": error.message, "hint": error.hint}
    except Exception as error:
        first_line = masked(str(error) or type(error).__name__).strip().splitlines()[0]
        logger.error("verification failed", exc_info=error, extra={"connector": order.name})
        found = {"state": VerificationState.FAILED, "error": f"unexpected: {first_line[:300]}"}
    if underway.wanted is not None and found["state"] is not VerificationState.DONE:
        found = {"state": underway.wanted}
    return found | {"ended_us": _now_us()}


def _hear(host: ConnectorHost, name: str, underway: Underway, event: events.VerifyEvent) -> None:
    """In the thread that verifies, which ends here when it is to."""
    match event:
        case events.WaitsFor(message, hint):
            underway.doing = message if hint is None else f"{message} ({hint})"
        case events.PointTaken(text):
            underway.doing = f"compares lake and source at {text}"
        case events.TasksProgressed(done, tasks):
            underway.tasks_done, underway.tasks = done, tasks
        case events.TableJudged(report) | events.TableCompared(report):
            underway.judged[str(report.table)] = _short_keys(report.to_fields())
    if underway.wanted is not None:
        raise _EndedError("it was ended")
    _require_running(host, name)


def _require_running(host: ConnectorHost, name: str) -> None:
    """A lake that no one brings to the present cannot be compared with it."""
    view = host.view(name)
    if view.life.target is not Target.RUNNING or view.trace is not None:
        raise RequestConflictError(
            f"connector {name} is {view.state}, so its lake does not follow the source",
            f"PUT /connectors/{name}/resume, then ask again",
        )


def _kept(report: LakeReport) -> dict[str, Any]:
    """For JSON; long values of keys are cut."""
    fields = report.to_fields()
    return fields | {"tables": [_short_keys(each) for each in fields["tables"]]}


def _short_keys(table: dict[str, Any]) -> dict[str, Any]:
    for each in table["keys"]:
        each["key"] = {column: _short(value) for column, value in each["key"].items()}
    return table


def _short(value: str | None) -> str | None:
    return value if value is None or len(value) <= KEY_CHARACTERS_MAX else f"{value[:KEY_CHARACTERS_MAX]}…"


def _now_us() -> int:
    return time.time_ns() // 1000
