"""The console of one lake without a server: beside the run in its own process, and from outside."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import assert_equal, execute
from tests.lake_consoles import (
    FREE,
    LakeConsole,
    console_from_outside,
    lake_configuration,
    running_with_console,
)
from tests.postgres import wait_until

from tailrace.connector.connector import Connector
from tailrace.connector.events import ConnectorState
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.server.lake_host.host import shown_config
from tailrace.server.lake_host.live import LiveRun
from tailrace.server.lake_host.serving import console_beside, require_home
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of
from tailrace.storage.files import write_json

TABLE = "create table t (id int primary key, name text); insert into t values (1, 'one'), (2, 'two')"


def _synced(dsn: str, lake: Path) -> None:
    """As `tailrace sync --once` does it."""
    connector = Connector(ConnectorSettings(lake, once=True), source_of(dsn), OneThread())
    connector.start()
    assert connector.wait(60)


@contextmanager
def _syncing(dsn: str, lake: Path) -> Iterator[Connector]:
    """A run that is not the console's."""
    connector = Connector(ConnectorSettings(lake, publish_every_seconds=0.1), source_of(dsn), OneThread())
    connector.start()
    try:
        wait_until(lambda: connector.status().state is ConnectorState.RUNNING)
        yield connector
    finally:
        connector.stop()
        connector.wait(60)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "a lake & <b>"


def _progress(console: LakeConsole) -> Any:
    return console.ask("GET", f"{_path(console)}/progress")


def _path(console: LakeConsole) -> str:
    return f"/connectors/{console.page.rpartition('/')[2]}"


def _state(console: LakeConsole) -> str:
    return str(_progress(console)["life"]["state"])


def test_a_run_is_paused_resumed_stopped_and_started_again_by_its_console(database: str, lake: Path) -> None:
    execute(database, TABLE)
    with running_with_console(database, lake) as (console, _):
        path = _path(console)
        wait_until(lambda: _progress(console)["cut"] is not None)
        for action, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED"), ("resume", "RUNNING")):
            console.ask("PUT", f"{path}/{action}", status=(202, 204))
            console.wait_for(console.name, state)
        console.ask("POST", f"{path}/restart", status=204)
        execute(database, "insert into t values (3, 'three')")
        wait_until(lambda: _progress(console)["cut"]["seq"] == 1)
    assert_equal(database, lake, "public.t")


def test_offsets_are_edited_while_the_run_is_stopped_in_the_console_and_not_before(database: str, lake: Path) -> None:
    execute(database, TABLE)
    with running_with_console(database, lake) as (console, _):
        path = _path(console)
        wait_until(lambda: _progress(console)["cut"] is not None)
        execute(database, "insert into t values (3, 'three')")
        wait_until(lambda: _progress(console)["cut"]["seq"] == 1)
        refused = console.ask("DELETE", f"{path}/offsets", status=400)
        assert "STOPPED state" in refused["message"]
        console.ask("PUT", f"{path}/stop", status=204)
        console.wait_for(console.name, "STOPPED")
        assert "reset" in console.ask("DELETE", f"{path}/offsets")["message"]
        console.ask("PUT", f"{path}/resume", status=202)
        wait_until(lambda: console.ask("GET", f"{path}/offsets/history")[0]["state"] == "taken")
        wait_until(lambda: console.ask("GET", f"{path}/tables")[0]["copies"] >= 2)


def test_an_error_that_ends_the_run_is_the_commands_error(database: str, lake: Path) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    found = lake_configuration(lake, database)
    connector = Connector(found.settings, source_of(found.dsn), OneThread())
    with LakeHome(lake).locked(), console_beside(connector, found, shown_config(found), FREE) as beside:
        beside.run.begin()
        with pytest.raises(DefiniteError, match="in use by another tailrace"):
            _wait_for_end(beside.run)


def _wait_for_end(run: LiveRun) -> None:
    while run.wait():
        pass


def test_a_console_from_outside_hears_what_another_process_publishes(database: str, lake: Path) -> None:
    execute(database, TABLE)
    with _syncing(database, lake), console_from_outside(lake) as console:
        wait_until(lambda: _state(console) == "RUNNING")
        heard: list[dict[str, Any]] = []
        with console.http.stream("GET", f"{_path(console)}/events") as events:
            lines = events.iter_lines()
            assert next(lines) == ": listening"
            execute(database, "insert into t values (3, 'three')")
            for line in lines:
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:]))
                if heard and heard[-1].get("seq") == 1 and "published" in heard[-1]:
                    break
        assert heard[-1]["transactions"] == 1
        assert heard[-1]["seconds"] > 0, "the run's own word, from its messages"
        wait_until(lambda: (_progress(console)["lag"] or {}).get("transactions") == 0)
        assert _progress(console)["log"]["seq"] == 1


def test_a_console_from_outside_says_how_each_run_begins_and_ends(database: str, lake: Path) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    with console_from_outside(lake) as console:
        assert _state(console) == "STOPPED"
        assert _progress(console)["trouble"] is None
        with _syncing(database, lake) as connector:
            wait_until(lambda: _state(console) == "RUNNING")
            connector.pause()
            wait_until(lambda: _state(console) == "PAUSED")
        wait_until(lambda: _state(console) == "STOPPED")
        state = LakeHome(lake).runs.state
        write_json(state, {"state": "running", "reason": None})
        wait_until(lambda: "was killed" in ((_progress(console)["trouble"] or {}).get("message") or ""))
        write_json(state, {"state": "failed", "reason": "the slot is gone"})
        wait_until(lambda: "the slot is gone" in (_progress(console)["trouble"] or {}).get("message", ""))
        with _syncing(database, lake):
            wait_until(lambda: _progress(console)["trouble"] is None)


def test_a_console_from_outside_passes_on_signals_and_edits_and_refuses_the_rest(database: str, lake: Path) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    with console_from_outside(lake) as console:
        path = _path(console)
        assert console.ask("GET", "/connectors") == [lake.name]
        for method, action in (("PUT", "pause"), ("PUT", "resume"), ("PUT", "stop"), ("POST", "restart")):
            told = console.ask(method, f"{path}/{action}", status=409)["message"]
            assert "tailrace sync DSN LAKE" in told
        assert console.ask("POST", "/connectors", {"name": "other", "config": {}}, 409)
        assert console.ask("PUT", f"{path}/config", {}, 409)
        assert console.ask("PUT", "/connectors/other/config", {}, 409)
        assert console.ask("DELETE", path, status=409)
        assert console.ask("GET", "/connectors/other/status", status=404)
        signal = console.ask("POST", f"{path}/tables/public.t/resync", status=202)
        assert signal is None
        (waiting,) = console.ask("GET", f"{path}/signals")
        assert waiting["state"] == "waiting"
        rows = console.ask("POST", "/query", {"connector": lake.name, "sql": "select count(*) from t"})["rows"]
        assert rows == [[2]]
        shown = console.ask("GET", f"{path}/offsets")
        assert "reset" in console.ask("DELETE", f"{path}/offsets")["message"]
        assert console.ask("GET", f"{path}/offsets") != shown
        with _syncing(database, lake):
            assert "STOPPED state" in console.ask("DELETE", f"{path}/offsets", status=400)["message"]
            wait_until(lambda: _state(console) == "RUNNING")
            assert "process" in console.ask("PUT", f"{path}/stop", status=409)["message"]
            wait_until(lambda: console.ask("GET", f"{path}/tables")[0]["copies"] >= 2)


@pytest.mark.parametrize("has_address", [False, True])
def test_every_page_of_the_api_can_be_read_of_one_lake(database: str, lake: Path, has_address: bool) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    with console_from_outside(lake, database if has_address else None) as console:
        paths = console.ask("GET", "/openapi.json")["paths"]
        name = console.page.rpartition("/")[2]
        asked = [
            path.replace("{name}", name)
            for path, methods in paths.items()
            if "get" in methods and "{" not in path.replace("{name}", "") and not path.endswith("events")
        ]
        assert len(asked) > 30
        statuses = {path: console.http.get(path).status_code for path in asked}
    # Some want a query; a source that is not known is a conflict.
    assert {path: status for path, status in statuses.items() if status not in (200, 400, 404, 409)} == {}
    assert statuses[f"/connectors/{name}/feed"] == statuses[f"/connectors/{name}/config/history"] == 200
    assert (statuses[f"/connectors/{name}/source"] == 200) == has_address


def test_a_trouble_of_a_run_that_was_there_first_is_told_and_one_of_an_earlier_run_is_not(
    database: str, lake: Path
) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    home = LakeHome(lake)
    _say_trouble(home, "of an earlier run", datetime(2026, 1, 1))
    with home.locked():
        write_json(home.runs.state, {"state": "running", "reason": None})
        with console_from_outside(lake) as console:
            assert _progress(console)["trouble"] is None
        _say_trouble(home, "the disk is full")
        with console_from_outside(lake) as console:
            assert _progress(console)["trouble"]["message"] == "the disk is full"
            _say_trouble(home, None)
            wait_until(lambda: _progress(console)["trouble"] is None)


def _say_trouble(home: LakeHome, message: str | None, time: datetime | None = None) -> None:
    """As a run in another process writes it into its messages."""
    event = {"message": message, "hint": None}
    moment = (time or datetime.now()).isoformat(timespec="milliseconds")
    fields = {"time": moment, "logger": "tailrace.connector", "message": "TroubleChanged", "event": event}
    with home.runs.messages.open("a") as file:
        file.write(json.dumps(fields) + "\n")


def test_several_consoles_show_one_lake(database: str, lake: Path) -> None:
    execute(database, TABLE)
    with running_with_console(database, lake) as (beside, _):
        wait_until(lambda: _progress(beside)["cut"] is not None)
        with console_from_outside(lake) as first, console_from_outside(lake) as second:
            for each in (first, second):
                wait_until(lambda each=each: _state(each) == "RUNNING")


def test_a_console_that_no_one_looks_at_costs_next_to_nothing(database: str, lake: Path) -> None:
    execute(database, TABLE)
    _synced(database, lake)
    with console_from_outside(lake):
        looking = next(each for each in threading.enumerate() if each.name == "looking")
        before, seconds = _cpu_seconds(looking), 3.0
        threading.Event().wait(seconds)
        assert _cpu_seconds(looking) - before < 0.02 * seconds


def _cpu_seconds(thread: threading.Thread) -> float:
    """Of one thread, by its own clock."""
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def test_a_folder_without_a_lake_and_a_bucket_without_its_home_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="is not a Tailrace lake"):
        require_home(tmp_path)
    with pytest.raises(DefiniteError, match="is not a Tailrace lake"):
        require_home(tmp_path / "nowhere")
