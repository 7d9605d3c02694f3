"""Healthy means that a connector gets further when it has something to do."""

from __future__ import annotations

from dataclasses import replace

from tailrace.connector.connector import Status
from tailrace.connector.events import (
    ConnectorState,
    CutPublished,
    SnapshotProgressed,
    StateChanged,
    StreamProgressed,
    TableChanged,
    TroubleChanged,
)
from tailrace.model.copy_progress import TableProgress
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.server.health import STALLED_SECONDS, why_not_progressing
from tailrace.server.supervisor.board import Board
from tailrace.server.supervisor.hub import Hub, LifeChanged
from tailrace.server.supervisor.lifecycle import Life, Phase, Target
from tailrace.server.supervisor.supervisor import ConnectorView

UP = Life(Target.RUNNING, Phase.UP)


def told(log_seq: int, cut_seq: int, lag_bytes: int | None = 0) -> StreamProgressed:
    cut = PublishedCut(cut_seq, SourcePosition(cut_seq), {})
    return StreamProgressed(cut, "", log_seq, 0.0, lag_bytes, 0.0)


def copied(chunks_done: int) -> SnapshotProgressed:
    return SnapshotProgressed([TableProgress(TableId("public", "t"), chunks_done, 9, 1000)])


class World:
    """A board whose clock a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.hub = Hub()
        self.board = Board(self.hub, lambda: self.now)

    def tell(self, event: object, seconds: float = 0.0) -> None:
        self.now += seconds
        self.hub.tell("a", event)  # type: ignore[arg-type]

    def why(self, life: Life = UP, state: ConnectorState | None = ConnectorState.RUNNING) -> str | None:
        status = None if state is None else Status(state, None, None, None, None)
        return why_not_progressing(ConnectorView("a", {}, 1, life, status), self.board.of("a"), self.now)


def test_one_that_is_not_wanted_or_has_nothing_to_do_is_healthy() -> None:
    world = World()
    assert world.why(Life(Target.PAUSED)) is None
    assert world.why(Life(Target.STOPPED)) is None
    assert world.why() is None
    for _ in range(10):
        world.tell(told(5, 5), 100.0)
    assert world.why() is None


def test_one_without_a_run_that_is_wanted_is_not() -> None:
    world = World()
    assert world.why(replace(UP, phase=Phase.FAILED, trace="wrong password")) == "wrong password"
    assert world.why(replace(UP, phase=Phase.WAITING, trace="lost")) == "lost"
    assert world.why(state=None) == "not started yet"
    assert world.why(state=ConnectorState.STARTING) == "not started yet"


def test_one_that_stands_still_with_something_to_do_is_not() -> None:
    world = World()
    world.tell(told(5, 5))
    world.tell(TroubleChanged("the disk is full"))
    for _ in range(3):
        world.tell(told(9, 5), STALLED_SECONDS / 2)
    assert world.why() is None
    world.tell(told(9, 5), 1.0)
    assert world.why() == "no further for 121 s: the disk is full"
    world.tell(CutPublished(PublishedCut(9, SourcePosition(9), {}), "", 0.1))
    assert world.why() is None


def test_a_capture_that_stands_still_while_the_source_writes_is_noticed() -> None:
    world = World()
    for lag_bytes in (10, 20, 30, 40):
        world.tell(told(5, 5, lag_bytes), 50.0)
    assert world.why() is not None
    # Beside databases that write much, the lag is never 0, but it falls again and again.
    world.tell(told(5, 5, 15), 50.0)
    assert world.why() is None


def test_a_source_that_is_away_is_noticed_although_nothing_is_known_to_be_missing() -> None:
    world = World()
    world.tell(told(5, 5, 0))
    world.tell(TroubleChanged("cannot connect to db:5432"))
    for _ in range(3):
        world.tell(told(5, 5, None), 50.0)
    assert world.why() == "no further for 150 s: cannot connect to db:5432"
    # Capture may hang without a word; the question how far the source is does not.
    world.tell(TroubleChanged(None))
    assert world.why() == "no further for 150 s: the source does not answer"
    world.tell(told(5, 5, 0))
    assert world.why() is None


def test_a_source_that_never_counts_bytes_has_nothing_to_do_unless_it_is_in_trouble() -> None:
    world = World()
    for _ in range(4):
        world.tell(told(5, 5, None), 100.0)
    assert world.why() is None
    world.tell(TroubleChanged("cannot connect"))
    for _ in range(4):
        world.tell(told(5, 5, None), 50.0)
    assert world.why() == "no further for 200 s: cannot connect"


def test_a_first_copy_that_hangs_is_noticed_and_one_that_gets_further_is_not() -> None:
    world = World()
    world.tell(LifeChanged(UP))
    world.tell(StateChanged(ConnectorState.SNAPSHOTTING))
    copying = ConnectorState.SNAPSHOTTING
    for chunks_done in range(5):
        world.tell(copied(chunks_done), 100.0)
    assert world.why(state=copying) is None
    world.tell(copied(4), STALLED_SECONDS + 1)
    assert world.why(state=copying) == "no further for 121 s"
    world.tell(copied(5))
    assert world.why(state=copying) is None


def test_how_far_a_copy_is_stays_known_until_it_has_ended() -> None:
    world = World()
    table = TableId("public", "t")
    world.tell(copied(3))
    world.tell(CutPublished(PublishedCut(9, SourcePosition(9), {}), "", 0.1))
    assert [each.chunks_done for each in world.board.of("a").copying] == [3]
    world.tell(TableChanged(table, TableRecord(TableState.RESYNCING)))
    assert world.board.of("a").copying
    world.tell(TableChanged(table, TableRecord(TableState.LIVE)))
    assert world.board.of("a").copying == ()


def test_a_run_that_begins_and_never_tells_anything_is_noticed() -> None:
    world = World()
    world.tell(LifeChanged(UP))
    world.now += STALLED_SECONDS + 1
    assert world.why() == "no further for 121 s"


def test_after_a_long_pause_it_is_healthy_and_has_as_long_as_any_other_to_get_further() -> None:
    world = World()
    held = Life(Target.PAUSED, Phase.HELD)
    world.tell(told(9, 5))
    world.tell(LifeChanged(held))
    world.tell(StateChanged(ConnectorState.PAUSED))
    world.now += 10 * STALLED_SECONDS
    # Also at the moment at which the target is there and the resumption has not been told.
    assert world.why(UP, ConnectorState.PAUSED) is None
    world.tell(LifeChanged(UP))
    world.tell(told(9, 5), STALLED_SECONDS - 1)
    assert world.why() is None
    world.tell(told(9, 5), 2.0)
    assert world.why() == "no further for 121 s"


def test_a_run_that_ended_leaves_no_old_figures() -> None:
    world = World()
    world.tell(told(9, 5))
    world.tell(LifeChanged(replace(UP, phase=Phase.WAITING, failures=1, trace="lost")))
    notes = world.board.of("a")
    assert (notes.progress, notes.errors["transient"]) == (None, 1)
    world.tell(LifeChanged(Life(Target.RUNNING, is_removed=True)))
    assert world.board.of("a").errors["transient"] == 0
