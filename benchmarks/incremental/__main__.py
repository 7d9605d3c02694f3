"""How fast a table is copied again beside a stream of changes, next to Debezium's incremental snapshot.

python -m benchmarks.incremental [--quick] [--folder FOLDER]

A table of two million rows, and a thousand changes a second to it from the beginning to the end. Ours: a sync that runs
is told by a signal to copy the table, and the clock stops when a cut has the new copy; `tailrace verify` then compares
every row. Theirs: from the signal to the last row that its consumer gets, which does nothing with it.

Meanwhile another, small table is written to. From each of its commits to the cut that has it is the stream's lag, with
the copy and without it. And Postgres is asked how long a transaction of ours has been open.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, processor_seconds, seconds, show
from benchmarks.incremental import rival
from benchmarks.incremental.watch import BEATS, Lag, OpenTransactions
from benchmarks.live.shop import Writers
from benchmarks.live.syncing import Syncing
from benchmarks.orders import Orders
from benchmarks.plots import bars
from demo.embedded import EmbeddedPostgres

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep
from tailrace.model.signal import SignalState

DEBEZIUM_RATIO, OPEN_SECONDS_MAX, LAG_RATIO_MAX = 5.0, 10.0, 2.0
PER_SECOND = 1000
ROWS_SHARE_MIN = 0.9
SETTLE_SECONDS = 5.0
PATIENCE_SECONDS = 1800.0
SIGNAL = "benchmark"
TABLE = "orders"
SERVER = {"max_wal_size": "16GB", "shared_buffers": "512MB", "max_slot_wal_keep_size": "-1"}


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    rows: int
    chunk_rows: tuple[int, ...]
    """Of Debezium's chunks, in each of its copies."""
    quiet_seconds: float
    """How long the lag is looked at without a copy."""


FULL = Scale(2_000_000, (1024, 10_240), 30.0)
QUICK = Scale(200_000, (10_240,), 10.0)


@dataclass(frozen=True)
class Ours:
    """What our copy took, and what it did to the stream."""

    rows: int
    seconds: float
    open_seconds_max: float
    lag_without: list[float]
    lag_with: list[float]
    memory: str

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incremental")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one size of Debezium's chunks")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=SERVER) as server,
    ):
        return report(_measure(server.create_database("incremental"), Path(folder) / "lake", scale))


def _measure(dsn: str, lake: Path, scale: Scale) -> list[Aim]:
    Orders(dsn, TABLE, scale.rows).load()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table {BEATS} (id bigint generated always as identity primary key)")
    with Writers(dsn, scale.rows, PER_SECOND, "benchmarks.incremental.load") as load:
        with Syncing(dsn, lake) as sync:
            sync.wait_for_cut()
            ours = _ours(dsn, LakeHome(lake), load, scale)
        theirs = {}
        for chunk_rows in scale.chunk_rows:
            load.count_from_now()
            # Whatever watches our copy watches theirs: that takes its share of the machine.
            with PeakMemory(), Lag(dsn, LakeHome(lake), waits=False), OpenTransactions(dsn):
                theirs[chunk_rows] = found = rival.copy(dsn, TABLE, chunk_rows)
            # It does not emit a row that changed while its chunk was read; those are few.
            if found.rows < ROWS_SHARE_MIN * scale.rows:
                raise RuntimeError(f"Debezium copied {found.rows:,} rows of {scale.rows:,}")
            console.print(f"Debezium, chunks of {chunk_rows:,}: {load.per_second:,.0f} changes a second meanwhile")
    return _shown(ours, theirs)


def _ours(dsn: str, lake: LakeHome, load: Writers, scale: Scale) -> Ours:
    quiet, busy, transactions = Lag(dsn, lake), Lag(dsn, lake), OpenTransactions(dsn)
    with PeakMemory() as memory:
        load.run_for(SETTLE_SECONDS)
        with quiet:
            time.sleep(scale.quiet_seconds)
        load.count_from_now()
        with busy, transactions:
            begun, used = time.perf_counter(), processor_seconds()
            tailrace.signal(lake.lake, "execute-snapshot", {"data-collections": [f"public.{TABLE}"]}, id=SIGNAL)
            _wait_for_copy(lake)
            took = time.perf_counter() - begun
            used = processor_seconds() - used
        console.print(f"ours: {load.per_second:,.0f} changes a second meanwhile, {used:.1f} s of the processor")
    told = [each for each in lake.signals.notifications.all() if each.signal == SIGNAL]
    done = next(each for each in told if each.step is CopyStep.TABLE_COMPLETED)
    _verify(dsn, lake)
    return Ours(done.rows, took, transactions.seconds_max, quiet.seconds, busy.seconds, str(memory))


def _wait_for_copy(lake: LakeHome) -> None:
    """Until a cut has it."""
    begun = time.monotonic()
    while not any(record.signal.id == SIGNAL and record.state is SignalState.DONE for record in lake_signals(lake)):
        if time.monotonic() - begun > PATIENCE_SECONDS:
            raise TimeoutError("the copy did not end")
        time.sleep(0.05)
    cut = lake.cuts.newest()
    if cut is None or cut.copies.get(f"public.{TABLE}") != 2:
        raise RuntimeError(f"the newest cut does not have the second copy: {cut}")


def _verify(dsn: str, lake: LakeHome) -> None:
    """What was fast must be right, too."""
    command = [sys.executable, "-m", "tailrace.cli.main", "verify", dsn, str(lake.lake)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if done.returncode:
        raise RuntimeError(f"the lake differs from the source: {done.stdout} {done.stderr}")


def _shown(ours: Ours, theirs: dict[int, rival.Copied]) -> list[Aim]:
    copies: dict[str, Ours | rival.Copied] = {"tailrace, to a cut": ours}
    copies |= {f"Debezium, chunks of {chunk_rows:,}, to nothing": each for chunk_rows, each in theirs.items()}
    show(
        f"a table copied again under {PER_SECOND:,} changes a second",
        ["", "rows", "seconds", "rows/s"],
        [
            [name, f"{each.rows:,}", seconds(each.seconds), f"{each.rows_per_second:,.0f}"]
            for name, each in copies.items()
        ],
    )
    lags = {"without a copy": ours.lag_without, "with it": ours.lag_with}
    show(
        "from a commit to another table, to the cut that has it",
        ["", "commits", "p50", "p90", "most"],
        [[name, f"{len(found):,}", *map(seconds, _three(found))] for name, found in lags.items()],
    )
    console.print(f"our longest transaction at the source: {seconds(ours.open_seconds_max)}")
    memory = ", ".join(f"{chunk_rows:,}: {each.peak_mb:,.0f} MB" for chunk_rows, each in theirs.items())
    console.print(f"peak memory: {ours.memory}; Debezium, chunks of {memory}")
    rates = {name: each.rows_per_second for name, each in copies.items()}
    console.print(f"plot: {bars('bench-incremental', 'a table copied again under load', 'rows/s', rates)}")
    best = max(each.rows_per_second for each in theirs.values())
    lag_ratio = statistics.median(ours.lag_with) / statistics.median(ours.lag_without)
    return [
        Aim("windows-to-debezium", ours.rows_per_second / best, DEBEZIUM_RATIO),
        Aim("longest-transaction-seconds", ours.open_seconds_max, OPEN_SECONDS_MAX, at_most=True),
        Aim("lag-with-to-without", lag_ratio, LAG_RATIO_MAX, at_most=True),
    ]


def _three(found: list[float]) -> tuple[float, float, float]:
    ordered = sorted(found)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.9)], ordered[-1]


if __name__ == "__main__":
    sys.exit(main())
