"""One Spark for all connectors of a server: started when it is needed, and again when it dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Process, config_for, process

ROWS = 200_000
LARGE = f"insert into t select g, repeat(md5(g::text), 32) from generate_series(1, {ROWS}) g"
"""One transaction of 200 MB: more than a connector folds in its own process."""
SMALL = "delete from t where id <= 10"


def jvms(pid: int) -> list[int]:
    children = psutil.Process(pid).children(recursive=True)
    return [each.pid for each in children if each.name() == "java" and each.status() != psutil.STATUS_ZOMBIE]


def rows(server: Process, connector: str) -> int:
    body = {"connector": connector, "sql": "select count(*) from t", "published": True}
    found = server.ask("POST", "/query", body, (200, 400, 409), timeout=300)
    return int(found["rows"][0][0]) if "rows" in found else -1


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_one_spark_is_started_late_shared_and_started_again(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key, v text)")
    with process(tmp_path / "home") as server:
        for name in ("one", "two"):
            server.create(name, config_for(database))
            wait_until(lambda name=name: rows(server, name) == 0, 60)
        execute(database, LARGE)
        execute(database, SMALL)
        for name in ("one", "two"):
            wait_until(lambda name=name: rows(server, name) == ROWS - 10, 900)
        (first,) = jvms(server.process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not jvms(server.process.pid), 30)
        execute(database, "delete from t")
        execute(database, LARGE)
        for name in ("one", "two"):
            wait_until(lambda name=name: rows(server, name) == ROWS, 900)
            server.wait_for(name, "RUNNING")
        assert len(jvms(server.process.pid)) == 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        wait_until(lambda: not jvms_left(tmp_path), 30)


def jvms_left(folder: Path) -> list[int]:
    return [
        each.pid for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or [])
    ]
