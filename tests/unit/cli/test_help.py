"""The help reads as people expect, and names nothing that an installed user cannot open."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tailrace
from tailrace.cli.commands import app

COMMANDS = ("doctor", "sync", "query", "ui", "wait", "tables", "verify", "drop", "run")


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_version_is_the_installed_one() -> None:
    assert printed("--version") == f"tailrace {version('tailrace')}\n"


def test_commands_are_listed_in_the_order_of_use() -> None:
    listed = re.findall(r"^│ ([a-z]+) ", printed("--help"), re.MULTILINE)
    assert tuple(listed[: len(COMMANDS)]) == COMMANDS


@pytest.mark.parametrize(
    "arguments",
    [[name] for name in ("sync", "query", "drop", "doctor", "run", "serve")]
    + [["tables", "list"], ["offsets", "set"], ["log", "ls"]],
    ids=" ".join,
)
def test_a_flag_has_no_type_and_an_argument_is_written_as_in_documents(arguments: list[str]) -> None:
    text = printed(*arguments, "--help")
    assert "<bool>" not in text
    assert "list[" not in text
    usage = next(line for line in text.splitlines() if "Usage:" in line)
    assert not set("{}") & set(usage)


@pytest.mark.parametrize("name", ["sql", "query", "signal", "verify"])
def test_every_example_is_a_line_of_its_own(name: str) -> None:
    documented = next(each for each in app.registered_commands if each.name in (name, None) and _name(each) == name)
    examples = re.findall(r"^    (tailrace \S+)", documented.help or "", re.MULTILINE)
    assert len(examples) > 1 or name == "verify"
    shown = [line.strip() for line in printed(name, "--help").splitlines()]
    assert len([line for line in shown if line.startswith(f"tailrace {name} ")]) == len(examples)


def _name(command: Any) -> str:
    return command.name or command.callback.__name__


def test_every_key_of_a_configuration_is_printed_without_a_file() -> None:
    text = printed("run", "--keys")
    assert "spark.master  (supported, default local[*])\n" in text
    assert "transforms  (refused" in text


def test_no_message_sends_a_person_to_a_file_that_is_not_installed() -> None:
    """Docstrings of modules are for those who have the checkout."""
    package = Path(tailrace.__path__[0])
    named = [
        f"{path.name}: {line.strip()}"
        for path in package.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())
        if "docs/" in line and number > 0
    ]
    assert named == []
