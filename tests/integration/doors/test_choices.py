"""Tables that are taken into a lake, or left out of it, while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.running import running, sync_once
from typer.testing import CliRunner

import tailrace
from tailrace.cli.commands import app
from tailrace.lake import formats
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

NAMES = ("shop.orders", "shop.lines", "shop.scratch")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
    script = Script(tmp_path / "shop.jsonl")
    for name in NAMES:
        script.create_table(name, {"id": "int"}, key=["id"])
        script.transaction([Insert(name, {"id": 1})])
    return script


def choose(lake: Path, verb: str, pattern: str) -> str:
    result = CliRunner().invoke(app, ["tables", verb, str(lake), pattern])
    assert result.exit_code == 0, result.output
    return result.output


def test_what_is_taken_in_is_copied_beside_the_stream_and_what_is_left_out_is_removed(
    tmp_path: Path, script: Script
) -> None:
    settings = ConnectorSettings(
        tmp_path / "lake", tables=("orders",), format="parquet", publish_every_seconds=0.1, look_at_tables_seconds=60
    )
    source = ScriptedSource(str(script.path))
    with running(settings, source) as run:
        run.wait_for_state("shop.orders", TableState.LIVE)
        choose(run.lake, "include", "shop.*")
        assert "by the running sync" in choose(run.lake, "exclude", "scratch")
        run.wait_for_state("shop.lines", TableState.LIVE)
        script.transaction([Insert(name, {"id": 2}) for name in NAMES])
        run.catch_up()
        assert tailrace.arrow(run.lake, "shop.lines").column("id").to_pylist() == [1, 2]
        choose(run.lake, "exclude", "shop.orders")
        run.wait_for_state("shop.orders", TableState.REMOVED)
        assert run.connector.tables()[TableId("shop", "orders")].reason == "it is no longer chosen"
        script.transaction([Insert(name, {"id": 3}) for name in NAMES])
        run.catch_up()
        assert {*LakeHome(run.lake).cuts.all()[-1].tables} == {"shop.lines"}
    states = sync_once(replace(settings, once=True), source)
    assert [name for name, state in states.items() if state is TableState.LIVE] == ["shop.lines"]
    assert "by the next tailrace sync" in choose(settings.lake, "include", "shop.orders")
    states = sync_once(replace(settings, once=True), source)
    assert {name for name, state in states.items() if state is TableState.LIVE} == {"shop.lines", "shop.orders"}
    assert sorted(tailrace.arrow(settings.lake, "shop.orders").column("id").to_pylist()) == [1, 2, 3]
