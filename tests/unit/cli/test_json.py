"""`--json`: what a command shows to a person, a program can have as values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.unit.log.records import batch, begin, change, in_memory, open_log, schema, transaction
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.cli.sync.event_lines import EventLines
from tailrace.connector.events import (
    ConnectorState,
    CutPublished,
    SnapshotProgressed,
    StateChanged,
    StreamProgressed,
    TableChanged,
)
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import index_path
from tailrace.model.copy_progress import TableProgress
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

WITHOUT_JSON = {
    "drop": "says what it dropped, a line each",
    "serve": "has --log-json",
    "ui": "says where it listens",
    "signal": "says one line",
    "tables include": "says one line",
    "tables exclude": "says one line",
    "tables resync": "says one line",
    "offsets get": "prints JSON",
    "offsets edit": "prints JSON",
    "offsets layout": "prints JSON",
    "log rebuild-index": "says one line",
}
"""Every other command has `--json`."""
NOON_US = 1_794_052_800_000_000
CUT = PublishedCut(7, SourcePosition(5, time_us=NOON_US), {}, published_us=NOON_US + 250_000)


def commands() -> Iterator[tuple[str, Any]]:
    def leaves(path: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            place = f"{path} {name}".strip()
            yield from leaves(place, command) if hasattr(command, "commands") else [(place, command)]

    yield from leaves("", typer.main.get_command(app))


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "60"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_every_command_that_shows_more_than_a_line_has_json() -> None:
    without = {
        name for name, command in commands() if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == set(WITHOUT_JSON)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    with in_memory() as folder:
        path = Path(folder) / "log"
        writer = open_log(path, clock=lambda: NOON_US)
        writer.append(batch([schema(1, "id"), *transaction(7, 100, b"o\x00ne", time_us=NOON_US)]))
        writer.append(batch([*transaction(8, 200, b"x" * 20_000, time_us=NOON_US), begin(9), change(9, b"waits")]))
        writer.flush()
        writer.close()
        Consumers(path).acknowledge("lake", 1)
        Consumers(path).pin("query", 2)
        yield path


def test_segments_and_who_needs_them_are_values(log: Path) -> None:
    found = json.loads(run("log", "ls", log, "--json"))
    (segment,) = found["segments"]
    assert (segment["position"], segment["after_seq"], segment["upto_seq"]) == (0, 0, 2)
    assert segment["bytes"] > 20_000
    assert segment["created"] == "2026-11-07T12:00:00Z"
    (lake,), (pin,) = found["consumers"], found["pins"]
    assert (lake["name"], lake["seq"], lake["transactions_behind"]) == ("lake", 1, 1)
    assert lake["bytes_behind"] > 20_000
    assert (pin["name"], pin["transactions_behind"]) == ("query", 0)


def test_the_sums_of_a_log_are_values(log: Path) -> None:
    found = json.loads(run("log", "stats", log, "--json"))
    assert (found["head_seq"], found["transactions"], found["changes"], found["segments"]) == (2, 2, 2, 1)
    assert found["last_committed"] == "2026-11-07T12:00:00Z"
    assert [each["xid"] for each in found["active"]] == [9]
    assert found["consumers"][0]["name"] == "lake"


def test_every_record_is_a_line_with_its_whole_payload(log: Path) -> None:
    lines = [json.loads(line) for line in run("log", "show", log, "--json").splitlines()]
    assert [line["position"] for line in lines] == list(range(len(lines)))
    changes = [line for line in lines if line["kind"] == "INSERT"]
    assert changes[0]["payload"] == "o\\x00ne"
    assert len(changes[1]["payload"]) == 20_000
    assert run("log", "show", log, "--json", "--limit", 1).count("\n") == 1


def test_a_damaged_log_is_a_value_too_and_ends_with_1(log: Path) -> None:
    assert json.loads(run("log", "verify", log, "--json"))["sound"] is True
    index_path(log, 0, ".frames").write_bytes(b"")
    found = json.loads(run("log", "verify", log, "--json", code=1))
    assert found["sound"] is False
    assert found["problems"]
    assert found["hint"].startswith("tailrace log rebuild-index")


def test_the_tables_of_a_lake_are_values_and_one_in_error_ends_with_1(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    errored = TableRecord(TableState.ERRORED, "a [reason]", "a hint")
    home.tables.store({TableId("shop", "a"): TableRecord(TableState.LIVE), TableId("shop", "<b>"): errored})
    found = json.loads(run("tables", "list", home.lake, "--json", code=1))
    assert found["connector"] == {"state": "stopped", "reason": None, "process": None}
    assert {each["table"]: (each["state"], each["reason"], each["hint"]) for each in found["tables"]} == {
        "shop.a": ("live", None, None),
        "shop.<b>": ("errored", "a [reason]", "a hint"),
    }


def test_upkeep_is_a_value(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    found = json.loads(run("maintain", home.lake, "--json"))
    assert found == {"tables": [], "cuts": 0, "cuts_forgotten": 0, "damaged_deleted": 0}


def test_keys_and_checked_values_of_a_configuration_are_lines(tmp_path: Path) -> None:
    keys = [json.loads(line) for line in run("run", "--keys", "--json").splitlines()]
    assert {"key", "verdict", "default", "meaning"} == set(keys[0])
    file = tmp_path / "shop.json"
    given = {"database.hostname": "h", "database.password": "canary", "database.dbname": "d", "transforms": "x"}
    file.write_text(json.dumps(given), encoding="utf-8")
    text = run("run", "--check", "--json", file, code=2)
    checks = {each["key"]: each for each in map(json.loads, text.splitlines())}
    assert "canary" not in text
    assert checks["database.hostname"]["verdict"] == "accepted"
    assert checks["transforms"]["verdict"] == "refused"
    assert checks["transforms"]["errors"]


def test_faults_of_offsets_are_a_value() -> None:
    broken = '{"partition": {"server": "shop"}, "offset": {"file": "b.1", "pos": -4}}'
    found = json.loads(run("offsets", "check", "mysql", broken, "--json", code=1))
    assert found["valid"] is False
    assert "offsets[0].offset.pos -4" in found["faults"][0]


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_events_are_lines_with_their_time_and_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with EventLines() as lines:
        lines.show(StateChanged(ConnectorState.RUNNING))
        lines.show(CutPublished(CUT, "0/5", 0.1, 3))
        lines.show(TableChanged(TableId("public", "o\nne"), TableRecord(TableState.ERRORED, "why", "what helps")))
    state, cut, table = printed(capsys)
    assert (state["event"], state["state"]) == ("StateChanged", "running")
    assert state["time"].endswith("Z")
    assert (cut["seq"], cut["position"], cut["transactions"]) == (7, "0/5", 3)
    assert (cut["committed"], cut["published"]) == ("2026-11-07T12:00:00.000000Z", "2026-11-07T12:00:00.250000Z")
    assert table["table"] == {"namespace": "public", "name": "o\nne"}
    assert table["record"]["hint"] == "what helps"


def test_figures_are_a_line_a_second_and_the_newest_is_never_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]

    def told(log_seq: int) -> StreamProgressed:
        return StreamProgressed(CUT, "0/5", log_seq, 1.0, None, 0.0)

    copying = SnapshotProgressed([TableProgress(TableId("public", "orders"), 10, 5, 1, 1.0)])
    with EventLines(lambda: now[0]) as lines:
        for number in range(8):
            now[0] = number / 4
            lines.show(told(number))
        lines.show(copying)
        lines.show(StateChanged(ConnectorState.STOPPED))
        lines.show(told(100))
    found = printed(capsys)
    assert [line.get("log_seq") for line in found if line["event"] == "StreamProgressed"] == [0, 4, 7, 100]
    assert [line["event"] for line in found][-4:] == [
        "SnapshotProgressed",
        "StreamProgressed",
        "StateChanged",
        "StreamProgressed",
    ]


def test_older_figures_are_not_printed_after_newer_ones(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with EventLines(lambda: now[0]) as lines:
        for number in range(3):
            now[0] = number / 2
            lines.show(StreamProgressed(CUT, "0/5", number, 1.0, None, 0.0))
    assert [line["log_seq"] for line in printed(capsys)] == [0, 2]
