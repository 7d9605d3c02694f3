"""The last that every connector told, and counts of what it told: for metrics, health and progress.

Kept in memory: after a restart of the server counts begin at 0 again, as Prometheus expects of a counter.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tailrace.connector.events import (
    CopyNotified,
    CutPublished,
    SnapshotProgressed,
    SourceRetained,
    StateChanged,
    StreamProgressed,
    TableChanged,
    TroubleChanged,
)
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableState
from tailrace.server.supervisor.hub import Hub, LifeChanged, Told
from tailrace.server.supervisor.lifecycle import Phase

PUBLISH_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, math.inf)
"""The histogram's bounds."""
FRESH_SECONDS = 5.0
"""What was told of progress longer ago says nothing about now."""


@dataclass(frozen=True)
class Sample:
    """What figures over time are made of."""

    progress: StreamProgressed
    transactions: int
    """Published since the server's start."""
    newest: CutPublished | None
    """The newest cut."""


@dataclass(frozen=True)
class Struggle:
    """What a connector waits for, or tries again."""

    message: str
    hint: str | None
    since_us: int
    """When it was first told, in microseconds since 1970."""


@dataclass(frozen=True)
class Stage:
    """What there is of a connector, and since when."""

    phase: Phase
    since_us: int


@dataclass(frozen=True)
class Publishes:
    """What publishing took."""

    counts: Counter[float] = field(default_factory=Counter)
    """How many took no longer than each of `PUBLISH_SECONDS`, and longer than the one before."""
    seconds: float = 0.0
    """All of them."""

    def plus(self, seconds: float) -> Publishes:
        bound = next(bound for bound in PUBLISH_SECONDS if seconds <= bound)
        return Publishes(self.counts + Counter([bound]), self.seconds + seconds)


@dataclass
class Notes:
    """What is known of one connector."""

    progress: StreamProgressed | None = None
    trouble: Struggle | None = None
    copying: tuple[TableProgress, ...] = ()
    errors: Counter[str] = field(default_factory=Counter)
    """By kind: `transient` ends of runs, after which they are started again, `definite` ends, and `table` errors."""
    transactions: int = 0
    """Published since the server's start."""
    notified: Counter[str] = field(default_factory=Counter)
    """Steps of copies."""
    publishes: Publishes = field(default_factory=Publishes)
    moved_at: float | None = None
    """When it was last seen to get further, to have nothing to do, or to begin; None where it is held or has no run."""
    stage: Stage | None = None
    counts_bytes: bool = False
    """This run's source has once said how much of it the log lacks: one that no longer says so cannot be asked."""
    newest: CutPublished | None = None
    """The newest cut."""
    retained: SourceRetained | None = None
    """What this run's source keeps for it."""

    @property
    def newest_commit_us(self) -> int:
        """When the source committed what the newest published cut shows; 0 if unknown."""
        cuts = [told.cut for told in (self.progress, self.newest) if told is not None]
        return max(cuts, key=lambda cut: cut.seq).position.time_us if cuts else 0

    @property
    def is_held(self) -> bool:
        return self.stage is not None and self.stage.phase is Phase.HELD


class Board:
    """Any thread."""

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._notes: dict[str, Notes] = {}
        self._progressed_at: dict[str, float] = {}
        """When each one told of its progress last."""
        hub.subscribe(self.hear)

    def of(self, name: str) -> Notes:
        """As they are now. What a connector told is never changed, so it is not copied: it may have thousands of
        tables."""
        with self._lock:
            notes = self._notes.get(name)
            if notes is None:
                return Notes()
            return replace(notes, errors=notes.errors.copy(), notified=notes.notified.copy())

    def samples(self) -> dict[str, Sample]:
        """What each connector that told of its progress in the last seconds is at."""
        with self._lock:
            since = self._clock() - FRESH_SECONDS
            return {
                name: Sample(notes.progress, notes.transactions, notes.newest)
                for name, notes in self._notes.items()
                if notes.progress is not None and self._progressed_at.get(name, -math.inf) >= since
            }

    def now(self) -> float:
        return self._clock()

    def hear(self, name: str, told: Told) -> None:
        with self._lock:
            notes = self._notes.setdefault(name, Notes())
            match told:
                case LifeChanged(life) if life.is_removed and not life.has_run:
                    del self._notes[name]
                    self._progressed_at.pop(name, None)
                case LifeChanged():
                    self._note_life(notes, told)
                case StreamProgressed():
                    self._note_progress(notes, told)
                    self._progressed_at[name] = self._clock()
                case CutPublished():
                    self._note_cut(notes, told)
                case StateChanged():
                    self._note_move(notes)
                case SnapshotProgressed(tables):
                    self._note_copying(notes, tuple(tables))
                case SourceRetained():
                    notes.retained = told
                case TroubleChanged():
                    notes.trouble = _struggle(notes.trouble, told)
                case TableChanged(table, record):
                    _note_table(notes, table, record.state)
                case CopyNotified(notification):
                    notes.notified[notification.step.value] += 1

    def _note_life(self, notes: Notes, told: LifeChanged) -> None:
        match told.life.phase:
            case Phase.WAITING:
                notes.errors["transient"] += 1
            case Phase.FAILED:
                notes.errors["definite"] += 1
        if notes.stage is None or notes.stage.phase is not told.life.phase:
            notes.stage = Stage(told.life.phase, _now_us())
        if not told.life.has_run:
            notes.progress, notes.trouble, notes.copying, notes.moved_at = None, None, (), None
            notes.counts_bytes, notes.retained = False, None
        else:
            self._note_move(notes)

    def _note_move(self, notes: Notes) -> None:
        """What is held need not move, however long; it has from its resumption on to do so."""
        notes.moved_at = None if notes.is_held else self._clock()

    def _note_progress(self, notes: Notes, told: StreamProgressed) -> None:
        notes.counts_bytes = notes.counts_bytes or told.lag_bytes is not None
        was = notes.progress
        if was is None or _has_moved(notes, was, told):
            self._note_move(notes)
        notes.progress = told

    def _note_copying(self, notes: Notes, tables: tuple[TableProgress, ...]) -> None:
        """Before the first cut, a copy is all that can get further."""
        if notes.progress is None and _done(tables) != _done(notes.copying):
            self._note_move(notes)
        notes.copying = tables

    def _note_cut(self, notes: Notes, told: CutPublished) -> None:
        if notes.newest is not None:
            notes.transactions += max(0, told.cut.seq - notes.newest.cut.seq)
        notes.newest = told
        self._note_move(notes)
        notes.publishes = notes.publishes.plus(told.seconds)


def _struggle(was: Struggle | None, told: TroubleChanged) -> Struggle | None:
    """The same trouble lasts since it was first told."""
    if told.message is None:
        return None
    since_us = was.since_us if was is not None and was.message == told.message else _now_us()
    return Struggle(told.message, told.hint, since_us)


def _now_us() -> int:
    return time.time_ns() // 1000


def _note_table(notes: Notes, table: TableId, state: TableState) -> None:
    """How far its copy is counts until it has ended; a paused one tells nothing meanwhile."""
    if state is TableState.ERRORED:
        notes.errors["table"] += 1
    if state not in COPYING:
        notes.copying = tuple(each for each in notes.copying if each.table != table)


def _has_moved(notes: Notes, was: StreamProgressed, now: StreamProgressed) -> bool:
    """Whether it got further, or has nothing to do. Where capture stands still, what it lacks only grows."""
    if (was.log_seq, was.cut.seq) != (now.log_seq, now.cut.seq):
        return True
    if now.cut.seq < now.log_seq:
        return False
    if now.lag_bytes is None:
        # A source that does not count bytes has nothing more for us, as far as anyone can tell.
        return not notes.counts_bytes and notes.trouble is None
    return now.lag_bytes == 0 or now.lag_bytes < (was.lag_bytes or 0)


def _done(tables: tuple[TableProgress, ...]) -> list[tuple[str, int]]:
    return [(str(each.table), each.chunks_done) for each in tables]
