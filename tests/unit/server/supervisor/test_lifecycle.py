"""What becomes of a connector: any sequence of events keeps what the module promises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.server.supervisor.lifecycle import (
    BACKOFF,
    Action,
    Event,
    Life,
    Phase,
    Progressed,
    Removed,
    RestartAsked,
    RetryDue,
    RunEnd,
    RunEnded,
    Target,
    TargetWanted,
    step,
)

RUNNING, PAUSED, STOPPED = (TargetWanted(target) for target in Target)
TRANSIENT, DEFINITE = RunEnded(RunEnd.TRANSIENT, "lost"), RunEnded(RunEnd.DEFINITE, "wrong password")


class Shell:
    """Does what it is told, and counts runs by itself: the oracle."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.runs = 0
        self.starts = 0
        self.is_held = self.is_ending = self.is_timed = False

    def hear(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            if not self.runs:
                return
            self.runs, self.is_held, self.is_ending = 0, False, False
        if isinstance(event, RetryDue):
            if not self.is_timed:
                return
            self.is_timed = False
        self.life, actions = step(self.life, event)
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Action.START:
                assert not self.runs, "two runs at once"
                self.runs, self.starts = 1, self.starts + 1
            case Action.PAUSE:
                assert self.runs
                assert not self.is_held
                self.is_held = True
            case Action.RESUME:
                assert self.runs
                assert self.is_held
                self.is_held = False
            case Action.END:
                assert self.runs
                assert not self.is_ending, "told to end twice"
                self.is_ending = True
            case Action.RETRY_LATER:
                assert 1 <= self.life.retry_seconds <= BACKOFF.most_seconds
                self.is_timed = True
            case Action.STORE_STOPPED:
                assert self.life.target is Target.STOPPED


def after(*events: Event, target: Target = Target.STOPPED) -> Shell:
    shell = Shell(Life(target))
    for event in events:
        shell.hear(event)
    return shell


events = st.sampled_from(
    [RUNNING, PAUSED, STOPPED, RestartAsked(), RetryDue(), Progressed(), TRANSIENT, DEFINITE, RunEnded(RunEnd.DONE)]
)


@given(st.sampled_from(Target), st.lists(events, max_size=40))
def test_any_sequence_leaves_the_run_that_is_wanted_or_says_why_there_is_none(
    target: Target, sequence: list[Event]
) -> None:
    shell = after(TargetWanted(target), *sequence, target=target)
    life = shell.life
    assert life.has_run == bool(shell.runs)
    assert (life.phase is Phase.ENDING) == shell.is_ending
    assert (life.phase is Phase.FAILED) <= (life.trace is not None)
    if life.phase is Phase.WAITING:
        assert shell.is_timed
        assert life.target is Target.RUNNING
    if life.phase is Phase.IDLE:
        assert life.target is not Target.RUNNING
    if life.phase in (Phase.UP, Phase.HELD):
        assert life.target is (Target.PAUSED if shell.is_held else Target.RUNNING)


@given(st.sampled_from(Target), st.lists(events, max_size=20))
def test_whatever_happened_a_connector_that_is_wanted_and_begun_again_runs(
    target: Target, sequence: list[Event]
) -> None:
    shell = after(TargetWanted(target), *sequence, RUNNING, RestartAsked(), target=target)
    shell.hear(RunEnded(RunEnd.DONE))
    if shell.life.phase is Phase.IDLE:
        # The run had ended by itself at that moment.
        shell.hear(RUNNING)
    assert shell.life.phase is Phase.UP
    assert shell.runs == 1


@given(st.lists(events, max_size=20), st.lists(events, max_size=10))
def test_one_that_is_removed_ends_and_never_starts_again(before: list[Event], later: list[Event]) -> None:
    shell = after(RUNNING, *before, Removed())
    starts = shell.starts
    for event in [RunEnded(RunEnd.DONE), RetryDue(), *later, RunEnded(RunEnd.DONE)]:
        shell.hear(event)
    assert not shell.runs
    assert shell.starts == starts


def test_transient_errors_are_tried_again_ever_later_and_progress_forgets_them() -> None:
    shell, waits = after(RUNNING), []
    for _ in range(9):
        shell.hear(TRANSIENT)
        assert shell.life.trace == "lost"
        waits.append(shell.life.retry_seconds)
        shell.hear(RetryDue())
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    shell.hear(Progressed())
    assert shell.life.trace is None
    shell.hear(TRANSIENT)
    assert shell.life.retry_seconds == 1


def test_a_definite_error_stays_until_a_restart() -> None:
    shell = after(RUNNING, DEFINITE, RUNNING, PAUSED, RUNNING, RetryDue())
    assert (shell.life.phase, shell.life.trace) == (Phase.FAILED, "wrong password")
    shell.hear(RestartAsked())
    assert shell.life.phase is Phase.UP


def test_a_failed_one_that_is_stopped_is_stopped_and_starts_when_it_is_resumed() -> None:
    shell = after(RUNNING, DEFINITE, STOPPED)
    assert (shell.life.phase, shell.life.trace) == (Phase.IDLE, None)
    shell.hear(RUNNING)
    assert shell.runs == 1


def test_a_stop_and_a_resume_before_the_run_has_ended_make_one_run_after_the_other() -> None:
    shell = after(RUNNING, STOPPED, RUNNING)
    assert (shell.life.phase, shell.starts) == (Phase.ENDING, 1)
    shell.hear(RunEnded(RunEnd.DONE))
    assert (shell.life.phase, shell.starts) == (Phase.UP, 2)


def test_one_that_had_nothing_more_to_do_is_stopped_from_then_on() -> None:
    shell = after(RUNNING, RunEnded(RunEnd.DONE))
    assert (shell.life.target, shell.life.phase) == (Target.STOPPED, Phase.IDLE)
