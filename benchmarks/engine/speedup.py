"""A first copy and a large publish with one core, with two, and on a cluster of two workers of one core each.

python -m benchmarks.engine.speedup MASTER DSN FOLDER SIZES   one Spark; copies and publishes when told to
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType

from benchmarks.aims import Aim
from benchmarks.engine.scale import Scale
from benchmarks.figures import console, seconds, show
from benchmarks.lakes import SteppedLake
from benchmarks.orders import Orders
from benchmarks.plots import bars
from demo.embedded import EmbeddedPostgres
from tests.cluster import cluster

from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named
from tailrace.settings import SparkSettings, TaskSizes

SPEEDUP_MIN = 1.7
CLUSTER_MIN = 0.85
ONE, TWO, CLUSTER = "local[1]", "local[2]", "two workers of one core"
WORK = {"copy": "first copy", "publish": "large publish"}
ENDING_SECONDS = 120.0

Times = dict[tuple[str, str], list[float]]
"""By work and by Spark; the first of each does not count."""


def measure(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn = server.create_database("speedup")
    orders = Orders(dsn, "orders", scale.rows).load()
    with ExitStack() as stack:
        masters = {ONE: ONE, TWO: TWO, CLUSTER: stack.enter_context(cluster(folder / "cluster"))}
        sparks = {
            name: stack.enter_context(OneSpark(master, dsn, folder / f"spark-{number}", scale.sizes))
            for number, (name, master) in enumerate(masters.items())
        }
        times: Times = {}
        for _ in range(1 + scale.rounds):
            _take_turns(sparks, "copy", times)
        for _ in range(1 + scale.rounds):
            orders.change(scale.changes)
            _take_turns(sparks, "publish", times)
    _show(times, scale)
    return _aims(times)


def _take_turns(sparks: dict[str, OneSpark], work: str, times: Times) -> None:
    for name, spark in sparks.items():
        took = spark.ask(work)
        times.setdefault((work, name), []).append(took)
        console.print(f"{WORK[work]}, {name}: {seconds(took)}")


class OneSpark:
    """A process with a Spark that stays warm. Inside a `with`."""

    def __init__(self, master: str, dsn: str, folder: Path, sizes: TaskSizes) -> None:
        arguments = [master, dsn, str(folder), json.dumps(asdict(sizes))]
        self._command = [sys.executable, "-m", "benchmarks.engine.speedup", *arguments]

    def __enter__(self) -> OneSpark:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(ENDING_SECONDS)

    def ask(self, work: str) -> float:
        """Have it done; the seconds it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(work, file=self._process.stdin, flush=True)
        told = self._process.stdout.readline()
        if not told:
            raise RuntimeError(f"the process ended: {' '.join(self._command)}")
        return float(told)


def _show(times: Times, scale: Scale) -> None:
    show(
        f"{scale.rows:,} rows copied, {scale.changes:,} changes published, medians of {scale.rounds}",
        ["", *WORK.values()],
        [[name, *(seconds(_warm(times, work, name)) for work in WORK)] for name in (ONE, TWO, CLUSTER)],
    )
    values = {f"{WORK[work]}, {name}": _warm(times, work, name) for work, name in times}
    console.print(f"plot: {bars('bench-engine-speedup', 'what cores gain', 's', values)}")


def _aims(times: Times) -> list[Aim]:
    aims = []
    for work in WORK:
        one, two, apart = (_warm(times, work, name) for name in (ONE, TWO, CLUSTER))
        aims.append(Aim(f"{work}-two-cores-to-one", one / two, SPEEDUP_MIN))
        aims.append(Aim(f"{work}-cluster-to-two-cores", two / apart, CLUSTER_MIN))
    return aims


def _warm(times: Times, work: str, name: str) -> float:
    return statistics.median(times[work, name][1:])


class _Lakes:
    """One lake after another; the newest is published to."""

    def __init__(self, engine: Engine, dsn: str, folder: Path, sizes: TaskSizes) -> None:
        self._engine, self._dsn, self._folder, self._sizes = engine, dsn, folder, sizes
        self._copies = 0
        self._lake: SteppedLake | None = None

    def copy(self) -> float:
        self.drop()
        self._copies += 1
        self._lake = SteppedLake(self._dsn, self._folder / str(self._copies), self._engine, self._sizes)
        return self._lake.copy()

    def publish(self) -> float:
        """What has been committed since; the way into the log does not count."""
        assert self._lake is not None
        self._lake.fill_log()
        with self._lake.publisher() as publisher:
            return publisher.publish()

    def drop(self) -> None:
        if self._lake is not None:
            self._lake.drop()


def main() -> int:
    master, dsn, path, sizes = sys.argv[1:]
    folder = Path(path)
    settings = SparkSettings(master)
    start = partial(
        session, format_named("delta"), folder / "spark.log", brief=False, settings=settings, lake=folder / "lakes"
    )
    with SparkEngine(LazySession(start, master=master)) as engine:
        engine.await_ready()
        lakes = _Lakes(engine, dsn, folder / "lakes", TaskSizes(**json.loads(sizes)))
        for line in sys.stdin:
            print(lakes.copy() if line.strip() == "copy" else lakes.publish(), flush=True)
        lakes.drop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
