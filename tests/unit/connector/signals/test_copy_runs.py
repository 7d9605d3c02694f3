"""Runs of copies, put together from steps and signals."""

from __future__ import annotations

from tailrace.connector.signals.runs import CopyRun, runs_of
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import Signal, SignalRecord, SignalState

DATA = '{"data-collections": ["public.a"], "type": "blocking"}'


def step(
    step: CopyStep, time_us: int, signal: str | None = None, table: str | None = None, rows: int = 0
) -> Notification:
    return Notification(step, time_us, signal, table, rows, chunks=rows // 10, held_seconds_max=rows / 100)


def record(id_: str, state: SignalState, type_: str = "execute-snapshot", at: int = 1) -> SignalRecord:
    return SignalRecord(Signal(id_, type_, DATA), "file", state, at, at + 100, f"{id_} became {state}")


def shown(run: CopyRun) -> tuple[str | None, str, int, int | None, int | None, dict[str, str]]:
    tables = {name: str(each.last.step) for name, each in run.tables.items()}
    return run.id, str(run.state), run.began_us, run.ended_us, run.rows, tables


def test_a_signal_and_the_copies_that_no_one_asked_for_are_runs_of_their_own() -> None:
    steps = [
        step(CopyStep.STARTED, 10),
        step(CopyStep.IN_PROGRESS, 11, table="public.first", rows=30),
        step(CopyStep.STARTED, 12, "s"),
        step(CopyStep.IN_PROGRESS, 13, "s", "public.a", 20),
        step(CopyStep.TABLE_COMPLETED, 14, table="public.first", rows=40),
        step(CopyStep.TABLE_COMPLETED, 15, table="public.second"),
        step(CopyStep.COMPLETED, 16),
        step(CopyStep.TABLE_COMPLETED, 17, "s", "public.a", 50),
        step(CopyStep.COMPLETED, 18, "s"),
        step(CopyStep.STARTED, 20, table="public.late"),
    ]
    first, asked, late = runs_of(steps, [record("s", SignalState.DONE, at=12)])
    done = {"public.first": "table-completed", "public.second": "table-completed"}
    assert shown(first) == (None, "done", 10, 16, 40, done)
    assert first.tables["public.second"].rows is None, "it was made at once: nothing was counted"
    assert shown(asked) == ("s", "done", 12, 112, 50, {"public.a": "table-completed"})
    assert (asked.kind, asked.result) == ("blocking", "s became done")
    assert shown(late) == (None, "running", 20, None, None, {"public.late": "started"})
    late = runs_of(steps, [], are_unasked_open=False)[-1]
    assert shown(late)[:4] == (None, "done", 20, 20), "a signal took it over"


def test_what_another_signal_stopped_has_ended_in_the_run_that_it_was_part_of() -> None:
    steps = [
        step(CopyStep.STARTED, 10, "s"),
        step(CopyStep.IN_PROGRESS, 11, "s", "public.a", 20),
        step(CopyStep.ABORTED, 12, "stop", "public.a"),
        step(CopyStep.PAUSED, 13, "pause"),
    ]
    signals = [record("s", SignalState.STOPPED, at=9), record("stop", SignalState.DONE, "stop-snapshot")]
    for known in (signals, signals[:1]):
        (run,) = runs_of(steps, known)
        assert shown(run) == ("s", "stopped", 10, 109, None, {"public.a": "aborted"})


def test_a_signal_of_which_nothing_was_told_is_a_run_and_so_is_one_that_the_book_forgot() -> None:
    signals = [record("waits", SignalState.WAITING, at=30), record("no", SignalState.REJECTED, at=31)]
    steps = [
        step(CopyStep.STARTED, 5, "old"),
        step(CopyStep.ABORTED, 6, "old", "public.a"),
        step(CopyStep.TABLE_COMPLETED, 7, "old", "public.b"),
        step(CopyStep.COMPLETED, 8, "old"),
        step(CopyStep.SKIPPED, 9, "odd"),
    ]
    found = [shown(run) for run in runs_of(steps, signals)]
    assert [each[:4] for each in found] == [
        ("old", "failed", 5, 8),
        ("odd", "rejected", 9, 9),
        ("waits", "waiting", 30, None),
        ("no", "rejected", 31, 131),
    ]
