"""A few changes to each of five small tables: published by Spark, and by this process, by turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from benchmarks.aims import Aim
from benchmarks.engine.scale import Scale
from benchmarks.figures import console, seconds, show
from benchmarks.lakes import Publisher, SteppedLake
from benchmarks.orders import Orders
from benchmarks.plots import Axes, lines
from demo.embedded import EmbeddedPostgres

from tailrace.engine.door import Fold, Job, Split, WorkDone
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named

SECONDS_MAX = 0.1
TABLES = 5
CHANGES = 10
"""In each table of each transaction."""
UNCOUNTED = 10
"""Of each kind, before those that count."""
TOLD = 10
"""How often it is told how far the publishes are."""


@dataclass
class Costs:
    """Seconds of each publish."""

    spark: list[float] = field(default_factory=list)
    here: list[float] = field(default_factory=list)
    beyond: list[float] = field(default_factory=list)
    """What Spark's jobs took beyond the longest of their tasks."""


@dataclass(frozen=True)
class _Clocked:
    """Some work, and how long it took where it was done."""

    work: Callable[[Any], Any]

    def __call__(self, item: Any) -> tuple[float, Any]:
        begun = time.perf_counter()
        result = self.work(item)
        return time.perf_counter() - begun, result


class Turns:
    """Implements `Engine`: Spark's, or one of a single thread here."""

    def __init__(self, spark: SparkEngine) -> None:
        self._spark = spark
        self.is_here = False
        self.beyond = 0.0
        """What Spark's jobs have taken beyond the longest of their tasks."""

    @property
    def cores(self) -> int:
        return self._spark.cores

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        if self.is_here:
            return [work(item) for item in items]
        if tasks is not None:
            # Which items a task gets is not known here. No publish asks for it.
            return self._spark.map(job, items, work, tasks)
        begun = time.perf_counter()
        found = self._spark.map(job, items, _Clocked(work))
        self.beyond += time.perf_counter() - begun - max((took for took, _ in found), default=0.0)
        return [result for _, result in found]

    def shuffle(self, job: Job, items: Sequence[Any], split: Split[Any], tasks: int, fold: Fold[Any]) -> list[Any]:
        if not self.is_here:
            return self._spark.shuffle(job, items, split, tasks, fold)
        dealt: list[list[bytes]] = [[] for _ in range(tasks)]
        for task, blob in chain.from_iterable(map(split, items)):
            dealt[task].append(blob)
        return [fold(blobs) for blobs in dealt if blobs]

    def start_soon(self) -> None:
        self._spark.start_soon()

    def await_ready(self) -> None:
        self._spark.await_ready()

    def cancel(self, group: str) -> None:
        self._spark.cancel(group)

    def tasks_done(self, group: str) -> tuple[int, int]:
        return self._spark.tasks_done(group)

    @property
    def done(self) -> WorkDone:
        return self._spark.done

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None: ...


def measure(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn = server.create_database("cost")
    tables = [Orders(dsn, f"orders_{number}", scale.small_rows, seed=number).load() for number in range(TABLES)]
    with _turns(folder) as turns:
        lake = SteppedLake(dsn, folder / "lake", turns)
        console.print(f"{TABLES} tables of {scale.small_rows:,} rows copied in {seconds(lake.copy())}")
        count = UNCOUNTED + scale.small_publishes
        _change(dsn, tables, 2 * count)
        console.print(f"{2 * count} transactions into the log in {seconds(lake.fill_log())}")
        with lake.publisher() as publisher:
            costs = _published(publisher, turns, count)
    _show(costs)
    spark, here, beyond = (_p50(each[UNCOUNTED:]) for each in (costs.spark, costs.here, costs.beyond))
    return [
        Aim("spark-beyond-work-p50-seconds", beyond, SECONDS_MAX, at_most=True),
        Aim("spark-beyond-here-p50-seconds", spark - here, SECONDS_MAX, at_most=True),
    ]


@contextmanager
def _turns(folder: Path) -> Iterator[Turns]:
    start = partial(session, format_named("delta"), folder / "spark.log", brief=False)
    with SparkEngine(LazySession(start)) as spark:
        yield Turns(spark)


def _change(dsn: str, tables: list[Orders], transactions: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(transactions):
            with connection.transaction():
                for orders in tables:
                    orders.change_some(connection, CHANGES)


def _published(publisher: Publisher, turns: Turns, count: int) -> Costs:
    """A transaction at a time. Who comes first changes from one pair to the next."""
    costs = Costs()
    for number in range(count):
        for is_here in (False, True) if number % 2 else (True, False):
            turns.is_here, turns.beyond = is_here, 0.0
            took = publisher.publish(publisher.seq + 1)
            (costs.here if is_here else costs.spark).append(took)
            if not is_here:
                costs.beyond.append(turns.beyond)
        if (number + 1) % max(1, count // TOLD) == 0:
            last = f"Spark {seconds(costs.spark[-1])}, here {seconds(costs.here[-1])}"
            console.print(f"{number + 1} of {count} published by each; the last: {last}")
    return costs


def _show(costs: Costs) -> None:
    named = {
        "published by Spark": costs.spark,
        "published in this process": costs.here,
        "Spark's jobs beyond their longest task": costs.beyond,
    }
    show(
        f"{CHANGES} changes to each of {TABLES} small tables",
        ["", "p50", "p90", "p99"],
        [
            [name, *(f"{float(np.percentile(found[UNCOUNTED:], at)) * 1e3:,.0f} ms" for at in (50, 90, 99))]
            for name, found in named.items()
        ],
    )
    series = {name: [(float(at), value) for at, value in enumerate(found, 1)] for name, found in named.items()}
    axes = Axes("publish", "seconds")
    console.print(f"plot: {lines('bench-engine', 'a small publish of five tables', axes, series)}")


def _p50(found: list[float]) -> float:
    return float(np.percentile(found, 50))
