"""Whatever dies in the middle of a job, or hangs: nothing is lost, nothing is there twice, and no file of a lost
attempt is ever part of a table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from demo.compare import compare
from pyspark.sql import SparkSession
from tests.cluster import JVM, cluster
from tests.conftest import ROOT
from tests.crash.faults import STATEMENTS, execute
from tests.doors.faulty import Fault, FaultyEngine, Victim
from tests.integration.lake.equality import assert_published
from tests.journey import run as command
from tests.postgres import wait_until
from tests.running import running

from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

STEPS = ("copy", "publish", "read", "write", "merge", "verify")
TABLES = tuple(f"public.{name}" for name in "abcde")
STOP_SECONDS = 30.0
OLD_SECONDS = 8 * 24 * 3600


@pytest.fixture
def struck(tmp_path: Path) -> Path:
    """Where faults leave a file each time."""
    folder = tmp_path / "struck"
    folder.mkdir()
    return folder


def live(
    dsn: str, lake: Path, struck: Path, victim: Victim, steps: Sequence[str], *options: str, times: int = 1
) -> subprocess.CompletedProcess[str]:
    """Some steps of a lake's life, each with the fault."""
    arguments = [dsn, str(lake), str(struck), victim, str(times), *steps, *options]
    # Spark's workers import the tests' own source.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.faults", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
        check=False,
    )


def require_whole(dsn: str, lake: Path, done: subprocess.CompletedProcess[str], tables: Sequence[str] = TABLES) -> None:
    """All steps went through, and every table is the source."""
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert {state for each in told.values() if each is not True for state in each.values()} <= {"live"}, told
    assert [each for each in compare(dsn, lake, tables) if not each.equal] == []


def unnamed(lake: Path) -> list[Path]:
    """Files of rows that no commit of their table names."""
    found = []
    for log in lake.rglob("_delta_log"):
        lines = [json.loads(line) for path in log.glob("*.json") for line in path.read_text().splitlines()]
        named = {line["add"]["path"] for line in lines if "add" in line}
        found += [path for path in log.parent.rglob("*.parquet") if path.name not in named and log not in path.parents]
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", [Victim.WORKER, pytest.param(Victim.JVM, marks=pytest.mark.proof)])
def test_a_killed_worker_or_jvm_costs_an_attempt_in_every_step_and_what_it_wrote_is_deleted(
    database: str, tmp_path: Path, struck: Path, victim: Victim
) -> None:
    lake = tmp_path / "lake"
    require_whole(database, lake, live(database, lake, struck, victim, STEPS))
    assert len(list(struck.iterdir())) == len(STEPS), "every step met its fault"
    left = unnamed(lake)
    assert left, "or nothing that was written was lost"
    for path in left:
        os.utime(path, (time.time() - OLD_SECONDS,) * 2)
    assert command("maintain", str(lake)).returncode == 0
    assert unnamed(lake) == []
    assert [each for each in compare(database, lake, TABLES) if not each.equal] == []


@pytest.mark.timeout(600)
def test_a_task_that_fails_three_times_is_done_and_one_that_always_fails_stops_its_table_alone(
    database: str, tmp_path: Path, struck: Path
) -> None:
    lake = tmp_path / "lake"
    require_whole(database, lake, live(database, lake, struck, Victim.WORKER, ["copy"], times=3), TABLES[:3])
    assert len(list(struck.iterdir())) == 3
    done = live(database, lake, struck, Victim.WORKER, ["small", "publish"], "--table", "public.c", times=99)
    assert done.returncode == 0, done.stderr
    states = {"public.a": "live", "public.b": "live", "public.c": "errored"}
    assert json.loads(done.stdout.splitlines()[-1]) == {"small": states, "publish": states}
    reason = LakeHome(lake).tables.load()[TableId("public", "c")].reason
    assert "Python worker exited unexpectedly" in str(reason), reason
    assert [each for each in compare(database, lake, TABLES[:2]) if not each.equal] == []


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_driver_that_is_killed_in_any_step_continues(database: str, tmp_path: Path, struck: Path) -> None:
    lake, before = tmp_path / "lake", ()
    for step in STEPS:
        done = live(database, lake, struck, Victim.DRIVER, [*before, step])
        assert done.returncode == -signal.SIGKILL, (step, done.stderr)
        before = ("sync",)
    require_whole(database, lake, live(database, lake, struck, Victim.DRIVER, ["sync", "verify"]))


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", [Victim.JVM, Victim.NOBODY])
def test_on_a_cluster_an_executor_may_be_killed_or_hang_in_every_step(
    database: str, tmp_path: Path, struck: Path, victim: Victim
) -> None:
    """One that hangs is outrun by a second attempt, whose files count alone."""
    lake = tmp_path / "lake"
    conf = {
        "spark.executor.memory": "768m",
        "spark.executor.extraJavaOptions": JVM,
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.speculation.task.duration.threshold": "5s",
    }
    with cluster(tmp_path / "cluster") as master:
        options = ["--master", master, "--conf", *(f"{name}={value}" for name, value in conf.items())]
        done = live(database, lake, struck, victim, STEPS, *options)
    require_whole(database, lake, done)
    assert len(list(struck.iterdir())) == len(STEPS), "every step met its fault"
    assert unnamed(lake)


def test_a_connector_that_is_stopped_ends_within_seconds_although_its_job_hangs(
    database: str, tmp_path: Path, struck: Path, spark: SparkSession
) -> None:
    fault = Fault(Victim.NOBODY, "publish", struck, times=99)
    settings = ConnectorSettings(tmp_path / "lake")
    execute(database, STATEMENTS["copy"])
    with SparkEngine(LazySession(lambda: spark, spark)) as engine:
        with running(settings, source_of(database), FaultyEngine(engine, fault)) as run:
            run.wait_for(lambda: run.connector.status().cut is not None)
            execute(database, STATEMENTS["publish"])
            wait_until(lambda: fault.strikes)
            begun = time.monotonic()
            run.connector.stop()
            assert run.connector.wait(STOP_SECONDS), f"not within {STOP_SECONDS} s"
            assert time.monotonic() - begun < STOP_SECONDS
        with running(settings, source_of(database), engine) as run:
            run.catch_up()
    assert_published(database, settings.lake, TABLES[:3])
