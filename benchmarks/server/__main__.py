"""What a minute of requests does to a connector that streams.

python -m benchmarks.server [--quick] [--folder FOLDER]

One server with fifty connectors: one streams a thousand changes a second, the others are stopped. Measured are the
changes that come into the log and the time from a commit to the cut that has it, first without a request, then while
clients ask what fifty connectors' worth of dashboards, probes and scrapes ask.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psycopg
from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.incremental.watch import BEATS, Lag
from benchmarks.live.shop import Writers
from benchmarks.orders import Orders
from benchmarks.server.serving import Server
from benchmarks.server.traffic import Traffic
from demo.embedded import EmbeddedPostgres

from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader

CONNECTORS = 50
PER_SECOND = 1000
ROWS = 100_000
SETTLE_SECONDS = 5.0
RATE_RATIO, LAG_RATIO_MAX, ANSWER_SECONDS_MAX = 0.95, 2.0, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server")
    parser.add_argument("--quick", action="store_true", help="a quarter of a minute instead of a whole one")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
        EmbeddedPostgres(Path(folder) / "data", settings={"max_wal_size": "8GB"}) as postgres,
    ):
        return report(_measure(postgres.create_database("served"), Path(folder), 15.0 if options.quick else 60.0))


def _measure(dsn: str, folder: Path, length_seconds: float) -> list[Aim]:
    Orders(dsn, "orders", ROWS).load()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table {BEATS} (id bigint generated always as identity primary key)")
    lake = LakeHome(folder / "lake")
    with Server(folder / "home") as server, PeakMemory() as memory:
        _create(server.address, dsn, lake.path)
        server.wait_for_cut(lake)
        with Writers(dsn, ROWS, PER_SECOND, "benchmarks.incremental.load") as load:
            load.run_for(SETTLE_SECONDS)
            quiet = Phase(dsn, lake)
            quiet.run(length_seconds)
            with Traffic(server.address, CONNECTORS) as traffic:
                busy = Phase(dsn, lake)
                busy.run(length_seconds)
    console.print(f"peak memory: {memory}")
    return _shown(quiet, busy, traffic)


def _create(address: str, dsn: str, lake: Path) -> None:
    config = {"connector.class": "tailrace.postgresql", "database.dsn": dsn}
    with httpx.Client(base_url=address, timeout=60) as client:
        for number in range(CONNECTORS):
            body = {"name": f"connector-{number}", "config": config, "initial_state": "STOPPED"}
            if number == 0:
                body |= {"config": config | {"lake.path": str(lake)}, "initial_state": "RUNNING"}
            client.post("/connectors", json=body).raise_for_status()


class Phase:
    """A stretch of time: how much came into the log, and how late it was published."""

    def __init__(self, dsn: str, lake: LakeHome) -> None:
        self._lag = Lag(dsn, lake)
        self._lake = lake
        self.changes_per_second = 0.0

    def run(self, length_seconds: float) -> None:
        begun, before = time.monotonic(), LogReader(self._lake.log).head.position
        with self._lag:
            time.sleep(length_seconds)
            changes = LogReader(self._lake.log).head.position - before
            self.changes_per_second = changes / (time.monotonic() - begun)

    @property
    def lags(self) -> list[float]:
        return sorted(self._lag.seconds)


def _shown(quiet: Phase, busy: Phase, traffic: Traffic) -> list[Aim]:
    phases = {"without requests": quiet, "with them": busy}
    show(
        f"a stream of {PER_SECOND:,} changes a second",
        ["", "records/s", "lag p50", "lag p90", "most"],
        [[name, f"{each.changes_per_second:,.0f}", *map(seconds, _three(each.lags))] for name, each in phases.items()],
    )
    show(
        f"requests for {CONNECTORS} connectors' worth of clients",
        ["", "requests", "a second", "p50", "p99", "failed"],
        [[kind, *traffic.row(kind)] for kind in traffic.kinds],
    )
    lag_ratio = statistics.median(busy.lags) / statistics.median(quiet.lags)
    return [
        Aim("stream-rate-with-to-without", busy.changes_per_second / quiet.changes_per_second, RATE_RATIO),
        Aim("lag-with-to-without", lag_ratio, LAG_RATIO_MAX, at_most=True),
        Aim("answer-p99-seconds", traffic.p99("status"), ANSWER_SECONDS_MAX, at_most=True),
        Aim("failed-requests", traffic.failed, 0, at_most=True),
    ]


def _three(found: list[float]) -> tuple[float, float, float]:
    return statistics.median(found), found[int(len(found) * 0.9)], found[-1]


if __name__ == "__main__":
    sys.exit(main())
