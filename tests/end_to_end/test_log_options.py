"""`tailrace sync --log-quota` and its siblings: a backlog larger than the log comes through it all the same."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from pyspark.sql import SparkSession
from tests.journey import run, start
from tests.postgres import wait_until

from tailrace.log.retention import disk_bytes

QUOTA_BYTES = 64 << 20
SEGMENT_BYTES = 4 << 20


def update(dsn: str, count: int) -> None:
    """Transactions of about a million bytes each, on four rows."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for number in range(count):
            conn.execute(
                "update orders set body = repeat(md5(%s::text || clock_timestamp()), 31250) where id = %s",
                [number, number % 4],
            )


def slots(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        return len(conn.execute("select from pg_replication_slots where database = current_database()").fetchall())


@pytest.mark.timeout(900)
def test_a_backlog_larger_than_the_quota_is_copied_before_and_after_the_snapshot(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake, log = tmp_path / "lake", tmp_path / "lake" / "_tailrace" / "log"
    with psycopg.connect(database) as conn:
        conn.execute("create table orders (id int primary key, body text)")
        conn.execute("insert into orders select n, 'new' from generate_series(0, 3) n")
    first = start("sync", database, str(lake))
    wait_until(lambda: slots(database) or first.poll() is not None, 60)
    first.kill()
    first.communicate()

    limited = ("sync", database, str(lake), "--once", "--log-quota", "64MB", "--log-segment", "4MB")
    for _ in range(2):
        update(database, 100)
        result = run(*limited)
        assert result.returncode == 0, result
        assert f"has reached its quota of {QUOTA_BYTES}" in result.stdout
        assert "· capture goes on" in result.stdout
        assert disk_bytes(log) <= QUOTA_BYTES
        assert max(file.stat().st_size for file in log.glob("*.arrows")) < 3 * SEGMENT_BYTES
        assert [table for table in compare(database, spark, lake, ["public.orders"]) if not table.equal] == []

    before = disk_bytes(log)
    update(database, 10)
    assert run("sync", database, str(lake), "--once", "--log-compression", "zstd").returncode == 0
    assert disk_bytes(log) - before < 1 << 20
    assert [table for table in compare(database, spark, lake, ["public.orders"]) if not table.equal] == []
