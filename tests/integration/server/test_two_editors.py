"""Editors who ask at the same moment, each with what all of them have seen: exactly one wins, the others get 409."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.lake.home import LakeHome

EDITORS = 4
ROUNDS = 3
Request = tuple[str, str, Any]


def at_once(server: Served, tag: str, request: Callable[[int], Request]) -> list[httpx.Response]:
    """Every editor's answer. Each has a connection of its own, and all send at the same moment."""
    barrier = threading.Barrier(EDITORS)

    def edit(number: int) -> httpx.Response:
        method, path, body = request(number)
        with httpx.Client(base_url=server.address, timeout=60) as http:
            http.get("/health/live")
            barrier.wait(30)
            headers = {"if-match": tag, "tailrace-user": f"editor {number}"}
            return http.request(method, path, json=body, headers=headers)

    with ThreadPoolExecutor(EDITORS) as pool:
        return list(pool.map(edit, range(EDITORS)))


def winner(answers: list[httpx.Response]) -> int:
    """The number of the one that was let in; all others must have been told of the conflict."""
    assert Counter(each.status_code for each in answers) == {200: 1, 409: EDITORS - 1}, [e.text for e in answers]
    assert all(each.json()["error_code"] == 409 for each in answers if each.status_code == 409)
    return next(number for number, each in enumerate(answers) if each.status_code == 200)


def test_of_concurrent_editors_of_a_configuration_exactly_one_wins(tmp_path: Path) -> None:
    config = config_for("postgresql://postgres@127.0.0.1:1/nowhere")
    path = "/connectors/shop/config"
    with serving(tmp_path / "home") as server:
        server.create("shop", config, initial_state="STOPPED")
        for number in range(2 * ROUNDS):
            method, base = (("PUT", config), ("PATCH", {}))[number % 2]
            tag = server.http.get(path).headers["etag"]
            answers = at_once(
                server, tag, lambda n, method=method, base=base: (method, path, base | {"readers.max": str(n + 1)})
            )
            assert server.ask("GET", path)["readers.max"] == str(winner(answers) + 1)
        assert len(server.supervisor.history("shop")) == 1 + 2 * ROUNDS


def test_of_concurrent_editors_of_offsets_exactly_one_wins(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    path = "/connectors/shop/offsets"
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database))
        lake = server.supervisor.lake_home("shop").lake
        wait_until(lambda: LakeHome(lake).cuts.newest() is not None, 60)
        server.ask("PUT", "/connectors/shop/stop", status=204)
        server.wait_for("shop", "STOPPED")
        shown = server.ask("GET", path)
        requests: list[Request] = [("PATCH", path, shown), ("DELETE", path, None), ("POST", f"{path}/undo", None)]
        undoable = 0
        for number in range(ROUNDS):
            tag = server.http.get(path).headers["etag"]
            # Different kinds of edits too. There is nothing to undo at first, and when every edit was undone.
            kinds = requests[: 2 + bool(undoable)]
            won = winner(at_once(server, tag, lambda n, kinds=kinds: kinds[n % len(kinds)]))
            undoable += -1 if kinds[won % len(kinds)] is requests[2] else 1
            history = server.ask("GET", f"{path}/history")
            assert [each["version"] for each in history] == list(range(1, number + 2))
            assert history[-1]["who"] == f"editor {won}@127.0.0.1"
