"""Every command takes its lake as a text, and says the same of one that lies nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.cli.commands import app

COMMANDS = [
    ["sync", "postgresql://127.0.0.1/none", "LAKE", "--once"],
    ["query", "LAKE", "select 1"],
    ["verify", "postgresql://127.0.0.1/none", "LAKE"],
    ["maintain", "LAKE"],
    ["drop", "postgresql://127.0.0.1/none", "LAKE"],
    ["tables", "LAKE"],
    ["tables", "include", "LAKE", "a.*"],
    ["tables", "resync", "LAKE", "a.b"],
    ["signal", "LAKE", "log", "--message", "hello"],
    ["signals", "LAKE"],
    ["offsets", "get", "LAKE"],
    ["offsets", "history", "LAKE"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_place_where_no_lake_can_lie_is_refused_by_every_command(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for lake, message in (
        ("hdfs://host/shop", "no lake can lie at hdfs://"),
        ("s3a://bucket/shop", "write it as s3://BUCKET/NAME"),
        ("gs://bucket/shop", "gs://bucket/shop: only stores that speak S3 can have a lake yet"),
    ):
        found = CliRunner().invoke(app, [lake if each == "LAKE" else each for each in command])
        assert found.exit_code == 2
        assert message in found.stderr
        assert "hint: " in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_given_for_a_bucket_is_looked_up_and_refused_for_a_folder(tmp_path: Path) -> None:
    for given, message in (
        ("--home=elsewhere", "is a folder, and has its home inside"),
        ("--storage-option=region=eu", "is a folder: it has no storage options"),
        ("--storage-option=geheim", "a storage option has no name"),
        ("--storage-option=token=${env:NO_SUCH_VARIABLE}", "the environment has no such variable"),
    ):
        found = CliRunner().invoke(app, ["tables", str(tmp_path), given])
        assert found.exit_code == 2
        assert message in found.stderr
        assert "geheim" not in found.stderr
