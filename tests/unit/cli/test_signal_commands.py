"""`tailrace signal` and `tailrace signals`: what is sent, refused and shown."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.cli.lake.signals import SignalType
from tailrace.connector.signals.orders import TYPES, ExecuteSnapshot, Log, order_of
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import Arrival, Signal, SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeHome:
    monkeypatch.chdir(tmp_path)
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    live = TableRecord(TableState.LIVE)
    home.tables.store({TableId("shop", name): live for name in ("orders", "items", "item_prices")})
    return home


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


def sent(home: LakeHome) -> list[Signal]:
    return [signal for signal, _ in home.signals.requests.signals()]


def test_every_type_of_signal_can_be_sent() -> None:
    assert tuple(SignalType) == TYPES


def test_options_become_the_json_that_debezium_knows(home: LakeHome) -> None:
    tables = ("--table", "shop.orders", "--table", r"shop\.item.*")
    more = ("--type", "blocking", "--condition", "shop.orders=a = 1", "--surrogate-key", "n", "--id", "x")
    result = run("signal", "lake", "execute-snapshot", *tables, *more)
    assert (result.exit_code, result.stdout) == (0, "signal x waits for the next tailrace sync\n")
    (signal,) = sent(home)
    assert json.loads(signal.data) == {
        "data-collections": ["shop.orders", r"shop\.item.*"],
        "type": "blocking",
        "additional-conditions": [{"data-collection": "shop.orders", "filter": "a = 1"}],
        "surrogate-key": "n",
    }
    assert order_of(signal) == ExecuteSnapshot(
        ("shop.orders", r"shop\.item.*"), "blocking", {"shop.orders": "a = 1"}, {"": "n"}
    )


def test_data_is_sent_as_it_is_and_an_id_is_made_up(home: LakeHome) -> None:
    result = run("signal", "lake", "log", "--data", '{"message": "m"}')
    (signal,) = sent(home)
    assert order_of(signal) == Log("m")
    assert result.stdout == f"signal {signal.id} waits for the next tailrace sync\n"


def test_a_running_connector_is_named_and_a_name_that_means_nothing_is_told(home: LakeHome) -> None:
    with home.locked():
        result = run("signal", "lake", "stop-snapshot", "--table", "shop.order", "--id", "x")
    assert result.exit_code == 0
    assert result.stdout == f"signal x goes to the running sync (process {os.getpid()})\n"
    assert result.stderr == "note: shop.order matches no table of the lake at present\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["execute-snapshot"], "data-collections is required"),
        (
            ["execute-snapshot", "--table", "*.x"],
            "data-collections[0]: is neither a name nor a regular expression: nothing to repeat at position 0",
        ),
        (
            ["log", "--table", "a.b"],
            "message is required; data-collections: unknown key",
        ),
        (["log", "--data", "{", "--message", "m"], "--data has everything already"),
        (
            ["pause-snapshot", "--type", "slow"],
            "type: input should be 'incremental' or 'blocking'",
        ),
        (["execute-snapshot", "--table", "a.b", "--condition", "x"], "--condition x has no table"),
        (
            ["log", "--message", "m", "--id", "x" * 300],
            "id: must have between 1 and 255 characters",
        ),
    ],
)
def test_a_signal_that_makes_no_sense_ends_with_2_and_nothing_is_written(
    home: LakeHome, arguments: list[str], error: str
) -> None:
    result = run("signal", "lake", *arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0].removeprefix("error: ").removeprefix("invalid signal: ") == error
    assert not (home.lake / "_tailrace" / "requests").exists()


def test_an_unknown_type_and_a_folder_that_is_no_lake_are_refused(home: LakeHome, tmp_path: Path) -> None:
    assert run("signal", "lake", "delete-everything").exit_code == 2
    for command in (["signal", str(tmp_path), "pause-snapshot"], ["signals", str(tmp_path)]):
        result = run(*command)
        assert result.exit_code == 2
        assert "is not a Tailrace lake" in result.stderr


def test_a_known_id_is_said_to_be_known(home: LakeHome) -> None:
    home.signals.book.enter([Arrival(Signal("x", "pause-snapshot"), "file")], {})
    home.signals.book.set("x", SignalState.DONE)
    result = run("signal", "lake", "pause-snapshot", "--id", "x")
    assert (result.exit_code, result.stdout) == (0, "signal x is known and done: nothing is done again\n")
    assert sent(home) == []


def test_signals_are_shown_with_what_became_of_them(home: LakeHome) -> None:
    assert run("signals", "lake").stdout.split() == ["id", "type", "tables", "state", "since", "result"]
    data = '{"data-collections": ["shop.orders", "shop.x"]}'
    home.signals.book.enter([Arrival(Signal("first", "execute-snapshot", data), "file")], {})
    home.signals.book.enter([Arrival(Signal("second", "", "{"), "file", "line: invalid JSON")], {})
    home.signals.book.set("first", SignalState.RUNNING)
    home.signals.notifications.append(Notification(CopyStep.IN_PROGRESS, 1, "first", "shop.orders", 12345, 7))
    home.signals.requests.ask_signal(Signal("third", "pause-snapshot"))
    lines = [re.sub(r" {2,}", "|", line.strip()) for line in run("signals", "lake").stdout.splitlines()]
    times = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(
        rf"first\|execute-snapshot\|shop\.orders, shop\.x\|running\|{times}\|shop\.orders: 12,345 rows, 7 chunks",
        lines[1],
    )
    assert re.fullmatch(rf"second\|rejected\|{times}\|line: invalid JSON", lines[2])
    assert re.fullmatch(rf"third\|pause-snapshot\|all\|waiting\|{times}", lines[3])
    listed = [json.loads(line) for line in run("signals", "lake", "--json").stdout.splitlines()]
    assert [(each["id"], each["channel"], each["state"], each["result"]) for each in listed] == [
        ("first", "file", "running", None),
        ("second", "file", "rejected", "line: invalid JSON"),
        ("third", "request", "waiting", None),
    ]
    assert listed[0]["data"] == data
    assert re.fullmatch(times, listed[0]["received"])
