"""A lake's run, seen from outside: another process has it, or none has.

Looked at twice a second while someone watches: the lock says whether there is a run, `state.json` how it is, its
messages what happens to it, the head of the log how far the log is. Only what has changed is read. What the files do
not say is not told: how many bytes the source is ahead, for one, only the run itself knows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tailrace.connector.connector import Status
from tailrace.connector.events import (
    CopyNotified,
    SnapshotProgressed,
    StateChanged,
    TableChanged,
    TroubleChanged,
)
from tailrace.connector.status import stored_progress
from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.lake_host.log_pace import LogPace
from tailrace.server.lake_host.messages import MessageTail, Said
from tailrace.server.lake_host.newest_cut import CutWatch
from tailrace.server.lake_host.standing import NO_RUN, RunStanding, standing_of
from tailrace.server.supervisor.hub import LifeChanged, Told
from tailrace.server.supervisor.lifecycle import Life, Target
from tailrace.storage.files import read_json

LOOK_SECONDS = 0.5
ALONE_SECONDS = 1.0
"""Between two looks, while someone listens and while no one does: figures over time have a sample a second."""
COPYING_SECONDS, SLOW_SECONDS = 2.0, 10.0
"""Between two looks at what costs more than a glance, while tables are copied and while none is."""
RULE = "this console looks at the lake from outside: its run belongs to whoever started tailrace sync"
REFUSALS = dict.fromkeys(("pause", "resume", "stop", "restart"), RULE)

logger = logging.getLogger(__name__)


class OutsideRun:
    """A `LakeRun`. One thread looks, any thread asks."""

    refusals: Mapping[str, str] = REFUSALS

    def __init__(self, home: LakeHome, tell: Callable[[Told], None]) -> None:
        self._home = home
        self._tell = tell
        self._standing = RunStanding(NO_RUN, None)
        self._status: Status | None = None
        self._messages = MessageTail(home.runs.messages)
        self._pace = LogPace(home)
        self._cuts = CutWatch(home)
        self._slow_due = 0.0
        self._fault: str | None = None
        """Why the last look failed."""

    @property
    def life(self) -> Life:
        return self._standing.life

    @property
    def status(self) -> Status | None:
        return self._status

    def want(self, target: Target) -> None:
        raise RequestConflictError(*self._rule())

    def restart(self, *, only_failed: bool) -> None:
        raise RequestConflictError(*self._rule())

    def _rule(self) -> tuple[str, str]:
        holder = self._home.holder()
        if holder is None:
            return "no process runs this lake's connector", "start it: tailrace sync DSN LAKE"
        return f"process {holder} runs this lake's connector", f"end it with Ctrl-C there, or kill -INT {holder}"

    @contextmanager
    def kept_stopped(self) -> Iterator[None]:
        """Whoever edits takes the lake's lock too, so a run that begins meanwhile does not begin before the edit."""
        holder = self._home.holder()
        if holder is not None:
            raise RequestError(
                "Connectors must be in the STOPPED state before their offsets can be modified",
                f"process {holder} has the lake: end it with Ctrl-C there, or kill -INT {holder}",
            )
        yield

    def watch(self, ending: threading.Event, is_heard: Callable[[], bool]) -> None:
        """Look until the end."""
        while not ending.wait(LOOK_SECONDS if is_heard() else ALONE_SECONDS):
            self.look()

    def begin(self) -> None:
        """The first look. Of what was said before, only a trouble of the run that is there still counts."""
        with self._telling_faults():
            began = self._began()
            said = [each for each in self._messages.read() if each.kind == "TroubleChanged" and each.time >= began]
            self._look(said[-1:])

    def look(self) -> None:
        """Tell what is new. What cannot be read now is looked at again the next time."""
        with self._telling_faults():
            self._look(self._messages.read())

    def _began(self) -> float:
        """When the lake's lock was last taken, about."""
        with suppress(FileNotFoundError):
            return (self._home.folder / "lock").stat().st_mtime - 1
        return 0.0

    @contextmanager
    def _telling_faults(self) -> Iterator[None]:
        try:
            yield
            self._fault = None
        except (TailraceError, OSError, ValueError, KeyError, TypeError) as error:
            self._pace.forget()
            if str(error) != self._fault:
                self._fault = str(error)
                logger.warning("the lake cannot be looked at", extra={"reason": str(error)})

    def _look(self, said: Sequence[Said]) -> None:
        self._note_standing(standing_of(self._home.holder(), read_json(self._home.runs.state)))
        is_due = time.monotonic() >= self._slow_due
        published = self._cuts.look(said, is_due=is_due)
        if published is not None:
            self._tell(published)
        self._tell_said(said)
        if is_due or any(each.kind in ("TableChanged", "CopyNotified") for each in said):
            self._tell_copies()
        self._tell_progress()

    def _note_standing(self, standing: RunStanding) -> None:
        was, self._standing = self._standing, standing
        if standing == was:
            return
        state = standing.state
        self._status = None if state is None else Status(state, None, self._cuts.cut, None, None)
        if standing.life != was.life:
            self._tell(LifeChanged(standing.life))
        if state is not None and state != was.state:
            self._tell(StateChanged(state))
        if standing.ended_by is not None:
            self._tell(TroubleChanged(standing.ended_by, "nothing is lost; start it again: tailrace sync DSN LAKE"))
        elif was.ended_by is not None:
            self._tell(TroubleChanged(None))

    def _tell_progress(self) -> None:
        cut, state = self._cuts.cut, self._standing.state
        progress = self._pace.measure(cut) if cut is not None and state is not None else None
        if progress is not None and state is not None:
            self._status = Status(state, None, cut, progress, None)
            self._tell(progress)

    def _tell_said(self, said: Sequence[Said]) -> None:
        changed: list[TableId] = []
        for each in said:
            match each.kind:
                case "TroubleChanged" if self._standing.state is not None:
                    self._tell(TroubleChanged(each.fields["message"], each.fields["hint"]))
                case "TableChanged":
                    changed.append(TableId(**each.fields["table"]))
                case "CopyNotified":
                    fields = dict(each.fields["notification"])
                    self._tell(CopyNotified(Notification(CopyStep(fields.pop("step")), **fields)))
        records = self._home.tables.load() if changed else {}
        for table in dict.fromkeys(changed):
            if table in records:
                self._tell(TableChanged(table, records[table]))

    def _tell_copies(self) -> None:
        """How far copies by windows are, as their tables say it; of a first copy all at once nothing is stored."""
        records = {table: each for table, each in self._home.tables.load().items() if each.state in COPYING}
        self._slow_due = time.monotonic() + (COPYING_SECONDS if records else SLOW_SECONDS)
        found = stored_progress(self._home, records) if records and self._standing.state is not None else {}
        if found:
            self._tell(SnapshotProgressed(list(found.values())))
