"""Changes that are committed and then looked for."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.live.shop import Shop

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.source.kinds import source_of

UNCOUNTED = 5
PATIENCE_SECONDS = 120.0

_QUERY = "select id, status, total, note from {table} where id = {order}"


class Probes:
    """One at a time."""

    def __init__(self, shop: Shop, lake: Path) -> None:
        self._shop = shop
        self._lake = lake
        self._source = source_of(shop.dsn)
        self._log = LogReader(lake / "_tailrace" / "log")
        self._vouched = LakeHome(lake).runs.vouched
        self._chance = random.Random(7)
        self._numbers = itertools.count(1)

    def plain(self, spark: Any, count: int) -> list[float]:
        """What the query takes on the plain table."""
        path = self._lake / "public" / "orders"
        found = []
        for _ in range(UNCOUNTED + count):
            query = _QUERY.format(table=f"delta.`{path}`", order=self._chance.randint(1, self._shop.rows))
            begun = time.perf_counter()
            assert len(spark.sql(query).collect()) == 1
            found.append(time.perf_counter() - begun)
        return found[UNCOUNTED:]

    def read(self, session: Any, count: int) -> list[float]:
        """Seconds from each commit to a read that shows it."""
        return [self._one(session) for _ in range(UNCOUNTED + count)][UNCOUNTED:]

    def _one(self, session: Any) -> float:
        order, note = self._chance.randint(1, self._shop.rows), f"probe {next(self._numbers)}"
        with psycopg.connect(self._shop.dsn, autocommit=True) as connection:
            connection.execute("update orders set note = %s where id = %s", [note, order])
            begun = time.perf_counter()
        self._wait_for_log(begun)
        while True:
            cut = tailrace.cut(session, self._lake, register=False)
            rows = list(cut.engine.rows(cut.sql(_QUERY.format(table="orders", order=order))))
            if rows and rows[0][3] == note:
                return time.perf_counter() - begun
            self._require_patience(begun)

    def _wait_for_log(self, begun: float) -> None:
        """Until what is committed now is durable in the log and vouched for: a read before that would only be
        repeated."""
        end = self._source.now().ordinal
        while self._log.refresh().ordinal < end or self._log.seq_at(self._vouched.load()) < self._log.seq_at(end):
            self._require_patience(begun)
            time.sleep(0.005)

    def _require_patience(self, begun: float) -> None:
        if time.perf_counter() - begun > PATIENCE_SECONDS:
            raise TimeoutError("a commit was not readable for minutes")
