"""Verifications over REST: in the background, one at a time, and kept after a restart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psycopg
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.lake.home import LakeHome
from tailrace.server.verifications.records import KEPT_MAX

PATH = "/connectors/shop/verifications"
TABLES = """
create table t (id int primary key, v text); insert into t values (1, 'a'), (2, 'b');
create table u (id int primary key)
"""


def live(server: Served) -> LakeHome:
    server.wait_for("shop", "RUNNING")
    wait_until(lambda: {each["state"] for each in server.ask("GET", "/connectors/shop/tables")} == {"live"}, 60)
    return server.supervisor.lake_home("shop")


def ended(server: Served, number: int) -> Any:
    wait_until(lambda: server.ask("GET", f"{PATH}/{number}")["state"] != "running", 60)
    return server.ask("GET", f"{PATH}/{number}")


def test_a_lake_is_proven_equal_while_it_follows_and_a_row_that_differs_is_named(database: str, tmp_path: Path) -> None:
    execute(database, TABLES)
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database), initial_state="STOPPED")
        server.ask("POST", PATH, status=409)
        server.ask("PUT", "/connectors/shop/resume", status=202)
        home = live(server)
        begun = server.ask("POST", PATH, {}, 202, headers={"tailrace-user": "ann"})
        assert (begun["id"], begun["state"], begun["who"]) == (1, "running", "ann@127.0.0.1")
        found = ended(server, 1)
        assert (found["state"], found["error"], found["progress"]) == ("done", None, None)
        assert found["outcome"]["equal"]
        assert found["outcome"]["verdicts"] == {"equal": 2}
        assert "/" in found["outcome"]["position"]
        assert [(each["table"], each["rows_in_lake"]) for each in found["tables"]] == [("public.t", 2), ("public.u", 0)]
        lose_a_row(home)
        server.ask("POST", PATH, {"tables": ["public.t"]}, 202)
        found = ended(server, 2)
        (table,) = found["tables"]
        assert (found["outcome"]["equal"], table["verdict"]) == (False, "different")
        assert table["differing"] == {"missing": 1, "extra": 0, "changed": 0}
        assert [(each["key"], each["difference"]) for each in table["keys"]] == [({"id": "2"}, "missing")]
        assert [each["id"] for each in server.ask("GET", PATH)] == [2, 1]
        server.ask("POST", PATH, {"tables": ["nothing.*"]}, 202)
        assert "no table of the lake matches" in ended(server, 3)["error"]
        server.ask("GET", f"{PATH}/99", status=404)
        server.ask("POST", f"{PATH}/1/stop", status=409)
        server.ask("GET", "/connectors/none/verifications", status=404)
        for number in range(4, KEPT_MAX + 3):
            server.ask("POST", PATH, {"tables": ["nothing"]}, 202)
            ended(server, number)
        assert len(server.ask("GET", PATH)) == KEPT_MAX


def lose_a_row(home: LakeHome) -> None:
    """A table's file is replaced by one that lacks a row, as no program of ours does."""
    from pyarrow import parquet

    assert isinstance(home.lake, Path)
    (path,) = (home.lake / "public" / "t").glob("*.parquet")
    rows = parquet.read_table(path)
    parquet.write_table(rows.slice(0, rows.num_rows - 1), path)


def test_one_runs_at_a_time_and_ends_when_it_is_told_to(database: str, tmp_path: Path) -> None:
    execute(database, TABLES)
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database))
        live(server)
        # A transaction that is open holds up the snapshot that both sides are compared at.
        with psycopg.connect(database) as conn:
            conn.execute("insert into u values (1)")
            conn.execute("select pg_current_xact_id()")
            conn.execute("lock table t in access exclusive mode")
            number = server.ask("POST", PATH, {}, 202)["id"]
            assert "runs already" in server.ask("POST", PATH, {}, 409)["message"]
            server.ask("POST", f"{PATH}/{number}/stop", status=202)
        assert ended(server, number)["state"] in ("stopped", "done")
        server.ask("PUT", "/connectors/shop/stop", status=204)
        server.wait_for("shop", "STOPPED")
        refused = server.ask("POST", PATH, {}, 409)["message"]
        assert "is STOPPED, so its lake does not follow" in refused


def test_one_whose_server_died_is_interrupted_for_the_next(database: str, tmp_path: Path) -> None:
    execute(database, TABLES)
    home = tmp_path / "home"
    with serving(home) as server:
        server.create("shop", config_for(database))
        folder = live(server).runs.verifications
        server.ask("POST", PATH, {}, 202)
        ended(server, 1)
        record = json.loads((folder / "1.json").read_text())
        assert (folder / "1.json").stat().st_mode & 0o077 == 0
    left = record | {"state": "running", "ended_us": None, "report": None}
    # One of a process with our number, as in a container, and one of a process that is gone.
    for number, process in ((2, os.getpid()), (3, 2**22 + 1)):
        (folder / f"{number}.json").write_text(json.dumps(left | {"id": number, "process": process}))
    with serving(home) as server:
        assert [each["state"] for each in server.ask("GET", PATH)] == ["interrupted", "interrupted", "done"]
        assert server.ask("GET", f"{PATH}/1")["outcome"]["equal"]
        server.wait_for("shop", "RUNNING")
        assert server.ask("POST", PATH, {}, 202)["id"] == 4
        ended(server, 4)
