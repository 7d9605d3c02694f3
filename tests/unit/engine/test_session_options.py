"""What a Spark of ours is started with, and what a person may set instead."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.engine.spark.options import PYTHON_VARIABLE, local_cores, retrying, session_options
from tailrace.lake.formats import format_named
from tailrace.settings import SparkSettings

SHORT, DEEP = Path("/scratch"), Path("/", "x" * 100)
DAEMON, SOCKETS = "spark.python.daemon.module", "spark.python.unix.domain.socket"


@pytest.fixture(autouse=True)
def _own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)


def options(folder: Path, *settings: Any, **named: Any) -> dict[str, str]:
    return session_options(format_named("delta"), SparkSettings(*settings, **named), folder, brief=True)


@pytest.mark.parametrize(
    ("master", "started", "cores"),
    [
        ("local[*]", "local[*,4]", os.cpu_count()),
        ("local[2]", "local[2,4]", 2),
        ("local", "local[1,4]", 1),
        ("local[3,1]", "local[3,1]", 3),
        ("local[3, 7]", "local[3, 7]", 3),
        ("spark://here:7077", "spark://here:7077", None),
        ("yarn", "yarn", None),
    ],
)
def test_a_local_spark_tries_a_task_again_and_has_as_many_cores_as_it_says(
    master: str, started: str, cores: int | None
) -> None:
    assert retrying(master) == started
    assert local_cores(master) == local_cores(started) == cores


def test_workers_are_forked_from_our_daemon_and_reached_by_unix_sockets() -> None:
    chosen = options(SHORT)
    assert chosen[DAEMON] == "tailrace.engine.spark.daemon"
    assert (chosen[f"{SOCKETS}.enabled"], chosen[f"{SOCKETS}.dir"]) == ("true", str(SHORT))


def test_sockets_are_in_a_short_folder_of_their_own_where_the_other_is_deep() -> None:
    chosen = options(DEEP)
    assert len(chosen[f"{SOCKETS}.dir"]) <= 60
    assert Path(chosen[f"{SOCKETS}.dir"]).stat().st_mode & 0o777 == 0o700
    assert chosen["spark.local.dir"] == str(DEEP)


def test_executors_of_a_cluster_fork_workers_from_our_daemon_in_the_package_that_they_get() -> None:
    chosen, path = options(SHORT, "spark://here:7077"), "spark.executorEnv.PYTHONPATH"
    assert (chosen[DAEMON], chosen[path]) == ("tailrace.engine.spark.daemon", "tailrace.zip")
    assert f"{SOCKETS}.enabled" not in chosen
    own = options(SHORT, "spark://here:7077", conf=((path, "/opt/packages"), (DAEMON, "my.daemon")))
    assert (own[path], own[DAEMON]) == ("tailrace.zip:/opt/packages", "my.daemon")


def test_another_python_has_sparks_own_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DAEMON not in options(SHORT, conf=(("spark.pyspark.python", "/opt/python"),))
    monkeypatch.setenv(PYTHON_VARIABLE, "/opt/python")
    assert DAEMON not in options(SHORT)
    monkeypatch.setenv(PYTHON_VARIABLE, sys.executable)
    assert DAEMON in options(SHORT)


def test_what_a_person_sets_replaces_our_choice() -> None:
    own = (("spark.ui.enabled", "false"), (f"{SOCKETS}.enabled", "false"), ("spark.ui.retainedJobs", "7"))
    chosen = options(SHORT, conf=own, ui=True)
    assert own == tuple((name, chosen[name]) for name, _ in own)
    assert options(SHORT, ui=True)["spark.ui.enabled"] == "true"
    assert options(SHORT)["spark.ui.enabled"] == "false"
