"""`tailrace offsets check`, `edit` and `layout`, which need no lake; and what the others say without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.cli.commands import app

OLD = '{"partition": {"server": "shop"}, "offset": {"scn": 1234, "commit_scn": "1240"}}'


def test_offsets_that_are_valid_are_counted_and_written_as_the_newest_version_does() -> None:
    assert CliRunner().invoke(app, ["offsets", "check", "oracle", OLD]).output == "1 valid\n"
    found = CliRunner().invoke(app, ["offsets", "check", "oracle", OLD, "--upgrade"])
    assert json.loads(found.output)["offsets"][0]["offset"] == {"scn": "1234", "commit_scn": "1240:1:"}


def test_offsets_from_a_file_that_break_rules_are_named_with_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('["c",{"server":"shop"}]\t{"file":"b.1","pos":-4,"POS":5}\n', encoding="utf-8")
    found = CliRunner().invoke(app, ["offsets", "check", "mysql", str(path)])
    assert found.exit_code == 1
    assert "offsets[0].offset.pos -4 is not a whole number" in found.output
    assert "offsets[0].offset.POS is no field of this layout [known]" in found.output


def test_keys_of_cassandra_are_added_changed_and_removed() -> None:
    node = {
        "partition": {"logicalName": "shop", "nodeId": "n1"},
        "offset": {"cycling.riders": ":-1", "cycling.a": ":-1"},
    }
    place = "CommitLog-7-1700000000000.log:5"
    edit = ["offsets", "edit", "cassandra", json.dumps(node)]
    options = ["--set", f"cycling.races={place}", "--set", f"cycling.riders={place}", "--remove", "cycling.a"]
    found = CliRunner().invoke(app, [*edit, *options])
    assert json.loads(found.output)["offsets"] == [node | {"offset": {"cycling.riders": place, "cycling.races": place}}]
    broken = CliRunner().invoke(app, [*edit, "--set", "cycling.riders=elsewhere"])
    assert broken.exit_code == 2
    assert "cycling.riders" in broken.stderr
    assert "[place]" in broken.stderr


def test_offsets_are_read_from_standard_input() -> None:
    assert CliRunner().invoke(app, ["offsets", "check", "oracle", "-"], input=OLD).output == "1 valid\n"


def test_a_layout_is_printed_as_a_json_schema() -> None:
    schema = json.loads(CliRunner().invoke(app, ["offsets", "layout", "cassandra"]).output)
    assert schema["properties"]["partition"]["properties"]["nodeId"]["type"] == "string"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["layout", "redis"], "no connector of kind 'redis' is known"),
        (["check", "mysql", "no-such-file"], "cannot read no-such-file: No such file or directory"),
        (["check", "mysql", "[}"], "not a record of an offsets topic"),
        (["set", "no-such-lake", "{}"], "no-such-lake is not a Tailrace lake"),
        (["set", "no-such-lake", "[}"], "this is not JSON"),
        (["get", "no-such-lake"], "no-such-lake is not a Tailrace lake"),
        (["undo", "no-such-lake"], "no-such-lake is not a Tailrace lake"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_hint(arguments: list[str], message: str) -> None:
    found = CliRunner().invoke(app, ["offsets", *arguments])
    assert found.exit_code == 2
    assert message in found.stderr
    assert "hint: " in found.stderr
