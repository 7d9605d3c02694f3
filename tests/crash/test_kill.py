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

from tailrace.lake.formats import format_named

PUBLISHES = 6


@pytest.mark.timeout(600)
def test_killed_in_the_snapshot_in_capture_and_between_two_publishes_the_lake_still_equals_the_source(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    load(database)
    lake = tmp_path / "lake"
    sync = ("sync", database, str(lake), "--publish-every", "1")
    with Workload(database, per_second=15):
        assert run(*sync, TAILRACE_FAILPOINT="snapshot.table.copied").returncode == -signal.SIGKILL
        assert any(seq is not None for seq in seqs(spark, lake))
        assert cuts(lake).all() == []

        doomed = start(*sync, TAILRACE_FAILPOINT=f"publish.table:{PUBLISHES}")
        wait_for_cuts(doomed, lake, 1)
        (capture,) = [child for child in psutil.Process(doomed.pid).children() if "capture" in str(child.cmdline())]
        capture.kill()
        wait_until(lambda: doomed.poll() is not None, 300)
        doomed.communicate()
        assert doomed.returncode == -signal.SIGKILL
        newest = cuts(lake).newest()
        assert newest is not None
        assert any(seq > newest.seq for seq in seqs(spark, lake) if seq is not None), "nothing was half published"
    assert run("sync", database, str(lake), "--once").returncode == 0
    assert [table for table in compare(database, spark, lake, TABLES) if not table.equal] == []
    wait_until(lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(lake) in str(p.info["cmdline"])], 20)


def seqs(spark: SparkSession, lake: Path) -> list[int | None]:
    """For each table that has its rows, the transaction it stands at, 0 for a snapshot's; None for the others."""
    versions = [format_named("delta").table(spark, path).version() for path in (lake / "public").iterdir()]
    return [version.stamp.seq or 0 if version and version.stamp else None for version in versions]
