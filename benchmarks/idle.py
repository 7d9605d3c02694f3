"""What processes hold that have nothing to do: one `sync`, and a server of fifty connectors.

Each has copied a small database and published a few changes since, so its Spark is there, as in any lake that is
written to now and then. After a rest, the proportional set sizes of all its processes are added up. The server of the
database is not among them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import psycopg
from benchmarks.aims import Aim
from benchmarks.figures import console, show
from benchmarks.live.syncing import Syncing
from benchmarks.server.serving import Server
from demo.embedded import EmbeddedPostgres

from tailrace.lake.home import LakeHome

SYNC_MB_MAX = 1200.0
SERVER_MORE_MB_MAX = 1000.0
TABLES, ROWS = 5, 1000
NO_CUT = (0, 0)
"""A lake's mark before its first cut."""
LOOKS = 5
LOOK_SECONDS = 2.0
PATIENCE_SECONDS = 900.0
SERVER = {"max_replication_slots": "80", "max_wal_senders": "80", "max_connections": "600"}


@dataclass(frozen=True)
class Scale:
    """How many, and for how long."""

    connectors: int
    changes: int
    """Transactions that are published, one after another, before the rest."""
    rest_seconds: float


FULL = Scale(50, 10, 60.0)
QUICK = Scale(3, 2, 3.0)


def measure(scale: Scale) -> list[Aim]:
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=SERVER) as server,
    ):
        dsn = server.create_database("idle")
        _load(dsn)
        sync = _sync(dsn, Path(folder) / "lake", scale)
        served = _server(dsn, Path(folder), scale)
    names = ["sync", f"serve, {scale.connectors} connectors"]
    kinds = sorted(sync | served)
    show(
        f"MB held with nothing to do, {scale.rest_seconds:g} s after the last publish",
        ["", *kinds, "all"],
        [
            [name, *(f"{found.get(kind, 0.0):,.0f}" for kind in kinds), f"{sum(found.values()):,.0f}"]
            for name, found in zip(names, (sync, served), strict=True)
        ],
    )
    alone, together = sum(sync.values()), sum(served.values())
    return [
        Aim("idle_sync_pss_mb", alone, SYNC_MB_MAX, at_most=True),
        Aim("idle_server_pss_mb_more", together - alone, SERVER_MORE_MB_MAX, at_most=True),
    ]


def _load(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        for number in range(TABLES):
            connection.execute(f"create table t{number} (id int primary key, v text)")
            connection.execute(f"insert into t{number} select n, md5(n::text) from generate_series(1, {ROWS}) n")


def _sync(dsn: str, lake: Path, scale: Scale) -> dict[str, float]:
    console.print("a sync of a small database")
    with Syncing(dsn, lake) as sync:
        sync.wait_for_cut()
        _publish_some(dsn, [LakeHome(lake)], scale)
        return _rested(sync.pid, scale)


def _server(dsn: str, folder: Path, scale: Scale) -> dict[str, float]:
    console.print(f"a server of {scale.connectors} connectors")
    lakes = [LakeHome(folder / f"lake-{number}") for number in range(scale.connectors)]
    with Server(folder / "home") as server, httpx.Client(base_url=server.address, timeout=60) as client:
        for number, lake in enumerate(lakes):
            config = {"connector.class": "tailrace.postgresql", "database.dsn": dsn, "lake.lake": str(lake.lake)}
            body = {"name": f"connector-{number}", "config": config}
            client.post("/connectors", json=body).raise_for_status()
            _wait_for_cut(lake, NO_CUT)
        _publish_some(dsn, lakes, scale)
        return _rested(server.pid, scale)


def _publish_some(dsn: str, lakes: list[LakeHome], scale: Scale) -> None:
    """A change of every table at a time, until every lake has it."""
    for number in range(scale.changes):
        marks = [lake.cuts.mark for lake in lakes]
        with psycopg.connect(dsn) as connection:
            for table in range(TABLES):
                connection.execute(f"update t{table} set v = 'changed' where id = {1 + number}")
        for lake, mark in zip(lakes, marks, strict=True):
            _wait_for_cut(lake, mark)


def _rested(pid: int, scale: Scale) -> dict[str, float]:
    """The median of some looks, by kind of process."""
    time.sleep(scale.rest_seconds)
    looks = []
    for _ in range(LOOKS):
        looks.append(_pss_mb(pid))
        time.sleep(LOOK_SECONDS)
    middle = statistics.median_low([sum(look.values()) for look in looks])
    return next(look for look in looks if sum(look.values()) == middle)


def _pss_mb(pid: int) -> dict[str, float]:
    """Of a process and all below it, by kind."""
    found: dict[str, float] = {}
    top = psutil.Process(pid)
    for process in (top, *top.children(recursive=True)):
        try:
            kind = "JVM" if "java" in process.name() else "first process" if process == top else "other Python"
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
        except (psutil.NoSuchProcess, OSError):
            continue
        found[kind] = found.get(kind, 0.0) + int(text.split("\nPss:")[1].split()[0]) * 1024 / 1e6
    return found


def _wait_for_cut(lake: LakeHome, mark: tuple[int, int]) -> None:
    """Until there is another one than when this was the mark."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while lake.cuts.mark == mark:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no cut of {lake.lake} was published")
        time.sleep(0.1)
