"""kill -9 at the worst moments, then the same command again: the lake equals the source."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
from demo.compare import compare
from demo.shop import TABLES, Workload, load
from pyspark.sql import SparkSession
from tests.journey import cuts, run, start, wait_for_cuts
from tests.postgres import wait_until

from tailrace.lake.delta import DeltaTable


@pytest.mark.timeout(900)
def test_killed_in_snapshot_in_streaming_and_between_two_publishes_the_lake_still_equals_the_source(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    load(database)
    lake = tmp_path / "lake"
    sync = ("sync", database, str(lake), "--publish-every", "1")
    with Workload(database, per_second=60):
        assert run(*sync, TAILRACE_FAILPOINT="snapshot.table.copied").returncode == -signal.SIGKILL
        stamps = [DeltaTable(spark, path).version().stamp for path in (lake / "public").iterdir()]
        assert any(stamps)
        assert cuts(lake).all() == []

        streaming = start(*sync)
        wait_for_cuts(streaming, lake, 2)
        streaming.kill()
        streaming.communicate()

        assert run(*sync, TAILRACE_FAILPOINT="publish.table").returncode == -signal.SIGKILL
        newest = cuts(lake).newest()
        assert newest is not None
        ahead = [path for path in (lake / "public").iterdir() if _seq(spark, path) > newest.seq]
        assert 0 < len(ahead) < len(TABLES)

        survivor = start(*sync)
        count = len(cuts(lake).all())
        wait_for_cuts(survivor, lake, count + 1)
        (capture,) = [
            child for child in psutil.Process(survivor.pid).children() if "capture_process" in str(child.cmdline())
        ]
        capture.kill()
        wait_for_cuts(survivor, lake, len(cuts(lake).all()) + 2)
        survivor.kill()
        survivor.communicate()
    assert run("sync", database, str(lake), "--once").returncode == 0
    result = compare(database, spark, lake, TABLES)
    assert [table for table in result if not table.equal] == []
    wait_until(lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(lake) in str(p.info["cmdline"])], 20)


def _seq(spark: SparkSession, path: Path) -> int:
    stamp = DeltaTable(spark, path).version().stamp
    assert stamp is not None
    return stamp.seq or 0
