"""Figures over time are what was told, second by second; what was not told is a gap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.connector.events import CutPublished, StreamProgressed
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.server.figures import FIGURES, STEPS, FigureRings
from tailrace.server.supervisor.board import FRESH_SECONDS, Board
from tailrace.server.supervisor.hub import Hub

BEGAN = 1_800_000_000


def cut(seq: int) -> PublishedCut:
    return PublishedCut(seq, SourcePosition(seq), {}, published_us=seq)


class World:
    """Rings whose clock a test moves, and a connector that tells."""

    def __init__(self) -> None:
        self.now = float(BEGAN)
        self.hub = Hub()
        self.rings = FigureRings(Board(self.hub, lambda: self.now), lambda: self.now)

    def told(self, lag_seconds: float, lag_bytes: int | None = 0, log_seq: int = 0, cut_seq: int = 0) -> None:
        event = StreamProgressed(cut(cut_seq), "", log_seq, 2.0, lag_bytes, lag_seconds)
        self.hub.tell("a", event)

    def sample(self, seconds: float = 1.0) -> None:
        self.rings.sample()
        self.now += seconds

    def column(self, figure: str, step: int = 1, since: float = 0.0) -> list[float | None]:
        return self.rings.read(["a"], [figure], step, since).connectors["a"][figure]


def test_each_second_has_what_was_told_last() -> None:
    world = World()
    for lag in (0.5, 1.5, 2.5):
        world.told(lag, lag_bytes=100, log_seq=5, cut_seq=3)
        world.sample()
    assert world.rings.read(["a"], FIGURES, 1, 0).times == [BEGAN, BEGAN + 1, BEGAN + 2]
    assert world.column("lag_seconds") == [0.5, 1.5, 2.5]
    assert world.column("lag_bytes") == [100, 100, 100]
    assert world.column("lag_transactions") == [2, 2, 2]
    assert world.column("changes_per_second") == [2, 2, 2]
    assert world.column("lag_seconds", since=BEGAN + 1) == [1.5, 2.5]


def test_a_second_that_was_not_sampled_is_left_out_and_what_was_not_told_is_no_zero() -> None:
    world = World()
    world.told(1.0, lag_bytes=None)
    world.sample()
    world.sample(3.0)
    world.told(2.0)
    world.sample()
    found = world.rings.read(["a", "other"], ["lag_bytes"], 1, 0)
    assert found.times == [BEGAN, BEGAN + 1, BEGAN + 4]
    assert found.connectors == {"a": {"lag_bytes": [None, None, 0]}, "other": {"lag_bytes": [None, None, None]}}


def test_what_was_told_long_ago_is_not_sampled() -> None:
    world = World()
    world.told(1.0)
    world.sample(FRESH_SECONDS + 1)
    world.sample()
    assert world.column("lag_seconds") == [1.0, None]


def test_rates_of_publishing_come_from_what_was_published_between_two_samples() -> None:
    world = World()
    world.hub.tell("a", CutPublished(cut(10), "", 0.5))
    world.told(0.0)
    world.sample()
    world.hub.tell("a", CutPublished(cut(14), "", 0.25))
    world.told(0.0)
    world.sample()
    world.told(0.0)
    world.sample()
    assert world.column("published_per_second") == [None, 4.0, 0.0]
    assert world.column("publish_seconds") == [0.5, 0.25, None]


def test_a_longer_interval_has_the_largest_lag_and_the_mean_rate_of_what_was_known() -> None:
    world = World()
    for second in range(30):
        if second < 10:
            world.told(float(second), cut_seq=second, log_seq=second)
            world.hub.tell("a", CutPublished(cut(second * 2), "", 0.0))
        world.sample()
    assert world.rings.read(["a"], ["lag_seconds"], 15, 0).times == [BEGAN, BEGAN + 15]
    assert world.column("lag_seconds", 15) == [9.0, None]
    mean = world.column("published_per_second", 15)[0]
    assert mean is not None
    # Nine seconds with two each, and those after them that still had fresh news, with none.
    assert 18 / (10 + FRESH_SECONDS) <= mean <= 2.0


@given(lags=st.lists(st.one_of(st.none(), st.integers(0, 1000)), min_size=1, max_size=40), extra=st.integers(0, 2000))
def test_a_ring_holds_the_last_samples_and_no_older_ones(lags: list[int | None], extra: int) -> None:
    world = World()
    kept: dict[int, float | None] = {}
    for lag in [None] * (extra // 50) + lags:
        world.now += FRESH_SECONDS + 1 + extra
        if lag is not None:
            world.told(float(lag))
        world.rings.sample()
        kept[int(world.now)] = None if lag is None else float(lag)
    found = world.rings.read(["a"], ["lag_seconds"], 1, 0)
    by_time = dict(zip(found.times, found.connectors["a"]["lag_seconds"], strict=True))
    newest = list(kept)[-STEPS[1] :]
    assert by_time.keys() == set(newest)
    # A place of the ring has its last sample: what shared it later is not taken for it.
    assert all(by_time[each] in (kept[each], None) for each in newest)
    assert by_time[newest[-1]] == kept[newest[-1]]


def test_a_ring_is_full_after_its_size_and_keeps_the_newest() -> None:
    world = World()
    for second in range(STEPS[1] + 5):
        world.told(float(second))
        world.sample()
    assert world.column("lag_seconds") == [float(each) for each in range(5, STEPS[1] + 5)]
