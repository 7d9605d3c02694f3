"""Every option is a variable too; what the shell offers; and `python -m tailrace`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from click.testing import Result
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.cli.environment import PREFIX, split
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

LEFT_OUT = {"--help", "--version", "--install-completion", "--show-completion"}
WARNED = "warning: TAILRACE_SERVE_LISTN has no effect"
SECRET = "geheim-47-11"


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", **variables})


def leaves(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Every command, with the context in which a person calls it."""
    for name, command in group.commands.items():
        inner = type(context)(command, info_name=name, parent=context)
        yield from leaves(command, inner) if hasattr(command, "commands") else [(command, inner)]


def commands() -> list[tuple[Any, Any]]:
    root: Any = typer.main.get_command(app)
    context = root.make_context("tailrace", [], resilient_parsing=True)
    return list(leaves(root, context))


def test_every_option_of_every_command_has_a_variable_that_is_called_like_it() -> None:
    seen = set()
    for command, context in commands():
        path = context.command_path.removeprefix("tailrace ")
        for each in command.get_params(context):
            if each.param_type_name != "option" or LEFT_OUT & set(each.opts):
                continue
            long = max(each.opts, key=len).removeprefix("--")
            name = re.sub(r"[ -]", "_", f"{PREFIX} {path} {long}").upper()
            assert name in ([each.envvar] if isinstance(each.envvar, str) else each.envvar), each.opts
            seen.add(name)
    assert {"TAILRACE_SYNC_PUBLISH_EVERY", "TAILRACE_OFFSETS_SET_DRY_RUN", "TAILRACE_SIGNALS_JSON"} <= seen


def test_help_says_what_the_variables_are_called() -> None:
    text = " ".join(run("serve", "--help").stdout.split())
    assert "in the environment: --home as TAILRACE_SERVE_HOME" in text


def test_a_variable_counts_less_than_the_line_and_an_empty_one_is_none(tmp_path: Path) -> None:
    lake = str(tmp_path / "none")
    wrong = {"TAILRACE_LOG_SHOW_LIMIT": "-3"}
    assert "is too small" in run("log", "show", _log(tmp_path), **wrong).stderr
    assert run("log", "show", _log(tmp_path), "--limit", "1", **wrong).exit_code == 0
    assert "--published and --as-of exclude each other" in _asked(lake, TAILRACE_QUERY_PUBLISHED="1")
    for nothing in ("", "0", "false"):
        assert "is not a Tailrace lake" in _asked(lake, TAILRACE_QUERY_PUBLISHED=nothing)


def _asked(lake: str, **variables: str) -> str:
    return run("query", lake, "select 1", "--as-of", "0/1", **variables).stderr


def _log(folder: Path) -> str:
    from tests.unit.log.records import open_log

    path = folder / "log"
    if not path.exists():
        open_log(path).close()
    return str(path)


def test_what_is_wrong_with_a_variable_names_it() -> None:
    found = run("sync", "postgresql://127.0.0.1/none", "lake", TAILRACE_SYNC_READERS="many")
    assert found.exit_code == 2
    assert "TAILRACE_SYNC_READERS" in found.stderr
    given = run("sync", "postgresql://127.0.0.1/none", "lake", "--readers", "many")
    assert "TAILRACE_SYNC_READERS" not in given.stderr


def test_several_values_are_separated_by_blanks_or_by_lines() -> None:
    assert split("public.orders sales.*") == ["public.orders", "sales.*"]
    assert split("public.orders=total > 10\n") == ["public.orders=total > 10"]
    assert split("/a\\.b{1,2}/\n\n  odd name\n") == ["/a\\.b{1,2}/", "odd name"]


def test_several_values_reach_the_command() -> None:
    found = run("tables", "list", "folder", TAILRACE_TABLES_LIST_STORAGE_OPTION="region=eu\nnothing here\n")
    assert "a storage option has no name" in found.stderr


def test_a_variable_that_belongs_to_no_option_is_warned_of_unless_kubernetes_sets_it() -> None:
    others = {"TAILRACE_SERVE_SERVICE_HOST": "10.0.0.1", "TAILRACE_SERVE_PORT_8083_TCP_ADDR": "10.0.0.1"}
    found = run("serve", "--listen", "nowhere", TAILRACE_SERVE_LISTN="x", **others)
    warned = [line for line in found.stderr.splitlines() if line.startswith("warning:")]
    assert [line[: len(WARNED)] for line in warned] == [WARNED]


@pytest.mark.parametrize("name", ["TAILRACE_SERVE_STATE_URL", "TAILRACE_STATE_URL", "TAILRACE_SYNC_STORAGE_OPTION"])
def test_no_help_and_no_error_prints_what_a_variable_holds(name: str, tmp_path: Path) -> None:
    command = "sync" if "SYNC" in name else "serve"
    more = ["postgresql://127.0.0.1:1/none", "s3://bucket/shop"] if command == "sync" else ["--home", str(tmp_path)]
    value = f"secret_access_key={SECRET}" if command == "sync" else f"mysql://ann:{SECRET}@127.0.0.1/state"
    for arguments in ([command, "--help"], [command, "--nonsense"], [command, *more]):
        found = run(*arguments, **{name: value})
        assert SECRET not in found.stdout + found.stderr
        assert found.exit_code == (0 if "--help" in arguments else 2)


def test_python_runs_the_package_as_the_command() -> None:
    found = subprocess.run([sys.executable, "-m", "tailrace", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout == run("--version").stdout


def offered(line: str) -> list[str]:
    """What bash is told at the end of the line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    found = CliRunner().invoke(app, [], prog_name="tailrace", env={"_TAILRACE_COMPLETE": "complete_bash", **words})
    assert (found.exit_code, found.stderr) == (0, "")
    return found.stdout.split()


def test_the_shell_is_offered_commands_options_and_the_tables_of_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    live = TableRecord(TableState.LIVE)
    home.tables.store({TableId("shop", name): live for name in ("orders", "items")})
    assert offered("tailrace ta") == ["tables"]
    assert "--publish-every" in offered("tailrace sync --p")
    assert offered("tailrace tables resync lake ") == ["shop.items", "shop.orders"]
    assert offered("tailrace signal lake execute-snapshot --table ord") == ["orders"]
    for nowhere in ("none", "s3://bucket/shop", "lake/_tailrace"):
        assert offered(f"tailrace tables resync {nowhere} ") == []
