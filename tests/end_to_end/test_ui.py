"""The console of one lake from the command line: `tailrace sync --ui`, and `tailrace ui` beside it."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests import journey
from tests.integration.lake.equality import execute
from tests.postgres import wait_until


@contextmanager
def _started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that shows a console, and the console's address. Killed at the end, if it lives."""
    process = journey.start(*arguments)
    assert process.stdout is not None
    drains: list[threading.Thread] = []
    try:
        found = re.match(r"console at (http://127\.0\.0\.1:\d+/ui/c/\S+)\n", process.stdout.readline())
        assert found, process.communicate(timeout=60)
        # What it prints later must not fill the pipes.
        drains = [threading.Thread(target=each.read) for each in (process.stdout, process.stderr) if each is not None]
        for each in drains:
            each.start()
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        for each in drains:
            each.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _state(page: str) -> str:
    server, _, name = page.partition("/ui/c/")
    return str(httpx.get(f"{server}/connectors/{name}/status", timeout=30).json()["connector"]["state"])


def _ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(60)


def test_a_sync_shows_its_console_and_two_others_look_at_it_from_outside(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    lake = tmp_path / "my lake"
    with _started("sync", database, str(lake), "--ui") as (sync, page):
        assert page.endswith(f"/ui/c/{quote(lake.name)}")
        assert httpx.get(page).status_code == 200
        journey.wait_for_cuts(sync, lake, 1)
        assert _state(page) == "RUNNING"
        with _started("ui", str(lake)) as (first, outside), _started("ui", str(lake)) as (second, other):
            assert {_state(outside), _state(other)} == {"RUNNING"}
            assert _ended(first) == 0
            assert _ended(sync) == 0
            wait_until(lambda: _state(other) == "STOPPED")
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0


def test_what_is_no_lake_and_what_others_could_reach_is_refused(tmp_path: Path) -> None:
    ended = journey.run("ui", str(tmp_path))
    assert ended.returncode == 2
    assert "is not a Tailrace lake" in ended.stderr
    ended = journey.run("ui", str(tmp_path), "--listen", "0.0.0.0:0")
    assert ended.returncode == 2
    assert "--token-file" in ended.stderr


@pytest.mark.parametrize("option", ["--open", "--listen=127.0.0.1:8083"])
def test_options_of_a_console_that_is_not_wanted_are_refused(tmp_path: Path, option: str) -> None:
    ended = journey.run("sync", "postgresql://nobody@127.0.0.1:1/none", str(tmp_path / "lake"), option)
    assert ended.returncode == 2
    assert "add --ui" in ended.stderr
    assert not (tmp_path / "lake").exists()
