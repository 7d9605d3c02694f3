"""docs/examples/tailrace.service starts the server that is there, with a token that only it can read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer.main

from tailrace.cli.commands import app
from tailrace.server.supervisor.supervisor import END_SECONDS

UNIT = Path(__file__).resolve().parents[3] / "docs" / "examples" / "tailrace.service"


def settings() -> dict[str, dict[str, list[str]]]:
    """By section; a key may be there several times."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            heading = re.fullmatch(r"\[(\w+)\]", line)
            if heading:
                section = found.setdefault(heading[1], {})
                continue
            key, equals, value = line.partition("=")
            assert equals, line
            section.setdefault(key, []).append(value)
    return found


def test_it_runs_serve_with_options_that_are_there() -> None:
    (command,) = settings()["Service"]["ExecStart"]
    program, name, *arguments = shlex.split(command)
    assert (Path(program).name, name) == ("tailrace", "serve")
    group = typer.main.get_command(app)
    known = {each for parameter in group.commands["serve"].params for each in parameter.opts}  # type: ignore[attr-defined]
    assert {each for each in arguments if each.startswith("--")} <= known


def test_the_token_is_a_credential_and_no_argument_has_it() -> None:
    service = settings()["Service"]
    (credential,) = service["LoadCredential"]
    name = credential.partition(":")[0]
    assert f"--token-file ${{CREDENTIALS_DIRECTORY}}/{name}" in service["ExecStart"][0]
    assert service["DynamicUser"] == ["yes"]
    # Its JVM and numba make code while they run.
    assert "MemoryDenyWriteExecute" not in service


def test_it_waits_until_every_connector_has_ended() -> None:
    (seconds,) = settings()["Service"]["TimeoutStopSec"]
    assert int(seconds) > END_SECONDS
