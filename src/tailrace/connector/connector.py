"""Connector: one source and one lake, driven from outside by one object.

The command line, the server and the tests all drive this; nothing in it prints. It runs in a thread of its own and
tells what happens as events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tailrace.connector.control import RunControl
from tailrace.connector.events import (
    ConnectorState,
    CopyNotified,
    CutPublished,
    Event,
    StateChanged,
    StreamProgressed,
    TroubleChanged,
    log_event,
)
from tailrace.connector.messages import messages_to, own
from tailrace.connector.run import run
from tailrace.connector.signals.sender import send_resync
from tailrace.engine.door import Engine
from tailrace.errors import TailraceError
from tailrace.hidden import masked
from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.storage.files import write_json


@dataclass(frozen=True)
class Status:
    """A connector at one moment."""

    state: ConnectorState
    reason: str | None
    """Why it failed."""
    cut: PublishedCut | None
    """The newest cut of this run."""
    progress: StreamProgressed | None
    trouble: str | None
    """What it struggles with and tries again."""


class Connector:
    """Copies a source into a lake and keeps the copy exact.

    A run survives any crash: the same connector started again continues. One that has ended can be started again.
    """

    def __init__(self, settings: ConnectorSettings, source: Source, spark: SparkSession | Engine | None = None) -> None:
        """Works in `spark`, or the session that this process has, and leaves it running; else starts one and stops it.
        An engine may be several connectors'."""
        self._settings = settings
        self._source = source
        self._spark = spark
        self._listeners: list[Callable[[Event], None]] = []
        self._telling = threading.RLock()
        self._control = RunControl()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._status = Status(ConnectorState.STOPPED, None, None, None, None)

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Called with every event from now on, one after another, by threads of the connector."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Returns at once; `wait` tells how it ended. Does nothing while it runs."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._control, self._error = RunControl(), None
        # Before the thread says so: who asks at once must not take it for one that has ended.
        self._status = Status(ConnectorState.STARTING, None, self._status.cut, None, None)
        self._thread = threading.Thread(target=self._run, name="connector", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the batch in hand. Any thread, any signal handler."""
        self._control.stop.set()

    def pause(self) -> None:
        """Take nothing from the source and publish nothing, until resumed. A copy under way ends first."""
        self._control.pause()

    def resume(self) -> None:
        self._control.resume()

    def resync(self, table: TableId) -> str:
        """Copy one table again beside the others, in this run or the next; returns the id of the signal that says so.
        Durable when this returns. Any thread."""
        return send_resync(self._settings.lake, table)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the run has ended, or for so long; True when it has. Raises the error that ended it."""
        if self._thread is not None:
            self._thread.join(timeout_seconds)
            if self._thread.is_alive():
                return False
        if self._error is not None:
            raise self._error
        return True

    def status(self) -> Status:
        return self._status

    def tables(self) -> dict[TableId, TableRecord]:
        """Every table's state."""
        return LakeHome(self._settings.lake).tables.load()

    def _run(self) -> None:
        try:
            own(LakeHome(self._settings.lake).runs.messages)
            self._tell(StateChanged(ConnectorState.STARTING))
            run(self._settings, self._source, self._control, self._tell, self._spark)
            self._tell_end(StateChanged(ConnectorState.STOPPED))
        except BaseException as error:
            self._error = error
            reason = error.message if isinstance(error, TailraceError) else masked(str(error)) or type(error).__name__
            self._tell_end(StateChanged(ConnectorState.FAILED, reason))

    def _tell_end(self, event: StateChanged) -> None:
        """The lake's messages have it too, if the run had the lake: whoever looks later finds how it ended."""
        home = self._control.home
        with nullcontext() if home is None else messages_to(home.runs.messages):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        with self._telling:
            self._note(event)
            log_event(event)
            for listener in self._listeners:
                listener(event)

    def _note(self, event: Event) -> None:
        was = self._status
        match event:
            case StateChanged(state, reason):
                self._status = Status(state, reason, was.cut, was.progress, was.trouble)
                self._store_state()
            case CutPublished(cut):
                self._status = Status(was.state, was.reason, cut, was.progress, was.trouble)
            case StreamProgressed():
                self._status = Status(was.state, was.reason, was.cut or event.cut, event, was.trouble)
            case CopyNotified(notification) if self._control.home is not None:
                with suppress(OSError):
                    self._control.home.signals.notifications.append(notification)
            case TroubleChanged(message, _):
                self._status = Status(was.state, was.reason, was.cut, was.progress, message)

    def _store_state(self) -> None:
        """For those who look from outside. A lake that another connector holds is not touched."""
        home = self._control.home
        if home is not None:
            # A disk that is full must not keep a run from beginning, or from ending.
            with suppress(OSError):
                write_json(home.runs.state, {"state": self._status.state, "reason": self._status.reason})
