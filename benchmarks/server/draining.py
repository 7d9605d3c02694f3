"""What a stream can do: a backlog that waits at the source, taken and published as fast as it goes.

The connector is paused while the backlog is written, so it takes nothing meanwhile. Resumed, it has nothing to wait
for: what the backlog takes from then to the cut that has all of it is the connector's capacity, whatever writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import psycopg
from benchmarks.incremental.watch import BEATS
from benchmarks.orders import Orders

from tailrace.lake.home import LakeHome
from tailrace.source.kinds import source_of

PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 0.02


class Draining:
    """Backlogs of one connector, one after another."""

    def __init__(self, address: str, connector: str, orders: Orders, lake: LakeHome, changes: int) -> None:
        self._path = f"{address}/connectors/{connector}"
        self._orders = orders
        self._source = source_of(orders.dsn)
        self._cuts = lake.cuts
        self.changes = changes

    def prepare(self) -> int:
        """A backlog, and the position that its last transaction is after."""
        httpx.put(f"{self._path}/pause", timeout=60).raise_for_status()
        _wait(lambda: httpx.get(f"{self._path}/status", timeout=60).json()["connector"]["state"] == "PAUSED")
        self._orders.change(self.changes)
        position = self._source.now().ordinal
        with psycopg.connect(self._orders.dsn, autocommit=True) as connection:
            connection.execute(f"insert into {BEATS} default values")
        return position

    def drain(self, position: int) -> float:
        """Changes a second, from the resumption to the cut that has all of them."""
        begun = time.monotonic()
        httpx.put(f"{self._path}/resume", timeout=60).raise_for_status()
        _wait(lambda: (cut := self._cuts.newest()) is not None and cut.position.ordinal > position)
        return self.changes / (time.monotonic() - begun)


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing has changed for minutes")
        time.sleep(LOOK_SECONDS)
