"""How fast the rows that a database has get into a lake, next to Spark's JDBC reader and to COPY.

python -m benchmarks.snapshot [--quick] [--folder FOLDER] [--tls]

All eight tables of TPC-H. Whole commands against the newcomer's Spark, start and all, because that is what a newcomer
waits for. Against the tuned Spark and COPY, which are warm, a Spark that is warm too, and everything up to the cut.
With `--tls`, only what encryption costs the reading of rows (`encrypted`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.lakes import SteppedLake
from benchmarks.plots import bars
from benchmarks.snapshot import encrypted, tpch
from demo.embedded import EmbeddedPostgres

from tailrace.engine.spark.session import session
from tailrace.lake.formats import format_named

NEWCOMER_RATIO, TUNED_RATIO, COPY_RATIO = 4.0, 2.5, 0.45
COLD_RATIO_MAX = 2.0
"""Of the whole command, the start of Spark and all, to a copy by a Spark that is warm."""
SERVER = {"max_wal_size": "16GB", "shared_buffers": "512MB"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshot")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one round")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    parser.add_argument("--tls", action="store_true", help="measure what encryption costs, and nothing else")
    options = parser.parse_args()
    scale, rounds = (0.1, 1) if options.quick else (1.0, 3)
    if options.tls:
        with tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder:
            encrypted.measure(Path(folder), scale, rounds)
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=SERVER) as server,
    ):
        return report(_measure(server, Path(folder), scale, rounds))


def _measure(server: EmbeddedPostgres, folder: Path, scale: float, rounds: int) -> list[Aim]:
    dsn = server.create_database("tpch")
    rows = tpch.load(dsn, folder / "generated", scale)
    console.print(f"TPC-H at scale {scale:g}: {rows:,} rows")
    tpch.copy_to_nothing(server, dsn)
    warm, warm_memory = _warm(dsn, folder, rounds)
    copy = statistics.median(_timed(lambda: tpch.copy_to_nothing(server, dsn)) for _ in range(rounds))
    cold = _cold(dsn, folder, rounds)
    console.print("Spark's JDBC reader, tuned and as a newcomer writes it")
    tuned = _spark(dsn, folder, "tuned")
    begun = time.perf_counter()
    newcomer = _spark(dsn, folder, "newcomer")
    newcomer_cold = time.perf_counter() - begun
    figures = {
        "tailrace, warm": warm,
        "tailrace sync --once, whole command": cold,
        "Spark JDBC, tuned, warm": tuned["seconds"],
        "Spark JDBC, newcomer": newcomer["seconds"],
        "Spark JDBC, newcomer, whole command": newcomer_cold,
        "COPY to nothing, two connections": copy,
    }
    show(
        f"{rows:,} rows in eight tables, {rounds} rounds",
        ["", "seconds", "rows/s"],
        [[name, seconds(took), f"{rows / took:,.0f}"] for name, took in figures.items()],
    )
    console.print(f"peak memory: {warm_memory}; Spark tuned {tuned['all']:,.0f} MB, newcomer {newcomer['all']:,.0f} MB")
    console.print(f"plot: {bars('bench-snapshot', f'{rows:,} rows from Postgres to Delta', 's', figures)}")
    return [
        Aim("newcomer-to-ours", newcomer_cold / cold, NEWCOMER_RATIO),
        Aim("tuned-to-ours", tuned["seconds"] / warm, TUNED_RATIO),
        Aim("copy-to-ours", copy / warm, COPY_RATIO),
        Aim("cold_to_warm", cold / warm, COLD_RATIO_MAX, at_most=True),
    ]


def _warm(dsn: str, folder: Path, rounds: int) -> tuple[float, PeakMemory]:
    """The median of some copies by one warm Spark; the first does not count."""
    spark = session(format_named("delta"), folder / "spark.log", brief=False)
    with PeakMemory() as memory:
        times = [SteppedLake(dsn, folder / f"lake-{number}", spark).copy() for number in range(1 + rounds)]
    spark.stop()
    console.print(f"copies by one Spark: {', '.join(map(seconds, times))}")
    return statistics.median(times[1:]), memory


def _cold(dsn: str, folder: Path, rounds: int) -> float:
    """The median of some whole commands, each into a lake of its own."""
    lakes = [str(folder / f"lake-cold-{number}") for number in range(rounds)]
    times = [_timed(partial(_command, "tailrace.cli.main", "sync", dsn, lake, "--once")) for lake in lakes]
    console.print(f"whole commands: {', '.join(map(seconds, times))}")
    return statistics.median(times)


def _spark(dsn: str, folder: Path, how: str) -> dict[str, float]:
    shown = _command("benchmarks.snapshot.spark_jdbc", dsn, str(folder / "jdbc"), how)
    found: dict[str, float] = json.loads(shown.splitlines()[-1])
    return found


def _command(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
