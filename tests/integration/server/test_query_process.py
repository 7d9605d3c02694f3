"""Queries in a process of their own: what they take too much of, and what is killed, concerns no one else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.server.queries.queries import AT_ONCE

NAME = "shop.of 世界%"
PATH = f"/connectors/{quote(NAME)}"
"""Of a connector whose lake's folder cannot have its name."""
MEMORY_BOMBS = [
    "select len(range(1000000000))",
    "select repeat('x', 4000000000)",
]
TIME_BOMB = "select list_reduce(range(50000), lambda x, y: x + list_reduce(range(50000), lambda a, b: a + b + y))"
"""One call on a constant, which DuckDB does not interrupt, and which takes minutes and little memory."""


@pytest.fixture(scope="module")
def server(postgres: EmbeddedPostgres) -> Iterator[Served]:
    dsn = postgres.create_database("query_process")
    execute(dsn, "create table t (id int primary key); insert into t values (1), (2)")
    with TemporaryDirectory(prefix="tailrace-home-") as home, serving(Path(home)) as served:
        served.create(NAME, config_for(dsn))
        wait_until(lambda: served.http.get(f"{PATH}/cuts/newest").status_code == 200, 60)
        yield served
        served.ask("DELETE", f"{PATH}?drop_source=true", status=204)
    postgres.drop_database("query_process")
    assert processes() == []


def ask(server: Served, sql: str, **more: Any) -> httpx.Response:
    return server.http.post("/query", json={"connector": NAME, "sql": sql, **more})


def is_well(server: Served) -> bool:
    found = ask(server, "select count(*) from t")
    return found.status_code == 200 and found.json()["rows"] == [[2]]


def processes() -> list[psutil.Process]:
    """The process that answers, and those that it has forked."""
    answering = [
        each for each in psutil.Process().children() if "tailrace.server.queries._fork_server" in command(each)
    ]
    return [process for each in answering for process in (each, *each.children(recursive=True))]


def command(process: psutil.Process) -> str:
    """Nothing of one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.parametrize("sql", MEMORY_BOMBS)
def test_a_query_that_wants_too_much_memory_is_told_so(server: Served, sql: str) -> None:
    answer = ask(server, sql)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert "more memory than it may use: 1024 MiB" in answer.json()["message"]
    assert is_well(server)


def test_a_query_that_cannot_be_interrupted_is_killed_when_its_time_is_over(server: Served) -> None:
    assert is_well(server)
    begun = time.monotonic()
    answer = ask(server, TIME_BOMB, seconds_max=0.5)
    assert answer.status_code == 408
    assert "longer than 0.5 s" in answer.json()["message"]
    assert time.monotonic() - begun < 10
    wait_until(lambda: len(processes()) == 1, 10)
    assert is_well(server)


def test_queries_at_the_same_time_do_not_notice_each_other(server: Served) -> None:
    with ThreadPoolExecutor(4) as pool:
        slow = pool.submit(ask, server, TIME_BOMB, seconds_max=2)
        large = pool.submit(ask, server, MEMORY_BOMBS[0])
        good = [pool.submit(is_well, server) for _ in range(2)]
        assert [each.result(60) for each in good] == [True, True]
        assert large.result(60).status_code == 400
        assert slow.result(60).status_code == 408
    assert is_well(server)


def test_so_many_queries_run_at_once_and_one_more_is_told_to_wait(server: Served) -> None:
    assert is_well(server)
    wait_until(lambda: len(processes()) == 1, 30)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(ask, server, TIME_BOMB, seconds_max=300) for _ in range(AT_ONCE)]
        wait_until(lambda: len(processes()) == 1 + AT_ONCE, 60)
        refused = ask(server, "select 1")
        for fork in processes()[1:]:
            fork.kill()
        assert [each.result(60).status_code for each in running] == [503] * AT_ONCE
    assert refused.status_code == 429
    assert "4 queries run already" in refused.json()["message"]
    assert is_well(server)


@pytest.mark.parametrize("which", [0, 1], ids=["the process", "its fork"])
def test_a_query_whose_process_is_killed_says_so_and_the_next_one_is_answered(server: Served, which: int) -> None:
    assert is_well(server)
    # The fork that has answered ends a moment later.
    wait_until(lambda: len(processes()) == 1, 30)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server, TIME_BOMB, seconds_max=60)

        def is_killed() -> bool:
            """Once may be too early: a query that has not begun is asked again."""
            if len(found := processes()) == 2:
                found[which].kill()
            return asked.done()

        wait_until(is_killed, 50)
        answer = asked.result()
    assert answer.status_code == 503
    assert "something else killed" in answer.json()["message"]
    wait_until(lambda: len(processes()) < 2, 10)
    assert is_well(server)


def test_the_process_sees_no_variable_that_may_be_a_secret(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    for each in processes():
        each.kill()
    assert is_well(server)
    found = processes()[0]
    assert "SHOP_PASSWORD" not in found.environ()
    assert "SHOP_PASSWORD" in os.environ
