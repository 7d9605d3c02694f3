"""What a lake of many small tables costs next to a lake of one, as a user meets it: whole commands.

python -m benchmarks.tables [--tables 60] [--rounds 3]

`sync` without a change, `sync` with one change, and a query of one table, in both lakes by turns; medians.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from benchmarks.aims import Aim, report
from demo.embedded import EmbeddedPostgres

RATIO_MAX = 1.5
ROWS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables")
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as server:
        sizes = (1, options.tables)
        databases = {size: server.create_database(f"tables_{size}") for size in sizes}
        lakes = {size: str(Path(folder) / f"lake_{size}") for size in sizes}
        first = {size: _first(databases[size], lakes[size], size) for size in sizes}
        times = _rounds(databases, lakes, options.rounds)
    print(f"{'':>22}{'1 table':>10}{f'{options.tables} tables':>12}{'ratio':>8}")
    _show("first sync", [first[size] for size in sizes])
    for name, by_size in times.items():
        _show(name, [statistics.median(by_size[size]) for size in sizes])
    ratios = {name: _ratio([by_size[size] for size in sizes]) for name, by_size in times.items()}
    return report(
        [
            Aim("sync-unchanged-many-to-one", ratios["sync, no change"], RATIO_MAX, at_most=True),
            Aim("query-one-of-many-to-one", ratios["query of one table"], RATIO_MAX, at_most=True),
        ]
    )


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


def _ratio(times: list[list[float]]) -> float:
    one, many = (statistics.median(each) for each in times)
    return many / one


def _show(name: str, seconds: list[float]) -> None:
    one, many = seconds
    print(f"{name:>22}{one:>8.1f} s{many:>10.1f} s{many / one:>8.2f}")


if __name__ == "__main__":
    sys.exit(main())
