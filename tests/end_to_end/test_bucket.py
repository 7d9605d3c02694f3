"""A lake in a bucket, from the shell: every command that reads or writes a lake, and secrets that show nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from tests.journey import QUICK_JVM, interrupt, run, start
from tests.postgres import wait_until
from tests.s3 import SECRET, S3Server

SETUP = """
create table orders (id int primary key, total numeric(10,2), note text);
alter table orders alter note set storage external;
insert into orders select n, n / 7.0, repeat(md5(n::text), 100) from generate_series(1, 2000) n;
create table log (text text);
alter table log replica identity full;
insert into log select 'line ' || n % 7 from generate_series(1, 50) n;
"""
CHANGES = """
update orders set total = total + 1 where id % 10 = 0;
delete from orders where id % 10 = 1;
delete from log where text = 'line 3';
create table notes (id int primary key);
insert into notes values (1);
"""


@pytest.mark.timeout(600)
def test_every_command_works_on_a_lake_in_a_bucket_and_its_secret_shows_nowhere(
    database: str, s3: S3Server, tmp_path: Path
) -> None:
    lake, events = f"{s3.make_bucket('from-the-shell')}/shop", tmp_path / "events"
    events.mkdir()
    reached = [f"--storage-option={name}={value}" for name, value in s3.options.items() if name != "secret_access_key"]
    reached += ["--storage-option=secret_access_key=${env:LAKE_SECRET}", f"--home={tmp_path / 'home'}"]
    variables = {"LAKE_SECRET": SECRET, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    log = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    recorded = ["--spark-ui", *(f"--spark-conf=spark.eventLog.{name}={value}" for name, value in log.items())]
    told: list[str] = []

    def ask(*command: str, code: int = 0, **more: str) -> str:
        done = run(*command, *reached, **variables, **more)
        told.append(done.stdout + done.stderr)
        assert done.returncode == code, done
        return done.stdout

    execute(database, SETUP)
    # A JVM of its own, as these settings are of its start.
    ask("sync", database, lake, "--once", *recorded, TAILRACE_JVM_OPTIONS=QUICK_JVM)
    assert_same(database, ask("query", lake, "select count(*), sum(total) from orders", "--csv"))
    execute(database, CHANGES)
    ask("sync", database, lake, "--once")
    ask("verify", database, lake)
    assert_same(database, ask("query", lake, "select count(*), sum(total) from orders", "--csv", "--published"))
    assert ask("query", lake, "show tables", "--csv").split() == ["name", "public.log", "public.notes", "public.orders"]
    assert "public.orders" in ask("tables", lake)
    assert json.loads(ask("offsets", "get", lake))["offsets"]
    ask("signal", lake, "execute-snapshot", "--table", "public.orders", "--id", "again")
    process = start("sync", database, lake, *reached, **variables)
    wait_until(lambda: "done" in ask("signals", lake), 120)
    code, output, errors = interrupt(process)
    assert code == 0, (output, errors)
    ask("verify", database, lake)
    assert "cuts forgotten" in ask("maintain", lake, "--retain", "1s", "--retain-all", "1s")
    ask("verify", database, lake)
    ask("drop", database, lake, "--yes")
    assert_hidden([*told, output, errors], [events, tmp_path / "home"])


def assert_same(database: str, printed: str) -> None:
    with psycopg.connect(database) as conn:
        (count, total) = conn.execute("select count(*), sum(total) from orders").fetchone() or (0, 0)
    assert printed.splitlines()[1] == f"{count},{total}"


def assert_hidden(texts: list[str], folders: list[Path]) -> None:
    """The secret is in nothing that was printed or written."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any(b"SparkListenerJobStart" in path.read_bytes() for path in files), "jobs were recorded"
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert [text for text in texts if SECRET in text] == []


def execute(dsn: str, script: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(script)
