"""`POST /sql` and `tailrace sql` on a real server with a real Postgres behind it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from click.testing import Result
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, serving
from typer.testing import CliRunner

from tailrace.cli.commands import app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as served:
        yield served


def sql(server: Served, text: str, status: int = 200) -> Any:
    return server.ask("POST", "/sql", {"sql": text}, status)


def shown(server: Served, like: str = "%") -> dict[str, str]:
    """Each table and its state."""
    (result,) = sql(server, f"show sources like '{like}'")["results"]
    return {row[2]: row[3] for row in result["rows"] if row[2] is not None}


def address(database: str) -> str:
    parts = urlsplit(database)
    return f"host '{parts.hostname}' port {parts.port} user '{parts.username}' database '{parts.path.strip('/')}'"


def slots(database: str) -> int:
    with psycopg.connect(database) as connection:
        query = "select count(*) from pg_replication_slots where database = current_database()"
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def test_one_source_has_one_slot_for_all_its_tables_until_it_is_dropped_with_all(server: Served, database: str) -> None:
    execute(database, "; ".join(f"create table t{i} (id int primary key)" for i in range(3)))
    sql(server, f"create sources shop from postgres {address(database)} tables (t0, t1, t2)")
    wait_until(lambda: shown(server) == {f"public.t{i}": "live" for i in range(3)}, 60)
    assert slots(database) == 1
    (result,) = sql(server, "drop source shop cascade")["results"]
    assert result["message"] == "dropped source shop; what the lake has stays"
    assert any("slot" in note for note in result["notes"])
    assert slots(database) == 0


def test_an_error_has_its_place_and_what_was_done_before(server: Served, database: str) -> None:
    create = f"create source {{}} from postgres {address(database)}"
    sql(server, create.format("a"))
    body = sql(server, f"show create source a;\n{create.format('a')}", 409)
    assert (body["error_code"], body["line"], body["column"]) == (409, 2, 15)
    assert body["message"].startswith("line 2, column 15: there is a source named a\nhint: ")
    assert body["excerpt"].split("\n")[1] == " " * 14 + "^"
    assert [result["columns"] for result in body["results"]] == [["source", "create_sql"]]
    assert sql(server, "drop source b", 404)["results"] == []
    assert sql(server, "shw", 400)["expected"] == ["ALTER", "CREATE", "DROP", "SHOW", ";", "the end"]
    taken = sql(server, f"{create.format('b')} lake '{server.supervisor.lake_home('a').lake}'", 409)
    assert taken["column"] == 15
    assert sql(server, create.format('"a/b"'), 400)["message"].startswith(
        "line 1, column 15: a connector's name may not"
    )
    assert server.http.post("/sql", json={"sql": 1}).status_code == 400
    assert server.http.post("/sql", content=b'{"sql": "\\ud800"}').status_code == 400
    assert server.http.post("/sql", content=b"show sources").status_code == 400
    assert server.ask("GET", "/connectors") == ["a"]


def test_two_who_alter_one_source_at_once_both_get_what_they_asked_for(server: Served, database: str) -> None:
    execute(database, "; ".join(f"create table t{i} (id int primary key)" for i in range(9)))
    sql(server, f"create source s from postgres {address(database)} table t0")
    server.ask("PUT", "/connectors/s/stop", status=204)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: sql(server, f"alter source s add table t{i}"), range(1, 9)))
    config = server.ask("GET", "/connectors/s/config")
    assert sorted(config["table.include.list"].split(",")) == [rf"public\.t{i}" for i in range(9)]


def run(server: Served, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sql", "--server", server.address, *arguments], input=text, env={"COLUMNS": "200"})


def test_the_command_line_shows_tables_messages_and_errors(server: Served, database: str, tmp_path: Path) -> None:
    created = run(server, "-c", f"create source s from postgres {address(database)} with (tasks.max = 2)")
    assert (created.exit_code, created.stdout) == (0, "created source s\n")
    assert created.stderr.startswith("note: tasks.max: ")
    file = tmp_path / "some.sql"
    file.write_text("\ufeffshow create source s; show sources;", encoding="utf-8")
    from_file, from_input = run(server, str(file)), run(server, text="show create source s")
    assert from_file.stdout.startswith("CREATE SOURCES s FROM POSTGRES\n  HOST ")
    assert re.search(r"^source +state +table +table_state +problem", from_file.stdout, re.MULTILINE)
    assert from_file.stdout.startswith(from_input.stdout)
    assert json.loads(run(server, "--json", "-c", "show sources like 'x'").stdout)["rows"] == []

    failed = run(server, "-c", "drop source s; drop source s")
    assert (failed.exit_code, failed.stdout) == (2, "dropped source s; what the lake has stays\n")
    assert failed.stderr == (
        "error: line 1, column 28: there is no source named s\n"
        "drop source s; drop source s\n" + " " * 27 + "^\n"
        "hint: there are no sources yet\n"
    )
    both = run(server, str(file), "-c", "show sources")
    assert (both.exit_code, both.stderr.splitlines()[0]) == (2, "error: statements come from a file or from -c")


def test_the_command_line_says_what_is_wrong_with_a_server(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    with serving(tmp_path / "home", token_file=token) as server:
        assert run(server, "-c", "show sources").stderr.startswith(
            "error: the server requires a token\nhint: name the file"
        )
        assert run(server, "-c", "show sources", "--token-file", str(token)).exit_code == 0
    gone = run(server, "-c", "show sources")
    assert (gone.exit_code, gone.stdout) == (2, "")
    assert gone.stderr.startswith(f"error: no server answers at {server.address}: ")
    nowhere = CliRunner().invoke(app, ["sql", "--server", "nowhere", "-c", "show sources"])
    assert nowhere.stderr.startswith("error: nowhere is not the address of a server")


def test_a_prompt_takes_statements_over_several_lines_and_survives_errors(server: Served) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tailrace.cli.main", "sql", "--server", server.address]
    environment = {**os.environ, "COLUMNS": "120", "TERM": "dumb"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as prompt:
        os.close(theirs)
        os.write(ours, b"show\nsources;\nnonsense;\nshow create source ';'\n;\nshow sources like 'x' -- ;\n;\nexit\n")
        assert prompt.wait(60) == 0
        told = os.read(ours, 1 << 16).decode().replace("\r", "")
    os.close(ours)
    assert told.count("table_state") == 2
    assert "error: line 1, column 1: expected ALTER" in told
    assert "error: line 1, column 20: expected a name" in told
    assert told.rstrip().endswith("tailrace> exit")
