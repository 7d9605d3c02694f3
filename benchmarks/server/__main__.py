"""What a minute of requests does to a connector that streams.

python -m benchmarks.server [--quick] [--folder FOLDER]

One server with fifty connectors: one streams, the others are stopped. Measured are how fast it takes and publishes a
backlog, and, with a thousand changes a second, the time from a commit to the cut that has it: without a request, and
while clients ask what fifty connectors' worth of dashboards, probes and scrapes ask. The backlog also with twenty open
consoles, and no other client. The clients' own work is done on the same machine, so on few cores it counts against the
server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from benchmarks.aims import Aim, report
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.incremental.watch import BEATS, Lag
from benchmarks.live.shop import Writers
from benchmarks.orders import Orders
from benchmarks.server.consoles import CONSOLES, Consoles
from benchmarks.server.draining import Draining
from benchmarks.server.serving import Server
from benchmarks.server.traffic import Traffic
from demo.embedded import EmbeddedPostgres

from tailrace.lake.home import LakeHome

CONNECTORS = 50
PER_SECOND = 1000
ROWS = 100_000
SETTLE_SECONDS = 5.0
RATE_RATIO, CONSOLES_RATIO, LAG_RATIO_MAX, ANSWER_SECONDS_MAX = 0.8, 0.9, 2.0, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server")
    parser.add_argument("--quick", action="store_true", help="a quarter of a minute instead of a whole one")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
        EmbeddedPostgres(Path(folder) / "data", settings={"max_wal_size": "8GB"}) as postgres,
    ):
        scale = Scale(15.0, 200_000, 2) if options.quick else Scale(60.0, 1_000_000, 3)
        return report(_measure(postgres.create_database("served"), Path(folder), scale))


@dataclass(frozen=True)
class Scale:
    """How long, and how much."""

    lag_seconds: float
    backlog: int
    """Changes in each."""
    backlogs: int
    """Without requests, and as many with them, and with consoles."""


def _measure(dsn: str, folder: Path, scale: Scale) -> list[Aim]:
    Orders(dsn, "orders", ROWS).load()
    waiting = Orders(dsn, "waiting", ROWS).load()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table {BEATS} (id bigint generated always as identity primary key)")
    lake = LakeHome(folder / "lake")
    with Server(folder / "home") as server, PeakMemory() as memory:
        _create(server.address, dsn, lake.shared_folder)
        server.wait_for_cut(lake)
        with Writers(dsn, ROWS, PER_SECOND, "benchmarks.incremental.load") as load:
            load.run_for(SETTLE_SECONDS)
            quiet = _lags(dsn, lake, scale.lag_seconds)
            with Traffic(server.address, CONNECTORS) as traffic:
                busy = _lags(dsn, lake, scale.lag_seconds)
        rates = _drained(Draining(server.address, "connector-0", waiting, lake, scale.backlog), server, scale.backlogs)
    console.print(f"peak memory: {memory}")
    return [*_shown_rates(rates, scale.backlog), *_shown_lags(quiet, busy, traffic)]


def _create(address: str, dsn: str, lake: Path) -> None:
    config = {"connector.class": "tailrace.postgresql", "database.dsn": dsn}
    with httpx.Client(base_url=address, timeout=60) as client:
        for number in range(CONNECTORS):
            body = {"name": f"connector-{number}", "config": config, "initial_state": "STOPPED"}
            if number == 0:
                body |= {"config": config | {"lake.path": str(lake)}, "initial_state": "RUNNING"}
            client.post("/connectors", json=body).raise_for_status()


@dataclass(frozen=True)
class Rates:
    """Of the same connector."""

    quiet: list[float]
    busy: list[float]
    watched: list[float]
    """With open consoles."""


def _drained(draining: Draining, server: Server, backlogs: int) -> Rates:
    """By turns: what else the machine does meanwhile meets all of them. The first backlog counts for none."""
    draining.drain(draining.prepare())
    rates = Rates([], [], [])
    for _ in range(backlogs):
        rates.quiet.append(draining.drain(draining.prepare()))
        position = draining.prepare()
        with Traffic(server.address, CONNECTORS):
            rates.busy.append(draining.drain(position))
        with Consoles(server.address, "connector-0") as consoles:
            # They are open already, and have what a page asks first.
            rates.watched.append(draining.drain(draining.prepare()))
        if consoles.failed:
            raise RuntimeError(f"{consoles.failed} requests of consoles failed")
        asked = ", ".join(f"{count} for {kind}" for kind, count in sorted(consoles.requests.items()))
        console.print(f"{CONSOLES} consoles heard {consoles.events:,} events and asked: {asked}")
    return rates


def _lags(dsn: str, lake: LakeHome, length_seconds: float) -> list[float]:
    """How late commits were published in a stretch of time, by length."""
    lag = Lag(dsn, lake)
    with lag:
        time.sleep(length_seconds)
    return sorted(lag.seconds)


def _shown_rates(rates: Rates, changes: int) -> list[Aim]:
    kinds = {
        "without requests": rates.quiet,
        "with them": rates.busy,
        f"with {CONSOLES} open consoles": rates.watched,
    }
    show(
        f"a backlog of {changes:,} changes, taken and published",
        ["", "changes/s", "least", "most"],
        [
            [name, *(f"{each:,.0f}" for each in (statistics.median(found), min(found), max(found)))]
            for name, found in kinds.items()
        ],
    )
    quiet = statistics.median(rates.quiet)
    return [
        Aim("backlog-rate-with-to-without", statistics.median(rates.busy) / quiet, RATE_RATIO),
        Aim("consoles", statistics.median(rates.watched) / quiet, CONSOLES_RATIO),
    ]


def _shown_lags(quiet: list[float], busy: list[float], traffic: Traffic) -> list[Aim]:
    show(
        f"a stream of {PER_SECOND:,} changes a second",
        ["", "lag p50", "lag p90", "most"],
        [[name, *map(seconds, _three(lags))] for name, lags in (("without requests", quiet), ("with them", busy))],
    )
    show(
        f"requests for {CONNECTORS} connectors' worth of clients",
        ["", "requests", "a second", "p50", "p99", "failed"],
        [[kind, *traffic.row(kind)] for kind in traffic.kinds],
    )
    lag_ratio = statistics.median(busy) / statistics.median(quiet)
    return [
        Aim("lag-with-to-without", lag_ratio, LAG_RATIO_MAX, at_most=True),
        Aim("answer-p99-seconds", traffic.p99("status"), ANSWER_SECONDS_MAX, at_most=True),
        Aim("failed-requests", traffic.failed, 0, at_most=True),
    ]


def _three(found: list[float]) -> tuple[float, float, float]:
    return statistics.median(found), found[int(len(found) * 0.9)], found[-1]


if __name__ == "__main__":
    sys.exit(main())
