"""A log without room: capture says so and waits, the server keeps what is not taken, and all of it arrives once."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import DEFAULTS, LogOptions
from tailrace.model.table import TableId
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.source import PostgresSource

QUOTA_BYTES = 4 << 20
TRANSACTIONS = 120
ROW_BYTES = 100_000
WAIT_SECONDS = 60


class Shop:
    """A database with a table, a publication and a slot, of which capture writes a log."""

    def __init__(self, dsn: str, log: Path, options: LogOptions = DEFAULTS) -> None:
        self.log = log
        self._dsn = dsn
        self._conn = psycopg.connect(dsn, autocommit=True)
        self._conn.execute(
            "create table orders (id int primary key, body text); create publication shop for all tables"
        )
        # A client that is silent for this long is cut off.
        source = PostgresSource(f"{dsn}?options=-c%20wal_sender_timeout%3D2s", publication="shop")
        claim = source.claim(None)
        source.prepare(claim, [TableId("public", "orders")], None)
        self.slot = claim["slot"]
        self.capture = Capture(source, claim, log, options)

    def close(self) -> None:
        self._conn.close()

    def sell(self, count: int) -> None:
        """As many transactions, each with an order of its own."""
        for _ in range(count):
            self._conn.execute(
                "insert into orders select coalesce(max(id), 0) + 1, 'order ' || coalesce(max(id), 0) + 1 || "
                "repeat('.', %s) from orders",
                [ROW_BYTES],
            )

    def slot_says(self, column: str) -> Any:
        query = f"select {column} from pg_replication_slots left join pg_stat_replication on pid = active_pid"
        row = self._conn.execute(f"{query} where slot_name = %s", [self.slot]).fetchone()
        return None if row is None else row[0]

    @property
    def confirmed(self) -> Lsn:
        return Lsn.parse(self.slot_says("confirmed_flush_lsn::text"))

    @property
    def written(self) -> Lsn:
        return Lsn.parse(self.slot_says("pg_current_wal_lsn()::text"))

    @property
    def problem(self) -> str:
        return self.capture.problem

    def answers_for(self, seconds: float) -> None:
        """Until the server has heard of capture that much later than now, on the same connection."""
        since, pid = self.slot_says("reply_time"), self.slot_says("active_pid")
        wait_until(lambda: self.slot_says("reply_time") > since + timedelta(seconds=seconds), WAIT_SECONDS)
        assert self.slot_says("active_pid") == pid


def disk_bytes(log: Path) -> int:
    """What the log's files take; one may be deleted while they are counted."""
    total = 0
    for file in log.iterdir():
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def orders(log: Path, after: int, upto: int) -> list[tuple[int, int]]:
    """(seq, order) of every change in these transactions."""
    reader = LogReader(log)
    found = []
    for piece in reader.ranges(after, upto, 1 << 20):
        for rows in read(log, piece, after, upto):
            for seq, payload in zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True):
                order = re.search(rb"order (\d+)\.", payload)
                found += [(seq, int(order[1]))] if order else []
    return found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 16 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a filesystem can be mounted by root only")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no filesystem can be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.mark.timeout(300)
def test_a_log_at_its_quota_takes_no_more_until_its_consumer_continues(database: str, tmp_path: Path) -> None:
    options = LogOptions(quota_bytes=QUOTA_BYTES, segment_bytes_max=1 << 20)
    shop = Shop(database, tmp_path / "log", options)
    with shop.capture:
        LogReader(shop.log).acknowledge("slow reader", 0)
        shop.sell(TRANSACTIONS)
        wait_until(lambda: shop.problem, WAIT_SECONDS)
        assert "quota" in shop.problem
        assert '"slow reader" has read up to transaction 0' in shop.problem

        reader = LogReader(shop.log)
        stood = reader.head.seq
        assert 0 < stood < TRANSACTIONS
        shop.answers_for(seconds=3)
        assert reader.refresh().seq == stood
        assert shop.confirmed <= reader.head.ordinal < shop.written
        assert disk_bytes(shop.log) <= QUOTA_BYTES

        seen: list[tuple[int, int]] = []

        def has_more() -> bool:
            return reader.refresh().seq > len(seen)

        while len(seen) < TRANSACTIONS:
            wait_until(has_more, WAIT_SECONDS)
            seen.extend(orders(shop.log, len(seen), reader.head.seq))
            assert disk_bytes(shop.log) <= QUOTA_BYTES
            reader.acknowledge("slow reader", reader.head.seq)
        assert seen == [(number, number) for number in range(1, TRANSACTIONS + 1)]
        wait_until(lambda: not shop.problem, WAIT_SECONDS)
        target = shop.written
        wait_until(lambda: shop.confirmed >= target, WAIT_SECONDS)
    shop.close()


@pytest.mark.timeout(300)
def test_a_full_disk_stops_nothing_for_good(database: str, small_disk: Path) -> None:
    shop = Shop(database, small_disk / "log")
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 13 << 20)
    with shop.capture:
        shop.sell(5)
        wait_until(lambda: (shop.log / "head").exists() and LogReader(shop.log).head.seq == 5, WAIT_SECONDS)
        shop.sell(TRANSACTIONS - 5)
        wait_until(lambda: shop.problem, WAIT_SECONDS)
        assert "No space left on device" in shop.problem
        stood = LogReader(shop.log).head
        assert 5 <= stood.seq < TRANSACTIONS
        shop.answers_for(seconds=3)
        assert LogReader(shop.log).head.seq == stood.seq
        assert shop.confirmed <= stood.ordinal

        filler.unlink()
        wait_until(lambda: LogReader(shop.log).head.seq == TRANSACTIONS, WAIT_SECONDS)
        wait_until(lambda: not shop.problem, WAIT_SECONDS)
        target = shop.written
        wait_until(lambda: shop.confirmed >= target, WAIT_SECONDS)
    assert orders(shop.log, 0, TRANSACTIONS) == [(number, number) for number in range(1, TRANSACTIONS + 1)]
    verified = CliRunner().invoke(app, ["log", "verify", str(shop.log)])
    assert verified.exit_code == 0, verified.output
    shop.close()
