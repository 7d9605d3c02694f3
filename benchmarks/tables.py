"""What a table costs that nothing happens to, in lakes of many small tables.

python -m benchmarks.tables [--quick] [--rounds 3]

Whole commands, as a user meets them: `sync` without a change, `sync` with one change, and a query of one table, in a
lake of 60 tables and in a lake of one by turns; medians.

Then lakes of 10, 100 and 1,000 tables: how long a `sync` takes that finds nothing to do, the whole command and the run
inside it alone; and with a connector that keeps running, how long from a commit to its cut when one table was touched
and when all were.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.plots import Axes, lines
from demo.embedded import EmbeddedPostgres

from tailrace.connector.connector import Connector
from tailrace.connector.events import CutPublished, Event
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

RATIO_MAX = 1.5
UNTOUCHED_RATIO_MAX = 1.25
"""Of a batch that touches one table of 1,000 to one that touches one of 10: none, but for what a clock can tell."""
START_MS_MAX = 0.25
"""What one table more may add to a start."""
TOUCHES = 3
"""For each round: a cut comes at one of the connector's turns, 50 ms apart, so one touch tells little."""
ROWS = 10
PATIENCE_SECONDS = 1800.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables")
    parser.add_argument("--quick", action="store_true", help="fewer tables and rounds, to try it")
    parser.add_argument("--rounds", type=int, default=None)
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 5)
    with tempfile.TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as server:
        aims = _commands(server, Path(folder), 20 if options.quick else 60, rounds)
        aims += _sizes(server, Path(folder), (10, 50) if options.quick else (10, 100, 1000), rounds)
    return report(aims)


def _commands(server: EmbeddedPostgres, folder: Path, tables: int, rounds: int) -> list[Aim]:
    sizes = (1, tables)
    databases = {size: server.create_database(f"tables_{size}") for size in sizes}
    lakes = {size: str(folder / f"lake_{size}") for size in sizes}
    first = {size: [_first(databases[size], lakes[size], size)] for size in sizes}
    times = _rounds(databases, lakes, rounds)
    show(
        f"whole commands, medians of {rounds}",
        ["", "1 table", f"{tables} tables", "ratio"],
        [
            [name, *(seconds(statistics.median(by_size[size])) for size in sizes), f"{_ratio(by_size, sizes):.2f}"]
            for name, by_size in {"first sync": first, **times}.items()
        ],
    )
    return [
        Aim("sync-unchanged-many-to-one", _ratio(times["sync, no change"], sizes), RATIO_MAX, at_most=True),
        Aim("query-one-of-many-to-one", _ratio(times["query of one table"], sizes), RATIO_MAX, at_most=True),
    ]


@dataclass
class Costs:
    """What a lake of some size takes, in seconds."""

    copied: float = 0.0
    commands: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    one: list[float] = field(default_factory=list)
    all: list[float] = field(default_factory=list)


def _sizes(server: EmbeddedPostgres, folder: Path, sizes: tuple[int, ...], rounds: int) -> list[Aim]:
    found: dict[int, Costs] = {}
    with PeakMemory() as memory:
        for size in sizes:
            dsn = server.create_database(f"running_{size}")
            found[size] = _measured(dsn, folder / f"running_{size}", size, rounds)
            server.drop_database(f"running_{size}")
    medians = {
        size: [statistics.median(each) for each in (c.commands, c.starts, c.one, c.all)] for size, c in found.items()
    }
    show(
        f"a connector that keeps running, medians of {rounds}",
        ["tables", "first copy", "sync, no change", "run alone", "one touched", "all touched", "all touched, each"],
        [
            [f"{size:,}", *map(seconds, (costs.copied, *medians[size])), f"{medians[size][3] / size * 1000:.1f} ms"]
            for size, costs in found.items()
        ],
    )
    console.print(f"peak memory: {memory}")
    names = ("sync", "run alone", "one touched", "all touched")
    series = {name: [(float(size), medians[size][at]) for size in sizes] for at, name in enumerate(names)}
    axes = Axes("tables", "seconds", logarithmic=True)
    console.print(f"plot: {lines('bench-tables', 'what tables cost', axes, series)}")
    few, many = medians[sizes[0]], medians[sizes[-1]]
    return [
        Aim("start-many-to-few", many[0] / few[0], RATIO_MAX, at_most=True),
        Aim("start-ms-a-table", (many[1] - few[1]) / (sizes[-1] - sizes[0]) * 1000, START_MS_MAX, at_most=True),
        Aim("one-touched-many-to-few", many[2] / few[2], UNTOUCHED_RATIO_MAX, at_most=True),
    ]


def _measured(dsn: str, lake: Path, size: int, rounds: int) -> Costs:
    costs = Costs(copied=_first(dsn, str(lake), size))
    for _ in range(rounds):
        costs.commands.append(_run("sync", dsn, str(lake), "--once"))
        begun = time.perf_counter()
        connector = Connector(ConnectorSettings(lake, once=True), source_of(dsn))
        connector.start()
        connector.wait(PATIENCE_SECONDS)
        costs.starts.append(time.perf_counter() - begun)
    with _Watched(dsn, lake) as watched, psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(1 + rounds):
            one = [
                watched.cost(partial(connection.execute, f"update t0 set v = 'one {number}' where id = 1"))
                for _ in range(TOUCHES)
            ]
            every = watched.cost(partial(_touch_all, connection, size, number))
            if number:
                costs.one += one
                costs.all.append(every)
    return costs


def _touch_all(connection: psycopg.Connection[tuple[object, ...]], size: int, number: int) -> None:
    with connection.transaction():
        for table in range(size):
            connection.execute(f"update t{table} set v = 'all {number}' where id = 2")


class _Watched:
    """A connector that runs inside a `with`, and when its cuts came."""

    def __init__(self, dsn: str, lake: Path) -> None:
        self._source = source_of(dsn)
        self._connector = Connector(ConnectorSettings(lake, publish_every_seconds=0.1), self._source)
        self._told = threading.Condition()
        self._cut: tuple[int, float] = (0, 0.0)
        """How far the newest reaches, and when it came."""
        self._connector.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        if isinstance(event, CutPublished):
            with self._told:
                self._cut = event.cut.position.ordinal, time.perf_counter()
                self._told.notify_all()

    def __enter__(self) -> _Watched:
        self._connector.start()
        while self._connector.status().progress is None:
            self._connector.wait(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._connector.stop()
        self._connector.wait(PATIENCE_SECONDS)

    def cost(self, change: Callable[[], object]) -> float:
        """From the commit of a change to the cut that has it. The connector then rests; so do we."""
        before = self._source.now().ordinal
        change()
        committed = time.perf_counter()
        with self._told:
            if not self._told.wait_for(lambda: self._cut[0] > before, PATIENCE_SECONDS):
                raise TimeoutError("no cut was published")
            took = self._cut[1] - committed
        time.sleep(0.5 + 3 * took)
        return took


def _first(database: str, lake: str, count: int) -> float:
    with psycopg.connect(database) as conn:
        for number in range(count):
            conn.execute(f"create table t{number} (id int primary key, v text)")
            conn.execute(f"insert into t{number} select n, 'v' || n from generate_series(1, {ROWS}) n")
    return _run("sync", database, lake, "--once")


def _rounds(databases: dict[int, str], lakes: dict[int, str], rounds: int) -> dict[str, dict[int, list[float]]]:
    names = ("sync, no change", "sync, one change", "query of one table")
    times: dict[str, dict[int, list[float]]] = {name: {size: [] for size in lakes} for name in names}
    for number in range(rounds):
        for size, lake in lakes.items() if number % 2 else reversed(lakes.items()):
            times["sync, no change"][size].append(_run("sync", databases[size], lake, "--once"))
            with psycopg.connect(databases[size]) as conn:
                conn.execute(f"update t0 set v = 'round {number}' where id = 1")
            times["sync, one change"][size].append(_run("sync", databases[size], lake, "--once"))
            times["query of one table"][size].append(_run("query", lake, "select count(*) from t0"))
    return times


def _run(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tailrace.cli.main", *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def _ratio(by_size: dict[int, list[float]], sizes: tuple[int, ...]) -> float:
    one, many = (statistics.median(by_size[size]) for size in sizes)
    return many / one


if __name__ == "__main__":
    sys.exit(main())
