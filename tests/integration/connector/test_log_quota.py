"""A backlog larger than the log may be comes through it all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_published, execute
from tests.running import Running, sync_once

from tailrace.connector.events import TroubleChanged
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

QUOTA_BYTES = 8 << 20
SEGMENT_BYTES = 1 << 20
TABLES = ["public.orders"]


def update(dsn: str, count: int) -> None:
    """Transactions of about 400 kB each, on four rows."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for number in range(count):
            conn.execute(
                "update orders set body = repeat(md5(%s::text || clock_timestamp()), 12500) where id = %s",
                [number, number % 4],
            )


def log_bytes(lake: Path) -> int:
    return sum(file.stat().st_size for file in (lake / "_tailrace" / "log").iterdir() if file.is_file())


def test_a_backlog_larger_than_the_quota_is_copied_before_and_after_the_snapshot(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    execute(
        database,
        "create table orders (id int primary key, body text); create publication p for table orders; "
        "insert into orders select n, 'new' from generate_series(0, 3) n",
    )
    execute(database, "select pg_create_logical_replication_slot('early', 'pgoutput')")
    source = source_of(database, slot="early", publication="p")
    settings = ConnectorSettings(
        lake, once=True, log_keep_seconds=0.0, log_quota_bytes=QUOTA_BYTES, log_segment_bytes_max=SEGMENT_BYTES
    )
    for _ in range(2):
        update(database, 60)
        run = Running(settings, source, spark)
        assert run.connector.wait(180)
        troubles = [event.message for event in run.events if isinstance(event, TroubleChanged)]
        assert troubles[-1:] in ([], [None]), "what was told of the quota is over"
        assert log_bytes(lake) <= QUOTA_BYTES + SEGMENT_BYTES
        assert_published(database, lake, TABLES)

    before = log_bytes(lake)
    update(database, 10)
    sync_once(replace(settings, log_compression="zstd", log_keep_seconds=3600.0), source, spark)
    assert log_bytes(lake) - before < 1 << 20
    assert_published(database, lake, TABLES)
