"""Figures over time: what connectors told of their progress, a sample a second, kept in memory.

A *tick* is a second, or a longer interval of the coarse ring. What was not sampled is a gap: a connector without a run
has no figures, and neither has one that told nothing for some seconds. Nothing survives a restart of the server.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tailrace.server.supervisor.board import Board, Sample

FIGURES = (
    "lag_seconds",
    "lag_bytes",
    "lag_transactions",
    "changes_per_second",
    "published_per_second",
    "publish_seconds",
)
MEANS = ("changes_per_second", "published_per_second")
"""A longer interval has the mean of these, and the largest of the others."""
STEPS = {1: 900, 15: 5760}
"""Seconds of a tick, and how many are kept: a quarter of an hour, and a day."""
FORGET_SECONDS = 24 * 3600

Column = list[float | None]
_Array = npt.NDArray[np.float32]
_IS_MEAN = np.array([name in MEANS for name in FIGURES])


class Ring:
    """The last samples of one connector, one a tick."""

    def __init__(self, size: int) -> None:
        self._ticks = np.full(size, -1, np.int64)
        self._values = np.full((size, len(FIGURES)), np.nan, np.float32)

    def put(self, tick: int, values: _Array) -> None:
        place = tick % len(self._ticks)
        self._ticks[place], self._values[place] = tick, values

    def read(self, ticks: Sequence[int], figure: str) -> Column:
        """None where there is no sample."""
        places = np.array(ticks, np.int64) % len(self._ticks)
        there = self._ticks[places] == ticks
        values = np.where(there, self._values[places, FIGURES.index(figure)], np.nan)
        return [None if math.isnan(each) else round(each, 3) for each in values.tolist()]


@dataclass
class _Series:
    """One connector's samples."""

    rings: dict[int, Ring] = field(default_factory=lambda: {step: Ring(size) for step, size in STEPS.items()})
    recent: list[_Array] = field(default_factory=list)
    """Those of the coarse interval that has not ended."""
    before: tuple[int, int] | None = None
    """The second of the last sample, and how many transactions were published until then."""
    newest_us: int = 0
    """When the last cut that was seen was published."""
    heard: int = 0
    """The second of the last sample."""


@dataclass(frozen=True)
class FiguresOverTime:
    """One time axis, and the figures of connectors on it."""

    times: list[int]
    """Seconds since 1970, of the beginning of each tick that was sampled."""
    connectors: dict[str, dict[str, Column]]


class FigureRings:
    """Any thread reads, one samples."""

    def __init__(self, board: Board, clock: Callable[[], float] = time.time) -> None:
        self._board = board
        self._clock = clock
        self._lock = threading.Lock()
        self._sampled: dict[int, dict[int, None]] = {step: {} for step in STEPS}
        """The ticks at which samples were taken, oldest first."""
        self._series: dict[str, _Series] = {}
        self.began = clock()

    def run(self, ending: threading.Event) -> None:
        """Sample every second until the end."""
        while not ending.wait(1 - self._clock() % 1):
            self.sample()

    def sample(self) -> None:
        """What there is now. A second time in the same second does nothing."""
        second = int(self._clock())
        samples = self._board.samples()
        with self._lock:
            if second in self._sampled[1]:
                return
            for name, sample in samples.items():
                series = self._series.setdefault(name, _Series())
                values = _values(series, second, sample)
                series.rings[1].put(second, values)
                series.recent.append(values)
            self._note(1, second)
            coarse = max(STEPS)
            if second % coarse == coarse - 1:
                self._end_interval(coarse, second // coarse)
                self._forget(second)

    def _end_interval(self, step: int, tick: int) -> None:
        for series in self._series.values():
            if series.recent:
                series.rings[step].put(tick, _joined(series.recent))
                series.recent.clear()
        self._note(step, tick)

    def _note(self, step: int, tick: int) -> None:
        sampled = self._sampled[step]
        sampled[tick] = None
        while len(sampled) > STEPS[step]:
            del sampled[next(iter(sampled))]

    def _forget(self, second: int) -> None:
        """Connectors that have told nothing for as long as anything is kept."""
        for name in [name for name, each in self._series.items() if second - each.heard > FORGET_SECONDS]:
            del self._series[name]

    def count(self, step: int, since: float) -> int:
        """How many ticks were sampled from a time on."""
        with self._lock:
            return sum(tick * step >= since for tick in self._sampled[step])

    def read(self, names: Sequence[str], figures: Sequence[str], step: int, since: float) -> FiguresOverTime:
        """Of these connectors, from a time on."""
        with self._lock:
            # A tick that has left the ring of a connector is older than what is kept.
            ticks = [tick for tick in self._sampled[step] if tick * step >= since]
            found = {}
            for name in names:
                series = self._series.get(name)
                ring = Ring(1) if series is None else series.rings[step]
                found[name] = {figure: ring.read(ticks, figure) for figure in figures}
        return FiguresOverTime([tick * step for tick in ticks], found)


def _values(series: _Series, second: int, sample: Sample) -> _Array:
    told, newest = sample.progress, sample.newest
    published = math.nan
    if series.before is not None and second - series.before[0] <= max(STEPS):
        published = (sample.transactions - series.before[1]) / (second - series.before[0])
    publish_seconds = math.nan
    if newest is not None and newest.cut.published_us != series.newest_us:
        publish_seconds, series.newest_us = newest.seconds, newest.cut.published_us
    series.before, series.heard = (second, sample.transactions), second
    lag_bytes = math.nan if told.lag_bytes is None else told.lag_bytes
    lag_transactions = max(0, told.log_seq - told.cut.seq)
    found = [told.lag_seconds, lag_bytes, lag_transactions, told.changes_per_second, published, publish_seconds]
    return np.array(found, np.float32)


def _joined(samples: Sequence[_Array]) -> _Array:
    """Of an interval: what was not known in any of its seconds is not known of it."""
    stacked = np.stack(samples)
    known = ~np.isnan(stacked)
    counts = known.sum(axis=0)
    largest = np.where(known, stacked, -np.inf).max(axis=0)
    mean = np.where(known, stacked, 0).sum(axis=0) / np.maximum(counts, 1)
    return np.where(counts > 0, np.where(_IS_MEAN, mean, largest), np.nan).astype(np.float32)
