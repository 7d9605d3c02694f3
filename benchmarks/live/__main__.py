"""How long a commit takes to show in a query, while transactions come in and a sync publishes them.

python -m benchmarks.live [--quick] [--folder FOLDER]

Five tables, one of two million rows; 500 transactions a second, written by one process and published by another. A
third reads: it commits a change, then asks for the newest cut until it sees the change. The measure of all is what the
same query takes on the plain Delta table, in Spark, while nothing else happens.

Meanwhile cuts are published, and how far apart they are counts by time: 95 % of all moments lie between two cuts that
are at most so far apart. The largest gap of all is shown and has no aim: on two cores that the server, the writers and
the readers share, one pause of any of them makes it. A count of gaps would hide a long one among many short ones.

Then the shell: `tailrace query` on a lake of 60 tables, next to a bare Spark that starts and counts one table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.live import shell
from benchmarks.live.probes import Probes
from benchmarks.live.shop import Shop, Writers
from benchmarks.live.syncing import Syncing
from benchmarks.plots import Axes, lines
from demo.embedded import EmbeddedPostgres

from tailrace.engine.spark.session import session
from tailrace.lake.formats import format_named
from tailrace.read.duckdb import connect

LIMITS = {"spark": (2.0, 5.0), "duckdb": (0.5, 2.0)}
"""The median and the 99th percentile at most, in units of the plain query."""
RATE_MIN = 0.95
"""Of the transactions a second that were asked for: without them, nothing was measured."""
CUT_SECONDS_MAX = 40.0
"""A publish rests for half a minute at most."""
CUT_GAP_SECONDS_MAX = 1.5
GAP_SHARE = 0.95
SERVER = {"max_wal_size": "8GB", "shared_buffers": "512MB"}


@dataclass(frozen=True)
class Scale:
    """Rows, transactions and reads."""

    rows: int
    per_second: int
    settle_seconds: float
    """The writers run so long before the first read that counts."""
    reads: int
    plain_reads: int
    tables: int
    commands: int


FULL = Scale(2_000_000, 500, 20.0, 100, 20, 60, 5)
QUICK = Scale(100_000, 200, 5.0, 15, 8, 10, 2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live")
    parser.add_argument("--quick", action="store_true", help="fewer rows, transactions and reads, to try it")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=SERVER) as server,
    ):
        aims = _live(server, Path(folder), scale) + shell.measure(server, Path(folder), scale.tables, scale.commands)
    return report(aims)


def _live(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn, lake = server.create_database("live"), folder / "lake"
    shop = Shop(dsn, scale.rows).load()
    spark = session(format_named("delta"), folder / "spark.log", brief=False)
    with PeakMemory() as memory, Syncing(dsn, lake) as sync, connect() as duckdb:
        console.print(f"{scale.rows:,} orders loaded; waiting for the first cut")
        sync.wait_for_cut()
        console.print("reading while nothing is written")
        probes = Probes(shop, lake)
        # The plain queries come second: they are the measure of all, so they find the warmer Spark.
        quiet = {name: probes.read(each, scale.plain_reads) for name, each in (("spark", spark), ("duckdb", duckdb))}
        plain = probes.plain(spark, scale.plain_reads)
        unit = float(np.median(plain))
        console.print(f"reading beside {scale.per_second:,} transactions a second")
        with Writers(dsn, scale.rows, scale.per_second) as writers:
            writers.run_for(scale.settle_seconds)
            begun = time.time()
            busy = {name: probes.read(each, scale.reads) for name, each in (("spark", spark), ("duckdb", duckdb))}
            rate, ended = writers.per_second, time.time()
            times = [at for at in sync.cut_times() if begun <= at < ended]
    spark.stop()
    took = sum(map(sum, busy.values()))
    cuts, gaps = len(times), _gaps([begun, *times, ended])
    console.print(f"{rate:,.0f} transactions a second; {cuts} cuts published while {took:,.0f} s were spent reading")
    gap = _gap_of_most_moments(gaps)
    console.print(
        f"from one cut to the next: median {seconds(float(np.median(gaps)))}, for {GAP_SHARE:.0%} of the time at most"
        f" {seconds(gap)}, largest {seconds(max(gaps))}"
    )
    rows = [("plain Delta in Spark, quiet", plain)]
    rows += [(f"live in {name}, quiet", found) for name, found in quiet.items()]
    rows += [(f"live in {name}, {scale.per_second} a second", found) for name, found in busy.items()]
    show(
        f"from a commit to its row in a table of {scale.rows:,}",
        ["", "p50", "p99", "p50 to plain", "p99 to plain"],
        [
            [label, *(seconds(value) for value in _two(found)), *(f"{value / unit:.2f}" for value in _two(found))]
            for label, found in rows
        ],
    )
    console.print(f"peak memory: {memory}")
    series = {label: [(float(number), value) for number, value in enumerate(found, 1)] for label, found in rows}
    console.print(f"plot: {lines('bench-live', 'from a commit to its row', Axes('read', 'seconds'), series)}")
    load = [
        Aim("transactions-per-second", rate, scale.per_second * RATE_MIN),
        Aim("cuts-published-meanwhile", cuts, max(1.0, took // CUT_SECONDS_MAX)),
        Aim("cut-gap-p95-seconds", gap, CUT_GAP_SECONDS_MAX, at_most=True),
    ]
    return load + [
        Aim(f"{name}-{what}-to-plain", value / unit, most, at_most=True)
        for name, limits in LIMITS.items()
        for what, value, most in zip(("p50", "p99"), _two(busy[name]), limits, strict=True)
    ]


def _gaps(times: list[float]) -> list[float]:
    """From each to the next. The first and the last moment bound the gaps at the ends, so no stall there is missed."""
    return [after - before for before, after in pairwise(times)]


def _gap_of_most_moments(gaps: list[float]) -> float:
    """The length that 95 % of all moments' gaps do not exceed."""
    total = 0.0
    for gap in sorted(gaps):
        total += gap
        if total >= GAP_SHARE * sum(gaps):
            return gap
    raise ValueError("no gaps")


def _two(found: list[float]) -> tuple[float, float]:
    return float(np.percentile(found, 50)), float(np.percentile(found, 99))


if __name__ == "__main__":
    sys.exit(main())
