"""What a small batch costs in a small and in a large table."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.aims import Aim
from benchmarks.apply.scale import Scale
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.lakes import SteppedLake
from benchmarks.orders import Orders
from benchmarks.plots import Axes, lines
from demo.embedded import EmbeddedPostgres

RATIOS_MAX = {"recent": 1.2, "random": 2.0}
UNCOUNTED = 3


def measure(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn = server.create_database("sizes")
    tables = {
        name: Orders(dsn, name, rows).load()
        for name, rows in (("small", scale.small_rows), ("large", scale.large_rows))
    }
    lake = SteppedLake(dsn, folder / "lake-sizes")
    console.print(f"{scale.small_rows:,} and {scale.large_rows:,} rows copied in {seconds(lake.copy())}")
    times: dict[tuple[str, str], list[float]] = {}
    with PeakMemory() as memory, lake.publisher() as publisher:
        for keys in RATIOS_MAX:
            for _ in range(UNCOUNTED + scale.batches):
                for name, orders in tables.items():
                    orders.change(scale.batch, recent=keys == "recent")
                    lake.fill_log()
                    times.setdefault((name, keys), []).append(publisher.publish())
    _show(times, scale, memory)
    medians = {each: statistics.median(found[UNCOUNTED:]) for each, found in times.items()}
    return [
        Aim(f"large-to-small-{keys}", medians["large", keys] / medians["small", keys], most, at_most=True)
        for keys, most in RATIOS_MAX.items()
    ]


def _show(times: dict[tuple[str, str], list[float]], scale: Scale, memory: PeakMemory) -> None:
    rows = {"small": scale.small_rows, "large": scale.large_rows}
    show(
        f"{scale.batch:,} changes in one batch, {scale.batches} of them",
        ["rows", "keys", "first", "median", "largest"],
        [
            [
                f"{rows[name]:,}",
                keys,
                seconds(found[0]),
                seconds(statistics.median(found[UNCOUNTED:])),
                seconds(max(found[UNCOUNTED:])),
            ]
            for (name, keys), found in times.items()
        ],
    )
    console.print(f"peak memory: {memory}")
    series = {
        f"{rows[name]:,} rows, {keys} keys": [(float(number), value) for number, value in enumerate(found, 1)]
        for (name, keys), found in times.items()
    }
    title = f"{scale.batch:,} changes, from the log to published"
    console.print(f"plot: {lines('bench-apply-sizes', title, Axes('batch', 'seconds'), series)}")
