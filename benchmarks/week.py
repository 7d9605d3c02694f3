"""A week of small commits on one table: what a lake has to carry, and what the next small batch costs, stay bounded.

python -m benchmarks.week [--publishes 4000] [--rows 200000] [--plain] [--quick]

Thousands of small batches are published into one Delta table, each with a cut, with the upkeep that a running sync does
in its pauses, within the share of the time that it has there: pauses are as long as a sync's by upkeep's clock, and
take no time here. Time is shrunk with the retention: cuts are kept for a third of the run, all of them for a twelfth,
so cuts are thinned, versions deleted and files merged over and over. `--plain` does the same without upkeep.

Prints the curve, writes it to build/week.svg, and holds the second half of the run against the first: what grows
with every publish doubles.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from benchmarks.aims import Aim, report
from benchmarks.curve import Line, write_svg

from tailrace.connector.pace import REST_FACTOR
from tailrace.connector.publish.batch import Publisher
from tailrace.connector.publish.following_table import FollowingTable, Standing
from tailrace.connector.publish.live_table import LiveTable
from tailrace.connector.publish.upkeep import Upkeep
from tailrace.engine.door import Engine, Job
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.home import LakeHome
from tailrace.lake.retention import Retention
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.kinds import codec_of
from tailrace.storage.files import LINE_BYTES_MAX as RECENT_BYTES

TABLE = TableId("public", "orders")
SCHEMA = TableSchema(TABLE, 1, (Column("id", "bigint", "bigint", 1), Column("note", "string", "text", 2)), ("id",))
STATES = pa.schema(
    [
        *row_schema(SCHEMA),
        (DELETED, pa.bool_()),
        (FRESH, pa.bool_()),
        (UNCHANGED, pa.list_(pa.string())),
        (ORIGIN, pa.struct([("id", pa.int64())])),
    ]
)
BATCH_ROWS = 20
GROWTH_MAX = 1.5
PARTS = 10
GROUP = "week"


@dataclass(frozen=True)
class Point:
    """The lake after some of the publishes."""

    publishes: int
    files: int
    log_bytes: int
    log_files: int
    cuts_bytes: int
    lake_bytes: int
    batch_seconds: float
    """What a small batch cost, the median since the last point."""
    upkeep_seconds: float
    """What upkeep took in all since the last point."""


class Week:
    """One table of one lake, and the rows that it must have."""

    def __init__(self, folder: Path, rows: int, engine: Engine, retention: Retention | None) -> None:
        self.home = LakeHome.create(folder)
        self.path = Path(self.home.place_of(TABLE).address)
        self._table = DeltaFormat().table(self.home.place_of(TABLE))
        self._chance = random.Random(7)
        self._ids = list(range(rows))
        self._next_id = rows
        self._skipped = 0.0
        self._live: LiveTable | None = None
        self._upkeep: Upkeep | None = None
        self.publisher = Publisher(engine, TaskSizes(), ThreadPoolExecutor(1), GROUP)
        if retention is not None:
            settings = ConnectorSettings(
                folder, retain_seconds=retention.keep_seconds, retain_all_seconds=retention.all_seconds
            )
            self._upkeep = Upkeep(self.home, settings, self, lambda: time.monotonic() + self._skipped)
        draft = self._table.copy(SCHEMA, self._stamp(None))
        content = pa.table({"id": pa.array(range(rows), pa.int64()), "note": ["first"] * rows}, row_schema(SCHEMA))
        self._record(draft.commit([draft.write(content.to_batches())]), 0)

    def publish(self, seq: int) -> float:
        """One small batch; how long it took, with its cut."""
        states = self._states(seq)
        begun = time.perf_counter()
        draft = self._table.publish(SCHEMA, self._stamp(seq))
        version = draft.commit([draft.write(states.to_batches())])
        self._table.make_durable(version - 1)
        self._record(version, seq)
        took = time.perf_counter() - begun
        self._skipped += took * REST_FACTOR
        return took

    def keep(self) -> float:
        """What a sync does in a pause; how long it took."""
        begun = time.perf_counter()
        if self._upkeep is not None:
            self._upkeep.step()
        return time.perf_counter() - begun

    @property
    def tables(self) -> dict[TableId, LiveTable]:
        return {TABLE: self._live} if self._live else {}

    def is_exact(self) -> bool:
        from tailrace.read.duckdb import connect

        with connect() as connection:
            extension = self._table.scan(self._version).extension
            connection.execute(f"load '{extension}'")
            found = connection.execute(f"select id from {self._table.scan(self._version).sql}").fetchall()
        return sorted(row[0] for row in found) == sorted(self._ids)

    def _states(self, seq: int) -> pa.Table:
        """Updates, inserts and deletes at random places, most of them among the newest rows."""
        places = {int(len(self._ids) * self._chance.random() ** 0.2) for _ in range(BATCH_ROWS)}
        states = []
        for number, place in enumerate(sorted(places, reverse=True)):
            gone = number % 4 == 0
            key = self._ids[place]
            states.append({"id": key, "note": f"in {seq}", DELETED: gone, FRESH: False})
            if gone:
                self._ids[place] = self._ids[-1]
                self._ids.pop()
        for _ in range(BATCH_ROWS // 4):
            states.append({"id": self._next_id, "note": "new", DELETED: False, FRESH: True})
            self._ids.append(self._next_id)
            self._next_id += 1
        return pa.Table.from_pylist(states, schema=STATES)

    def _stamp(self, seq: int | None) -> Stamp:
        return Stamp(SourcePosition(seq or 0), 1, 1, seq)

    def _record(self, version: int, seq: int) -> None:
        self._version = version
        named = CutTable(version, 1, seq)
        self.home.cuts.append(PublishedCut(seq, SourcePosition(seq), {str(TABLE): named}, time.time_ns() // 1000))
        standing = Standing(version, self._stamp(seq), version)
        following = FollowingTable(TABLE, self._table, codec_of("postgres"), standing, seq)
        self._live = LiveTable(following, SourcePosition(seq), is_untidy=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.week", description=__doc__.splitlines()[0])
    parser.add_argument("--publishes", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--plain", action="store_true", help="without upkeep")
    parser.add_argument("--quick", action="store_true", help="a tenth of it, to try it")
    options = parser.parse_args()
    if options.quick:
        options.publishes, options.rows = options.publishes // 10, options.rows // 10
    with tempfile.TemporaryDirectory(prefix="tailrace-") as folder, _warm_spark(Path(folder)) as engine:
        lake = Path(folder) / "lake"
        points, is_exact = _run(lake, engine, options.publishes, options.rows, upkeep=not options.plain)
    _plot(points)
    growths = {
        "week-files-growth": _growth([point.files for point in points], max),
        "week-log-growth": _growth([point.log_bytes for point in points], max),
        "week-cuts-growth": _growth([point.cuts_bytes for point in points], max),
        "week-small-batch-growth": _growth([point.batch_seconds for point in points], statistics.median),
    }
    aims = [Aim(name, growth, GROWTH_MAX, at_most=True) for name, growth in growths.items()]
    return report([Aim("week-rows-exact", float(is_exact), 1.0), *aims])


@contextmanager
def _warm_spark(folder: Path) -> Iterator[Engine]:
    """What files are merged by. A running sync's has copied tables already, so its start is no part of upkeep."""
    start = partial(session, DeltaFormat(), folder / "spark.log", brief=False)
    with SparkEngine(LazySession(start)) as engine:
        engine.map(Job("warm up", GROUP), range(engine.cores), abs)
        yield engine


def _growth(values: Sequence[float], of: Callable[[Sequence[float]], float]) -> float:
    """The second half of the run next to the first. What grows with every publish doubles."""
    half = len(values) // 2
    return of(values[half:]) / of(values[:half])


def _run(lake: Path, engine: Engine, publishes: int, rows: int, *, upkeep: bool) -> tuple[list[Point], bool]:
    seconds = _seconds_of(lambda: Week(lake.with_name("probe"), rows, engine, None), publishes)
    retention = Retention(seconds / 3, seconds / 12)
    print(f"cuts are kept for {retention.keep_seconds:.1f} s, all of them for {retention.all_seconds:.1f} s")
    week = Week(lake, rows, engine, retention if upkeep else None)
    print(
        f"{'publishes':>10}{'files':>8}{'log files':>11}{'log':>10}{'cuts':>10}{'lake':>10}{'batch':>10}{'upkeep':>9}"
    )
    points: list[Point] = []
    batches: list[float] = []
    kept = 0.0
    for seq in range(1, publishes + 1):
        batches.append(week.publish(seq))
        kept += week.keep()
        if seq % (publishes // PARTS) == 0:
            points.append(_measured(week, seq, statistics.median(batches), kept))
            _show(points[-1])
            batches, kept = [], 0.0
    return points, week.is_exact()


def _seconds_of(new: Callable[[], Week], publishes: int) -> float:
    """About how long the run will take."""
    week = new()
    begun = time.perf_counter()
    for seq in range(1, 41):
        week.publish(seq)
    return (time.perf_counter() - begun) / 40 * publishes * 1.3


def _measured(week: Week, seq: int, batch_seconds: float, upkeep_seconds: float) -> Point:
    files = [path for path in week.path.iterdir() if path.is_file()]
    log = list((week.path / "_delta_log").iterdir())
    lake_bytes = sum(path.stat().st_size for path in week.home.shared_folder.rglob("*") if path.is_file())
    log_bytes = sum(path.stat().st_size for path in log)
    return Point(
        seq, len(files), log_bytes, len(log), week.home.cuts.mark[1], lake_bytes, batch_seconds, upkeep_seconds
    )


def _show(point: Point) -> None:
    log, cuts, lake = (f"{size / 1024:,.0f} KiB" for size in (point.log_bytes, point.cuts_bytes, point.lake_bytes))
    print(
        f"{point.publishes:>10}{point.files:>8}{point.log_files:>11}{log:>10}{cuts:>10}{lake:>10}"
        f"{point.batch_seconds * 1000:>7.1f} ms{point.upkeep_seconds:>7.1f} s",
        flush=True,
    )


def _plot(points: list[Point]) -> None:
    """Each curve in parts of its largest value."""
    lines = [
        Line("files", [float(point.files) for point in points]),
        Line("_delta_log, bytes", [float(point.log_bytes) for point in points]),
        Line("cuts.jsonl, bytes", [float(point.cuts_bytes) for point in points]),
        Line("a small batch, seconds", [point.batch_seconds for point in points]),
    ]
    path = write_svg("week", "a week of small commits", [point.publishes for point in points], lines)
    print(f"curve: {path}; a cut is found in the last {RECENT_BYTES >> 20} MiB of cuts.jsonl")


if __name__ == "__main__":
    sys.exit(main())
