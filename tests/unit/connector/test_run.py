"""A run by itself: opened on a scripted source, a lake of Parquet files and an engine of one thread, turn by turn."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.doors.one_thread import OneThread
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.doors.thread_capture import ThreadCaptures
from tests.postgres import wait_until

from tailrace.connector.control import RunControl
from tailrace.connector.events import ConnectorState, CutPublished, Event, StateChanged, TroubleChanged
from tailrace.connector.once import Patience
from tailrace.connector.run import Run
from tailrace.connector.run_opening import Opening
from tailrace.connector.signals.sender import lake_signals, send_resync
from tailrace.connector.start.restarts import Restarts
from tailrace.errors import GapError, TransientError
from tailrace.lake import formats
from tailrace.lake.home import LakeHome
from tailrace.model.position import SourcePosition
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source import kinds
from tailrace.source.door.values import Claim
from tailrace.stop import Stopped

ORDERS, LINES = "shop.orders", "shop.lines"


class ShyScript(ScriptedSource):
    """Gives no answer to a look while `is_silent`, and has lost changes if it `has_gap`."""

    is_silent = has_gap = False

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        if ShyScript.has_gap:
            raise GapError("changes are lost")
        return super().require_continuity(claim, end)

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        return claim

    def mark(self) -> str | None:
        if ShyScript.is_silent:
            raise TransientError("the source does not answer")
        return super().mark()


@pytest.fixture(autouse=True)
def doors(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
    monkeypatch.setattr(ShyScript, "is_silent", False)
    monkeypatch.setattr(ShyScript, "has_gap", False)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
    script.create_table(LINES, {"id": "int"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": 1, "note": "new"})])
    return script


class Turns:
    """A run that is open, with what it told."""

    def __init__(self, run: Run, control: RunControl, home: LakeHome, script: Script, events: list[Event]) -> None:
        self.run, self.control, self.home, self.script, self.events = run, control, home, script, events

    def until(self, condition: Callable[[], bool]) -> None:
        def turn() -> bool:
            self.run.step()
            return condition()

        wait_until(turn, 30)

    def until_published(self) -> None:
        """All tables live, and everything that the script has."""
        ordinal = ScriptedSource(str(self.script.path)).now().ordinal

        def is_published() -> bool:
            cut, records = self.home.cuts.newest(), self.home.tables.load().values()
            is_live = all(record.state is TableState.LIVE for record in records)
            return is_live and cut is not None and cut.position.ordinal + 1 >= ordinal

        self.until(is_published)

    @property
    def states(self) -> list[ConnectorState]:
        return [event.state for event in self.events if isinstance(event, StateChanged)]


@contextmanager
def opened(
    script: Script, lake: Path, *, once: bool = False, mode: SnapshotMode = SnapshotMode.INITIAL
) -> Iterator[Turns]:
    settings = ConnectorSettings(
        lake, format="parquet", once=once, publish_every_seconds=0.0, look_at_tables_seconds=0.01
    )
    control, events = RunControl(), list[Event]()
    restarts, patience = Restarts(mode), Patience(60.0 if once else None)
    source = ShyScript(str(script.path))
    about = settings, source, control, events.append, OneThread(), restarts, patience
    with ExitStack() as stack:
        parts = Opening(*about, ThreadCaptures()).open(stack)
        run = Run(parts, control, events.append, patience)
        run.begin(stack)
        yield Turns(run, control, LakeHome(lake), script, events)


@pytest.fixture
def turns(script: Script, tmp_path: Path) -> Iterator[Turns]:
    with opened(script, tmp_path / "lake") as turns:
        turns.until_published()
        yield turns


def test_tables_are_copied_then_live_and_every_later_commit_is_in_a_cut(turns: Turns, script: Script) -> None:
    assert turns.states == [ConnectorState.SNAPSHOTTING, ConnectorState.RUNNING]
    first = turns.home.cuts.newest()
    script.transaction([Update(ORDERS, (1,), {"note": "paid"}), Insert(LINES, {"id": 1})])
    turns.until_published()
    last = turns.home.cuts.newest()
    assert first is not None
    assert last is not None
    assert first.seq < last.seq
    assert set(last.tables) == {ORDERS, LINES}
    assert len([event for event in turns.events if isinstance(event, CutPublished)]) >= 2


def test_nothing_is_published_while_the_source_does_not_answer_a_look(turns: Turns, script: Script) -> None:
    before = turns.home.cuts.newest()
    ShyScript.is_silent = True
    script.transaction([Insert(LINES, {"id": 1})])
    turns.until(lambda: TroubleChanged("the source does not answer", None) in turns.events)
    for _ in range(5):
        turns.run.step()
    assert turns.home.cuts.newest() == before


def test_a_table_that_fails_leaves_alone_and_the_book_has_the_reason(turns: Turns, script: Script) -> None:
    orders = TableId.parse(ORDERS)
    shutil.rmtree(turns.home.lake / "shop" / "orders")
    script.transaction([Insert(ORDERS, {"id": 2, "note": "more"}), Insert(LINES, {"id": 1})])
    turns.until(lambda: turns.home.tables.load()[orders].copy == 2)
    assert turns.home.tables.load()[TableId.parse(LINES)].copy == 1
    turns.until_published()
    assert turns.home.tables.load()[orders].state is TableState.LIVE


def test_a_resync_is_a_signal_that_ends_when_its_table_is_live_again(turns: Turns) -> None:
    id_ = send_resync(turns.home.lake, TableId.parse(ORDERS))
    turns.until(lambda: lake_signals(turns.home)[0].has_ended)
    (record,) = lake_signals(turns.home)
    assert (record.signal.id, record.state, record.result) == (id_, SignalState.DONE, "1 of 1 tables copied")
    assert turns.home.tables.load()[TableId.parse(ORDERS)].copy == 2


def test_a_paused_run_publishes_nothing_until_it_is_resumed(turns: Turns, script: Script) -> None:
    turns.control.pause()
    turn = threading.Thread(target=turns.run.step)
    turn.start()
    wait_until(lambda: turns.states[-1] is ConnectorState.PAUSED, 30)
    script.transaction([Insert(LINES, {"id": 1})])
    assert turn.is_alive()
    turns.control.resume()
    turn.join(30)
    assert turns.states[-1] is ConnectorState.RUNNING
    turns.until_published()


def test_a_run_that_is_told_to_stop_raises_it_at_the_next_turn(turns: Turns) -> None:
    turns.control.stop.set()
    with pytest.raises(Stopped):
        turns.run.step()


def test_a_run_that_is_to_end_by_itself_ends_with_everything_published(script: Script, tmp_path: Path) -> None:
    with opened(script, tmp_path / "lake", once=True) as turns:
        wait_until(turns.run.step, 30)
        turns.run.leave_in_order()
        assert {record.state for record in turns.home.tables.load().values()} == {TableState.LIVE}
        assert turns.home.cuts.newest() is not None
        left = turns.home.runs.left.take()
        assert left is not None
        assert set(left.tables) == {ORDERS, LINES}
        turns.home.runs.left.write(left)
    with opened(script, tmp_path / "lake", once=True) as turns:
        wait_until(turns.run.step, 30)
        assert [event for event in turns.events if isinstance(event, CutPublished)] == []


def test_where_the_source_lost_changes_every_table_is_copied_again_if_that_is_allowed_and_else_nothing_changes(
    script: Script, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with opened(script, lake) as turns:
        turns.until_published()
    before = LakeHome(lake).tables.load()
    ShyScript.has_gap = True
    with pytest.raises(GapError), opened(script, lake):
        pass
    assert LakeHome(lake).tables.load() == before
    with opened(script, lake, mode=SnapshotMode.WHEN_NEEDED) as turns:
        assert {each.state for each in turns.home.tables.load().values()} == {TableState.RESYNCING}
        turns.until_published()
        assert {each.copy for each in turns.home.tables.load().values()} == {2}


def test_what_a_resync_asks_for_between_two_runs_is_done_by_the_next(script: Script, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(script, lake) as turns:
        turns.until_published()
    send_resync(lake, TableId.parse(LINES))
    with opened(script, lake) as turns:
        turns.until(lambda: lake_signals(turns.home)[0].has_ended)
        copies = {str(table): record.copy for table, record in turns.home.tables.load().items()}
    assert copies == {ORDERS: 1, LINES: 2}
