"""A copy by windows that is killed between any two of its durable writes: the next run continues it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crash.copying import CHUNK_ROWS, reads_of, sync
from tests.doors.script import Delete, Insert, Script, Update

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState

ORDERS = "shop.orders"
ROWS = 60
WINDOW_ROWS = 2 * CHUNK_ROWS
MOVED = (4, 60, 114)
"""Rows that go to another key and come back. Where they have not been read by then, that is done once more."""
BOUNDARIES = {
    "signals.entered": 0,
    "signals.ordered": 0,
    "signals.asked": 0,
    "window.begun": 0,
    "window.read": 0,
    "window.read:3": 2,
    "delta.rows:4": 2,
    "delta.vectors:4": 2,
    "storage.draft:4": 2,
    "storage.link:4": 3,
    "delta.commit:4": 3,
    "window.published:3": 3,
    "window.landed": 6,
    "publish.cut": 6,
    "signals.ended": 6,
}
"""In the order in which a signal is carried out: what dies there, and how many windows are in the lake then."""
QUICK = ("signals.ordered", "window.read:3", "storage.link:4", "window.landed", "signals.ended")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "int", "note": "string", "large": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": 2 * n, "note": "", "large": f"large {n}"}) for n in range(ROWS)])
    return script


def change(script: Script, number: int) -> None:
    """Something of every kind, on both sides of any cursor; there are as many rows as before."""
    script.transaction(
        [
            *(Update(ORDERS, (n,), {"note": f"in {number}"}, leave_out=["large"]) for n in range(0, 2 * ROWS, 14)),
            Delete(ORDERS, (2,)),
            Insert(ORDERS, {"id": 2, "note": "again", "large": f"{number}"}),
            *(Update(ORDERS, (n,), {"id": n + 1}, leave_out=["large"]) for n in MOVED),
        ]
    )
    script.transaction([Update(ORDERS, (n + 1,), {"id": n}, leave_out=["large"]) for n in MOVED])


def killed_at(boundary: str, script: Path, lake: Path, mode: str = "incremental") -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.copying", script, lake, mode],
        env=os.environ | {"TAILRACE_FAILPOINT": boundary},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, boundary


def rows_read(script: Path) -> int:
    """So many since the last time."""
    file = reads_of(script)
    found = sum(int(line.rpartition(" ")[2]) for line in file.read_text().splitlines()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return found


def assert_equal(lake: Path, script: Script) -> None:
    for published in (False, True):
        assert tailrace.arrow(lake, ORDERS, published=published).sort_by("id").to_pylist() == script.state(ORDERS)


def steps(lake: Path, id_: str) -> list[CopyStep]:
    told = LakeHome(lake).signals.notifications.all()
    return [each.step for each in told if each.signal == id_ and each.step is not CopyStep.IN_PROGRESS]


@pytest.mark.parametrize(
    "boundary", [pytest.param(each, marks=() if each in QUICK else pytest.mark.proof) for each in BOUNDARIES]
)
def test_killed_between_any_two_durable_writes_a_copy_continues_and_its_signal_ends_once(
    script: Script, tmp_path: Path, boundary: str
) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    rows_read(script.path)
    tailrace.signal(lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="again")
    change(script, 1)
    killed_at(boundary, script.path, lake)
    before = rows_read(script.path)
    change(script, 2)
    assert sync(script.path, lake) == {ORDERS: TableState.LIVE}
    assert_equal(lake, script)
    in_lake = BOUNDARIES[boundary] * WINDOW_ROWS
    assert before <= in_lake + 2 * WINDOW_ROWS + len(MOVED), "one group is read ahead"
    assert 0 <= rows_read(script.path) - (ROWS - in_lake) <= len(MOVED), "what was in the lake was not read again"
    record = LakeHome(lake).tables.load()[TableId("shop", "orders")]
    assert record.copy == 2
    found = [(each.state, each.result) for each in lake_signals(LakeHome(lake))]
    assert found == [(SignalState.DONE, "1 of 1 tables copied")]
    told = steps(lake, "again")
    assert [each for each in dict.fromkeys(told) if each is not CopyStep.STARTED] == [
        CopyStep.TABLE_COMPLETED,
        CopyStep.COMPLETED,
    ]
    assert told.count(CopyStep.TABLE_COMPLETED) == 1
    sync(script.path, lake)
    assert (rows_read(script.path), steps(lake, "again")) == (0, told), "a signal is carried out once"


@pytest.mark.parametrize("boundary", ["signals.ended", "signals.stopped", "signals.ended:2"])
def test_killed_while_a_copy_is_stopped_who_asked_for_it_hears_that_it_was(
    script: Script, tmp_path: Path, boundary: str
) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    tailrace.signal(lake, "pause-snapshot", id="pause")
    tailrace.signal(lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="again")
    sync(script.path, lake)
    tailrace.signal(lake, "stop-snapshot", id="stop")
    killed_at(boundary, script.path, lake)
    assert sync(script.path, lake) == {ORDERS: TableState.ERRORED}
    found = {each.signal.id: each.state for each in lake_signals(LakeHome(lake))}
    assert found == {"pause": SignalState.DONE, "again": SignalState.STOPPED, "stop": SignalState.DONE}
    assert CopyStep.ABORTED in steps(lake, "stop")


def test_killed_after_a_table_was_told_a_copy_at_once_is_still_made_at_once(script: Script, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    data = {"data-collections": [ORDERS], "type": "blocking"}
    tailrace.signal(lake, "execute-snapshot", data, id="again")
    killed_at("signals.asked", script.path, lake)
    assert sync(script.path, lake) == {ORDERS: TableState.LIVE}
    assert_equal(lake, script)
    told = LakeHome(lake).signals.notifications.all()
    told = [each for each in told if each.signal is not None and each.step is CopyStep.TABLE_COMPLETED]
    assert [(each.signal, each.chunks) for each in told] == [("again", 0)], "by no windows"


def test_the_first_copy_of_a_large_table_that_is_killed_continues_where_it_was(script: Script, tmp_path: Path) -> None:
    """Nobody has asked for windows."""
    lake = tmp_path / "lake"
    killed_at("window.published:3", script.path, lake, "initial")
    rows_read(script.path)
    change(script, 1)
    assert sync(script.path, lake, "initial") == {ORDERS: TableState.LIVE}
    assert_equal(lake, script)
    assert 0 <= rows_read(script.path) - (ROWS - 3 * WINDOW_ROWS) <= len(MOVED)
    assert LakeHome(lake).tables.load()[TableId("shop", "orders")].copy == 1
