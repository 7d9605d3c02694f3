"""What becomes of a hosted connector: decided here, without I/O, and done by `hosted`.

    target   what a person wants; stored before anything is done about it
    phase    what there is; lost with the process, and found again from the target alone

                     ┌────────── ended, wanted again ──────────┐
      IDLE ─ start ─ UP ─ pause ─ HELD                          │
       ▲              │ └─ transient error ─ WAITING ─ due ─ UP │
       │              ├─ definite error ─ FAILED ─ restart ─ UP │
       └── ended ── ENDING ◀── stop, restart, another config ───┘

Two things hold after every step, whatever the sequence: there is at most one run, and unless one is ENDING, WAITING or
FAILED, there is one exactly when the target is RUNNING, or HELD when it is PAUSED.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from tailrace.model.backoff import Backoff

BACKOFF = Backoff(1.0, 60.0)


class Target(StrEnum):
    """What a person wants of a connector. Stored. Kafka Connect's names."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """Take nothing from the source and publish nothing. One that has no run gets none."""
    STOPPED = "STOPPED"
    """No run. Offsets may be edited."""


class Phase(StrEnum):
    """What there is of a connector in this process. Never stored."""

    IDLE = "idle"
    """No run. Next: up."""
    UP = "up"
    """A run that is not held. Next: any other but idle."""
    HELD = "held"
    """A run that was told to pause. Next: up or ending; waiting or failed, if it fails."""
    ENDING = "ending"
    """A run that was told to end and has not. Next: idle, or up where one is wanted again."""
    WAITING = "waiting"
    """No run: a transient error ended it, and the next is due later. Next: up or idle."""
    FAILED = "failed"
    """No run: a definite error ended it, and a person has to act. Next: up or idle."""


class RunEnd(Enum):
    """How a run ended."""

    DONE = "done"
    """Because it was told to, or because there was nothing more to do."""
    TRANSIENT = "transient"
    DEFINITE = "definite"


class Action(Enum):
    """What the shell has to do, in this order where there are several."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    END = "end"
    RETRY_LATER = "retry later"
    """Say `RetryDue` after `Life.retry_seconds`."""
    STORE_STOPPED = "store stopped"
    """A run that had nothing more to do: the target is STOPPED from now on."""


@dataclass(frozen=True)
class TargetWanted:
    """A person wants this; it is stored already."""

    target: Target


@dataclass(frozen=True)
class RestartAsked:
    """Begin again: asked for by a person, or because the configuration is another one."""


@dataclass(frozen=True)
class Removed:
    """The connector is no more: end its run for ever."""


@dataclass(frozen=True)
class RunEnded:
    """The run has ended, and its error, if there was one, is this."""

    outcome: RunEnd
    trace: str | None = None


@dataclass(frozen=True)
class RetryDue:
    """It is time for the next run after a transient error."""


@dataclass(frozen=True)
class Progressed:
    """The run has got somewhere: the next error is the first."""


Event = TargetWanted | RestartAsked | Removed | RunEnded | RetryDue | Progressed


@dataclass(frozen=True)
class Life:
    """One connector at one moment."""

    target: Target
    phase: Phase = Phase.IDLE
    failures: int = 0
    """Transient errors in a row."""
    trace: str | None = None
    """What the last run ended with; None while one is up that has got somewhere."""
    is_removed: bool = False

    @property
    def has_run(self) -> bool:
        return self.phase in (Phase.UP, Phase.HELD, Phase.ENDING)

    @property
    def retry_seconds(self) -> float:
        """How long to wait after this many failures."""
        return BACKOFF.seconds(self.failures)


Step = tuple[Life, tuple[Action, ...]]


def step(life: Life, event: Event) -> Step:
    """The life after the event, and what to do now."""
    match event:
        case TargetWanted(target):
            return _wanted(replace(life, target=target))
        case RestartAsked():
            return _restarted(replace(life, failures=0))
        case Removed():
            return _removed(replace(life, is_removed=True))
        case RunEnded(outcome, trace):
            return _ended(life, outcome, trace)
        case RetryDue():
            return _settled(life) if life.phase is Phase.WAITING else (life, ())
        case Progressed():
            return (replace(life, failures=0, trace=None) if life.phase in (Phase.UP, Phase.HELD) else life), ()


def _wanted(life: Life) -> Step:
    match life.phase, life.target:
        case Phase.UP, Target.PAUSED:
            return replace(life, phase=Phase.HELD), (Action.PAUSE,)
        case Phase.HELD, Target.RUNNING:
            return replace(life, phase=Phase.UP), (Action.RESUME,)
        case ((Phase.UP | Phase.HELD), Target.STOPPED):
            return replace(life, phase=Phase.ENDING), (Action.END,)
        case Phase.IDLE, _:
            return _settled(life)
        case (Phase.WAITING, Target.PAUSED | Target.STOPPED) | (Phase.FAILED, Target.STOPPED):
            return replace(life, phase=Phase.IDLE, failures=0, trace=None), ()
    return life, ()


def _restarted(life: Life) -> Step:
    match life.phase:
        case Phase.UP | Phase.HELD:
            return replace(life, phase=Phase.ENDING), (Action.END,)
        case Phase.ENDING:
            return life, ()
    return _settled(life)


def _removed(life: Life) -> Step:
    if life.phase in (Phase.UP, Phase.HELD):
        return replace(life, phase=Phase.ENDING), (Action.END,)
    return (life, ()) if life.phase is Phase.ENDING else (replace(life, phase=Phase.IDLE), ())


def _ended(life: Life, outcome: RunEnd, trace: str | None) -> Step:
    if not life.has_run:
        return life, ()
    if life.phase is Phase.ENDING:
        return _settled(life)
    match outcome:
        case RunEnd.TRANSIENT if life.target is Target.RUNNING:
            waiting = replace(life, phase=Phase.WAITING, failures=life.failures + 1, trace=trace)
            return waiting, (Action.RETRY_LATER,)
        case RunEnd.TRANSIENT:
            # One that is held needs no run; resumed, it gets one.
            return replace(life, phase=Phase.IDLE, trace=None), ()
        case RunEnd.DEFINITE:
            return replace(life, phase=Phase.FAILED, trace=trace), ()
        case RunEnd.DONE:
            return replace(life, target=Target.STOPPED, phase=Phase.IDLE, trace=None), (Action.STORE_STOPPED,)


def _settled(life: Life) -> Step:
    """Without a run: one is started where it is wanted."""
    if life.target is Target.RUNNING and not life.is_removed:
        return replace(life, phase=Phase.UP), (Action.START,)
    return replace(life, phase=Phase.IDLE, failures=0, trace=None), ()
