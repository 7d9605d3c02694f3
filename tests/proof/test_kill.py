"""kill -9 of the connector or of capture at random points, again and again: the lake equals the source in the end."""

from __future__ import annotations

import random
from pathlib import Path

import psutil
import pytest
from demo.compare import compare
from demo.shop import TABLES, Workload, load
from tests.journey import cuts, run, start, wait_for_cuts
from tests.postgres import wait_until

ROUNDS = 10
POINTS = {
    "snapshot.table.copied": 4,
    "publish.table": 20,
    "storage.link": 20,
    "publish.durable": 20,
    "capture.flushed": 50,
}


@pytest.mark.timeout(3600)
def test_killed_at_random_points_again_and_again_the_lake_equals_the_source(database: str, tmp_path: Path) -> None:
    load(database)
    chance, lake = random.Random(11), tmp_path / "lake"
    sync = ("sync", database, str(lake), "--publish-every", "0.5")
    with Workload(database, per_second=60):
        for _ in range(ROUNDS):
            point = chance.choice(list(POINTS))
            doomed = start(*sync, TAILRACE_FAILPOINT=f"{point}:{chance.randint(1, POINTS[point])}")
            try:
                wait_for_cuts(doomed, lake, len(cuts(lake).all()) + chance.randint(1, 8))
            except AssertionError:
                assert doomed.returncode == -9, doomed.communicate()
            doomed.kill()
            doomed.communicate()
    assert run("sync", database, str(lake), "--once").returncode == 0
    assert [table for table in compare(database, lake, TABLES) if not table.equal] == []
    wait_until(lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(lake) in str(p.info["cmdline"])], 20)
