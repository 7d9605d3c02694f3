"""`tailrace run` says what becomes of a configuration before anything is connected to or made."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tailrace.cli.commands import app

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "shop.yaml"
SHOP = """
database:
  hostname: 127.0.0.1
  port: 1
  user: ann
  password: canary
  dbname: shop
lake.path: {lake}
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def invoke(lake: Path, more: str, *options: str) -> Result:
    file = lake.parent / "shop.yaml"
    file.write_text(SHOP.format(lake=lake) + more, encoding="utf-8")
    result = CliRunner().invoke(app, ["run", *options, str(file)], env={"COLUMNS": "200"})
    assert not lake.exists()
    assert "canary" not in result.output
    return result


def rows(result: Result) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}


def test_a_check_prints_every_key_that_is_given_with_what_becomes_of_it(lake: Path) -> None:
    more = "poll.interval.ms: 500\ndecimal.handling.mode: precise\ntable.include.list: [a.b, c.d]\n"
    result = invoke(lake, more, "--check")
    assert result.exit_code == 0
    assert rows(result) == {
        "key": ["value", "verdict"],
        "name": ["shop", "accepted"],
        "database.hostname": ["127.0.0.1", "accepted"],
        "database.port": ["1", "accepted"],
        "database.user": ["ann", "accepted"],
        "database.password": ["********", "accepted"],
        "database.dbname": ["shop", "accepted"],
        "table.include.list": ["a.b,c.d", "accepted"],
        "lake.path": [str(lake), "accepted"],
        "decimal.handling.mode": ["precise", "accepted"],
        "poll.interval.ms": ["500", "ignored"],
    }
    assert result.stderr == "warning: poll.interval.ms: there is no queue: changes go to the log on disk\n"


def test_a_check_of_what_is_refused_prints_the_table_and_every_problem(lake: Path) -> None:
    result = invoke(lake, "snapshot.mode: always\ncolour: canary\n", "--check")
    assert result.exit_code == 2
    assert rows(result)["snapshot.mode"] == ["always", "refused"]
    assert rows(result)["colour"] == ["********", "refused"]
    assert result.stderr.splitlines() == [
        "error: snapshot.mode: a lake keeps its rows, so no start needs another copy: use initial, or when_needed",
        "error: colour: unknown",
        "hint: every key: tailrace run --keys, or PUT /connector-plugins/NAME/config/validate",
    ]


def test_what_is_refused_is_not_run(lake: Path) -> None:
    result = invoke(lake, "transforms: unwrap\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: transforms: rows are copied as they are")


def test_what_is_ignored_is_warned_of_and_run(lake: Path) -> None:
    result = invoke(lake, "tasks.max: 4\n", "--once")
    assert result.exit_code == 2
    warning, error, *_ = result.stderr.splitlines()
    assert warning == "warning: tasks.max: a connector is one task"
    assert "cannot connect" in error


def test_the_example_can_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "canary")
    result = CliRunner().invoke(app, ["run", "--check", str(EXAMPLE)], env={"COLUMNS": "200"})
    assert (result.exit_code, result.stderr) == (0, "")
    assert rows(result)["database.password"] == ["${env:SHOP_PASSWORD}", "accepted"]
    assert "canary" not in result.output
