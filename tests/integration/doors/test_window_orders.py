"""What signals ask for while copies run: copies stopped in the middle, and sources that take long to answer."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.disturbed import DisturbedSource
from tests.doors.script import Insert, Script, Update
from tests.postgres import wait_until
from tests.running import Running, running, sync_once

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.connector.status import stored_progress
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes
from tailrace.source import kinds

ORDERS, TABLE = "shop.orders", TableId("shop", "orders")
ROWS = 30
ALL = {"data-collections": [ORDERS]}
SOME = {**ALL, "additional-condition": 'note = "first"'}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "int", "note": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(ROWS)])
    return script


@pytest.fixture
def source(script: Script) -> DisturbedSource:
    return DisturbedSource(str(script.path))


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    """With two chunks of five rows in each window."""
    return ConnectorSettings(
        tmp_path / "lake",
        publish_every_seconds=0.05,
        look_at_tables_seconds=0.1,
        snapshot_mode=SnapshotMode.INCREMENTAL,
        window_rows=5,
        readers_max=1,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )


def rows(lake: Path) -> list[dict[str, object]]:
    return tailrace.arrow(lake, ORDERS).sort_by("id").to_pylist()


def state(lake: Path, id_: str) -> SignalState | None:
    return next((each.state for each in lake_signals(LakeHome(lake)) if each.signal.id == id_), None)


def steps(lake: Path) -> list[CopyStep]:
    told = LakeHome(lake).signals.notifications.all()
    return [each.step for each in told if each.signal is not None and each.step is not CopyStep.IN_PROGRESS]


def stop_at(run: Running, number: int) -> Callable[[TableId, str, int], None]:
    """When so many chunks have been read."""

    def disturb(table: TableId, what: str, count: int) -> None:
        if (what, count) == ("read", number):
            tailrace.signal(run.lake, "stop-snapshot", id="stop")
            wait_until(lambda: state(run.lake, "stop") is SignalState.DONE, 20)

    return disturb


@pytest.mark.parametrize("number", [2, 4, 6], ids=["first window", "second window", "last window"])
def test_a_copy_of_some_rows_that_is_stopped_leaves_the_table_whole_and_live(
    script: Script, source: DisturbedSource, settings: ConnectorSettings, number: int
) -> None:
    with running(settings, source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)
        # The first chunk is read to see whether the condition can be used.
        source.disturbance.begin(stop_at(run, 1 + number))
        tailrace.signal(run.lake, "execute-snapshot", SOME, id="some")
        wait_until(lambda: state(run.lake, "some") is SignalState.STOPPED, 30)
        script.transaction([Update(ORDERS, (n,), {"note": "later"}) for n in range(0, ROWS, 3)])
        run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        assert rows(run.lake) == script.state(ORDERS)
        assert source.disturbance.done[TABLE, "read"] <= number + 3
        assert steps(run.lake) == [CopyStep.STARTED, CopyStep.ABORTED]


def test_a_copy_of_some_rows_that_is_stopped_before_it_began_leaves_the_table_as_it_is(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    once = replace(settings, once=True)
    assert sync_once(once, source) == {ORDERS: TableState.LIVE}
    tailrace.signal(settings.lake, "pause-snapshot", id="pause")
    tailrace.signal(settings.lake, "execute-snapshot", SOME, id="some")
    assert sync_once(once, source) == {ORDERS: TableState.RESYNCING}
    assert state(settings.lake, "some") is SignalState.PAUSED
    tailrace.signal(settings.lake, "stop-snapshot", ALL, id="stop")
    script.transaction([Update(ORDERS, (n,), {"note": "later"}) for n in range(0, ROWS, 3)])
    source.disturbance.begin(lambda table, what, number: None)
    assert sync_once(once, source) == {ORDERS: TableState.LIVE}
    assert state(settings.lake, "some") is SignalState.STOPPED
    assert rows(settings.lake) == script.state(ORDERS)
    assert source.disturbance.done[TABLE, "read"] == 0
    assert steps(settings.lake) == [CopyStep.PAUSED, CopyStep.STARTED, CopyStep.ABORTED]


def test_a_stop_does_not_mean_what_is_asked_for_after_it(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    """Also where no one ran meanwhile, and all of it is taken up together."""
    once = replace(settings, once=True)
    assert sync_once(once, source) == {ORDERS: TableState.LIVE}
    tailrace.signal(settings.lake, "execute-snapshot", ALL, id="before")
    tailrace.signal(settings.lake, "stop-snapshot", id="stop")
    tailrace.signal(settings.lake, "execute-snapshot", ALL, id="after")
    assert sync_once(once, source) == {ORDERS: TableState.LIVE}
    ended = [state(settings.lake, id_) for id_ in ("before", "stop", "after")]
    assert ended == [SignalState.STOPPED, SignalState.DONE, SignalState.DONE]
    assert rows(settings.lake) == script.state(ORDERS)


def test_a_copy_of_all_rows_that_is_stopped_in_the_middle_is_an_error_until_it_is_copied_again(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    with running(settings, source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)
        source.disturbance.begin(stop_at(run, 4))
        tailrace.signal(run.lake, "execute-snapshot", ALL, id="all")
        run.wait_for_state(ORDERS, TableState.ERRORED)
        assert state(run.lake, "all") is SignalState.STOPPED
        tailrace.signal(run.lake, "execute-snapshot", ALL, id="again")
        wait_until(lambda: state(run.lake, "again") is SignalState.DONE, 30)
        run.catch_up()
        assert rows(run.lake) == script.state(ORDERS)


def test_a_source_that_takes_long_to_say_whether_a_signal_can_be_carried_out_holds_up_no_one(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    has_answered = threading.Event()
    with running(settings, source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)

        def disturb(table: TableId, what: str, number: int) -> None:
            if (what, number) == ("plan", 1):
                has_answered.wait(60)

        source.disturbance.begin(disturb)
        tailrace.signal(run.lake, "execute-snapshot", SOME, id="some")
        wait_until(lambda: source.disturbance.done[TABLE, "plan"] > 0, 30)
        script.transaction([Update(ORDERS, (1,), {"note": "meanwhile"})])
        run.catch_up(20)
        assert rows(run.lake)[1] == {"id": 1, "note": "meanwhile"}
        tailrace.signal(run.lake, "stop-snapshot", id="stop")
        wait_until(lambda: state(run.lake, "stop") is SignalState.DONE, 30)
        has_answered.set()
        assert state(run.lake, "some") is SignalState.STOPPED
        assert run.connector.tables()[TABLE].copy == 1


def test_what_matches_nothing_is_skipped_and_told_so(source: DisturbedSource, settings: ConnectorSettings) -> None:
    once = replace(settings, once=True)
    sync_once(once, source)
    tailrace.signal(settings.lake, "execute-snapshot", {"data-collections": ["shop.none"]}, id="none")
    tailrace.signal(settings.lake, "pause-snapshot", id="pause")
    tailrace.signal(settings.lake, "pause-snapshot", {"data-collections": ["shop.nil", ORDERS]}, id="some")
    tailrace.signal(settings.lake, "stop-snapshot", {"data-collections": ["shop.nil"]}, id="stop")
    tailrace.signal(settings.lake, "resume-snapshot", id="resume")
    sync_once(once, source)
    ended = {each.signal.id: (each.state, each.result) for each in lake_signals(LakeHome(settings.lake))}
    assert ended == {
        "none": (SignalState.REJECTED, "nothing was copied: no table matches shop.none"),
        "pause": (SignalState.DONE, "copies are paused"),
        "some": (SignalState.DONE, "copies are paused; no table matches shop.nil"),
        "stop": (SignalState.REJECTED, "nothing was done: no table matches shop.nil"),
        "resume": (SignalState.DONE, "copies continue"),
    }
    told = [(each.signal, each.step) for each in LakeHome(settings.lake).signals.notifications.all() if each.signal]
    assert sorted(told) == [
        ("none", CopyStep.SKIPPED),
        ("pause", CopyStep.PAUSED),
        ("resume", CopyStep.RESUMED),
        ("some", CopyStep.PAUSED),
    ]


def test_copies_that_no_signal_asked_for_are_told_of_step_by_step_and_how_far_they_are(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    found: list[tuple[int, int, float]] = []

    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("plan", 3):
            # From the lake's files alone: two windows were read, the first is in.
            home = LakeHome(settings.lake)
            wait_until(lambda: bool(stored_progress(home, home.tables.load())), 20)
            wait_until(lambda: stored_progress(home, home.tables.load())[TABLE].rows_done > 0, 20)
            progress = stored_progress(home, home.tables.load())[TABLE]
            found.append((progress.rows_done, progress.chunks_done, progress.percent))
            assert progress.seconds_left is not None

    source.disturbance.begin(disturb)
    assert sync_once(replace(settings, once=True), source) == {ORDERS: TableState.LIVE}
    # A table that is gone from the lake is copied again.
    shutil.rmtree(settings.lake / TABLE.namespace / TABLE.name)
    assert sync_once(replace(settings, once=True), source) == {ORDERS: TableState.LIVE}
    assert found[0][:2] in ((10, 2), (20, 4))
    told = [
        (each.step, each.table) for each in LakeHome(settings.lake).signals.notifications.all() if each.signal is None
    ]
    whole = [
        (CopyStep.STARTED, ORDERS),
        *[(CopyStep.IN_PROGRESS, ORDERS)] * 3,
        (CopyStep.TABLE_COMPLETED, ORDERS),
        (CopyStep.COMPLETED, None),
    ]
    kept = [each for n, each in enumerate(told) if each[0] is not CopyStep.IN_PROGRESS or told[n - 1] != each]
    assert kept == [each for n, each in enumerate(whole) if n not in (2, 3)] * 2
