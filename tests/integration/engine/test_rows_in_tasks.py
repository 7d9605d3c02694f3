"""Every row of a lake is accounted for by Spark's tasks: none passes through the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

SLACK_MS = 50
"""Clocks of the file system and of the JVM differ by so much at most."""


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database) as connection:
        connection.execute("create table a (id int primary key, v text)")
        connection.execute("insert into a select n, 'first' from generate_series(1, 20000) n")
        connection.execute("create table b (id int)")
        connection.execute("alter table b replica identity full")
        connection.execute("insert into b select n % 10 from generate_series(1, 100) n")
    return database


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.rowless", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_copy_stream_windows_merge_and_verify_run_in_tasks_alone(filled: str, tmp_path: Path) -> None:
    lake, events = tmp_path / "lake", tmp_path / "events"
    events.mkdir()
    done = run(filled, lake, events)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"equal": True, "tables": {"public.a": 30_000, "public.b": 100, "public.grown": 5_000}}
    tasks, described = logged(events)
    for what in (
        "copy",
        "publish public.a",
        "read rows of public.grown",
        "write rows of public.grown",
        "verify",
        "again",
    ):
        assert any(what in each for each in described), (what, described)
    assert unaccounted(lake, tasks) == []


def test_a_driver_that_works_on_rows_itself_is_found_out(filled: str, tmp_path: Path) -> None:
    done = run(filled, tmp_path / "lake", tmp_path, "one-thread")
    assert (done.returncode, "RowInDriverError" in done.stderr) == (1, True)


def logged(events: Path) -> tuple[list[tuple[int, int]], set[str]]:
    """When each task ran, in milliseconds, and what the jobs were called."""
    tasks, described = [], set()
    for path in (path for path in events.rglob("*") if path.name.startswith(("local-", "events_"))):
        for line in path.read_text().splitlines() if path.is_file() else ():
            event: dict[str, Any] = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                info = event["Task Info"]
                tasks.append((info["Launch Time"], info["Finish Time"]))
            elif event["Event"] == "SparkListenerJobStart":
                described.add(event["Properties"].get("spark.job.description", ""))
    return tasks, described


def unaccounted(lake: Path, tasks: list[tuple[int, int]]) -> list[str]:
    """Files of rows, and rows in files for a moment, that were not written while a task ran."""
    files = [path for path in lake.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert len(files) > 10
    written = {path: path.stat().st_mtime_ns // 1_000_000 for path in files}
    return [
        str(path)
        for path, at in written.items()
        if not any(begun - SLACK_MS <= at <= ended + SLACK_MS for begun, ended in tasks)
    ]
