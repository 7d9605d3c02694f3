"""Cuts, their differences, waiting for a commit, and queries that are stopped, on a real Postgres."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests import journey
from tests.integration.lake.equality import execute
from tests.integration.server.test_query_process import processes
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.server.api.cuts.changes import changes_between

SCRIPT = """
create table t (id int primary key, v text);
create table "<b>o'q" (id int primary key);
create table quiet (id int primary key);
insert into quiet values (1);
"""
SLOW = "select list_reduce(range(50000), lambda x, y: x + list_reduce(range(50000), lambda a, b: a + b + y))"
"""One call on a constant, which DuckDB does not interrupt, and which takes minutes."""
CUTS = "/connectors/shop/cuts"


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres) -> Iterator[tuple[Served, str]]:
    dsn = postgres.create_database("cuts_routes")
    execute(dsn, SCRIPT)
    with TemporaryDirectory(prefix="tailrace-home-") as home, serving(Path(home)) as server:
        server.create("shop", config_for(dsn))
        server.create("idle", config_for(dsn), initial_state="STOPPED")
        wait_until(lambda: server.http.get(f"{CUTS}/newest?wait=60").status_code == 200, 60)
        wait_until(lambda: len(server.ask("GET", f"{CUTS}/newest")["tables"]) == 3, 60)
        yield server, dsn
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)
    postgres.drop_database("cuts_routes")


def written(server: Served, dsn: str, sql: str) -> Any:
    """The cut that has what was just committed."""
    execute(dsn, sql)
    return server.ask("GET", f"{CUTS}/newest?at_least=now&wait=60")


def test_cuts_are_listed_by_position_and_time_with_and_without_their_tables(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    first = written(server, dsn, "insert into t values (1, 'a')")
    second = written(server, dsn, "insert into t values (2, 'b')")
    found = server.ask("GET", CUTS)
    assert [each["seq"] for each in found] == sorted((each["seq"] for each in found), reverse=True)
    assert found[0]["tables"].keys() == {"public.t", "public.quiet", "public.<b>o'q"}
    light = server.ask("GET", CUTS, params={"tables": False})
    assert light == [each | {"tables": None} for each in found]
    between = {"from": first["position"], "to": second["position"], "tables": False}
    assert [each["seq"] for each in server.ask("GET", CUTS, params=between)] == [second["seq"], first["seq"]]
    assert server.ask("GET", CUTS, params=between | {"limit": 1})[0]["seq"] == second["seq"]
    by_time = {"from": second["committed"], "to": "2100-01-01T00:00:00Z"}
    assert [each["seq"] for each in server.ask("GET", CUTS, params=by_time)] == [second["seq"]]
    for wrong in ("yesterday", "2026-01-01T00:00:00", "0/", "inf"):
        assert "hint" in server.ask("GET", CUTS, params={"from": wrong}, status=400)["message"]


def test_one_cut_has_what_the_source_did_since_the_one_before(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    before = written(server, dsn, "select 1")
    with psycopg.connect(dsn) as connection:
        connection.execute("insert into t select n, 'x' from generate_series(100, 109) n")
        connection.execute("update t set v = 'y' where id < 103 and id >= 100")
        connection.execute("delete from t where id = 109")
        connection.execute("""insert into "<b>o'q" values (1), (2)""")
    cut = server.ask("GET", f"{CUTS}/newest?at_least=now&wait=60")
    found = server.ask("GET", f"{CUTS}/{cut['seq']}")
    assert (found["position"], found["before"]) == (cut["position"], before["seq"])
    assert [each["table"] for each in found["tables"]] == ["public.<b>o'q", "public.quiet", "public.t"]
    since = found["since"]
    assert (since["transactions"], since["changes"], since["counted"], since["note"]) == (1, 16, "log", None)
    mine, other = since["tables"]
    assert mine == {
        "table": "public.t",
        "transactions": 1,
        "changes": 14,
        "inserts": 10,
        "updates": 3,
        "deletes": 1,
        "truncates": 0,
    }
    assert (other["table"], other["inserts"]) == ("public.<b>o'q", 2)
    assert "the one before it is of" in server.ask("GET", f"{CUTS}/{cut['seq'] + 7}", status=404)["message"]
    for wrong in ("x", "-1", str(1 << 70)):
        server.ask("GET", f"{CUTS}/{wrong}", status=400)


def test_what_is_too_much_to_count_is_told_from_the_index_and_says_so(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    before = written(server, dsn, "select 1")
    written(server, dsn, "insert into t values (200, 'x'), (201, 'x')")
    both = """insert into t values (202, 'x'); insert into "<b>o'q" values (3)"""
    cut = written(server, dsn, f"begin; {both}; commit; insert into quiet values (2), (3), (4)")
    home = server.supervisor.lake("shop")
    found = changes_between(home, before["seq"], cut["seq"], bytes_max=0)
    tables = {each.table: (each.transactions, each.changes, each.inserts) for each in found.tables}
    assert tables == {"public.t": (2, None, None), "public.<b>o'q": (1, None, None), "public.quiet": (1, 3, None)}
    assert (found.transactions, found.changes, found.counted) == (3, 7, "index")
    assert found.note is not None
    gone = changes_between(home, before["seq"], cut["seq"] + 1000)
    assert (gone.counted, gone.tables, gone.changes) == ("gone", [], None)
    assert "the log ends at" in str(gone.note)


def test_two_cuts_differ_in_the_tables_that_were_changed_between_them(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    older = written(server, dsn, "select 1")
    newer = written(
        server, dsn, "insert into t values (300, 'x'); delete from t where id = 300; insert into t values (301)"
    )
    path = f"{CUTS}/difference?from={newer['seq']}&to={older['seq']}"
    found = server.ask("GET", path)
    assert (found["older"]["seq"], found["newer"]["seq"], found["same"]) == (older["seq"], newer["seq"], 2)
    assert [(each["table"], each["how"]) for each in found["tables"]] == [("public.t", "changed")]
    assert [(each["inserts"], each["deletes"]) for each in found["between"]["tables"]] == [(2, 1)]
    same = server.ask("GET", f"{CUTS}/difference?from={older['seq']}&to={older['seq']}")
    assert (same["tables"], same["same"], same["between"]["transactions"]) == ([], 3, 0)
    copies = server.ask("GET", "/connectors/shop/tables/quiet")["copies"]
    server.ask("POST", "/connectors/shop/tables/quiet/resync", status=202)
    wait_until(lambda: server.ask("GET", "/connectors/shop/tables/quiet")["copies"] > copies, 60)
    wait_until(lambda: server.ask("GET", "/connectors/shop/tables/quiet")["state"] == "live", 60)
    last = written(server, dsn, "insert into t values (302)")
    found = server.ask("GET", f"{CUTS}/difference?from={older['seq']}&to={last['seq']}")
    assert {each["table"]: each["how"] for each in found["tables"]} == {
        "public.t": "changed",
        "public.quiet": "copied again",
    }
    server.ask("GET", f"{CUTS}/difference?from={older['seq']}", status=400)
    server.ask("GET", f"{CUTS}/difference?from=1&to={1 << 50}", status=404)


def test_whoever_waits_gets_the_cut_that_has_the_commit(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    now = written(server, dsn, "insert into t values (400, 'x')")
    assert server.ask("GET", f"{CUTS}/newest", params={"at_least": now["position"]})["seq"] >= now["seq"]
    far = "FFFFFF/0"
    late = server.ask("GET", f"{CUTS}/newest", params={"at_least": far}, status=408)["message"]
    assert f"not yet up to {far}: the lake shows " in late
    assert "the log ends at " in late
    began = time.monotonic()
    server.ask("GET", f"{CUTS}/newest", params={"at_least": far, "wait": 0.3}, status=408)
    assert 0.3 <= time.monotonic() - began < 10
    with psycopg.connect(dsn, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        (ahead,) = connection.execute("select (pg_current_wal_lsn() + 20000)::text").fetchone() or ("",)
        waiting = pool.submit(server.ask, "GET", f"{CUTS}/newest?at_least={ahead}&wait=60")
        connection.execute("insert into t select n, repeat('x', 100) from generate_series(1000, 1400) n")
        connection.execute("insert into t values (1401)")
        found = waiting.result(60)
    assert found["seq"] > now["seq"]
    sql = {"connector": "shop", "sql": "select count(*) from t where id >= 1000", "as_of": found["position"]}
    assert server.ask("POST", "/query", sql)["rows"][0][0] >= 401
    for wrong in ("nonsense", "x" * 500):
        server.ask("GET", f"{CUTS}/newest", params={"at_least": wrong}, status=400)
    server.ask("GET", f"{CUTS}/newest?wait=1000", status=400)
    server.ask("GET", "/connectors/idle/cuts/newest?wait=1", status=409)
    server.ask("GET", "/connectors/none/cuts/newest?wait=1", status=404)
    wait_until(lambda: server.supervisor.hub.listeners == 0, 10)


def test_a_command_waits_for_the_same_without_a_server(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    lake = str(server.supervisor.lake("shop").lake)
    execute(dsn, "insert into t values (2000, 'x')")
    done = journey.run("wait", lake, "--now", "--dsn", dsn, "--json", **journey.NO_SPARK)
    found = json.loads(done.stdout)
    assert (done.returncode, found["reached"]) == (0, True), done.stderr
    sql = {"connector": "shop", "sql": "select count(*) from t where id = 2000", "published": True}
    assert server.ask("POST", "/query", sql)["rows"] == [[1]]
    assert found["seq"] <= server.ask("GET", f"{CUTS}/newest")["seq"]
    again = journey.run("wait", lake, "--lsn", found["wanted"], "--timeout", "0")
    assert (again.returncode, again.stdout.split(":")[0]) == (0, f"{found['wanted']} reached")
    late = journey.run("wait", lake, "--at-least", "FFFFFF/0", "--timeout", "0.2")
    assert (late.returncode, late.stdout.split(":")[0]) == (1, "FFFFFF/0 not reached in time")
    for wrong, says in (
        (["--at-least", "nonsense"], "is no position"),
        ([], "what is to be waited for?"),
        (["--now"], "--now asks the source"),
        (["--now", "--dsn", dsn.rpartition("/")[0] + "/postgres"], "is a copy of database cuts_routes"),
    ):
        refused = journey.run("wait", lake, *wrong)
        assert (refused.returncode, says in refused.stderr) == (2, True), refused.stderr


def test_a_query_says_its_types_and_its_time_and_is_stopped_by_its_id(shop: tuple[Served, str]) -> None:
    server, _ = shop
    asked = {"connector": "shop", "sql": "select 1 as n, 'x' as \"<b>\", 1.50 as d", "id": "fast"}
    found = server.ask("POST", "/query", asked)
    assert (found["columns"], found["types"]) == (["n", "<b>", "d"], ["INTEGER", "VARCHAR", "DECIMAL(3,2)"])
    assert 0 < found["elapsed_seconds"] < 60
    server.ask("DELETE", "/query/fast", status=404)
    server.ask("POST", "/query", asked | {"id": "no/id"}, 400)
    wait_until(lambda: len(processes()) == 1, 30)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(server.ask, "POST", "/query", {"connector": "shop", "sql": SLOW, "id": "slow"}, 409)
        wait_until(lambda: len(processes()) == 2, 30)
        assert "runs already" in server.ask("POST", "/query", asked | {"id": "slow"}, 409)["message"]
        server.ask("DELETE", "/query/slow", status=204)
        began = time.monotonic()
        assert slow.result(60)["message"].startswith("the query was stopped")
    assert time.monotonic() - began < 10
    server.ask("DELETE", "/query/slow", status=404)
    assert server.ask("POST", "/query", asked | {"id": "slow"})["rows"] == [[1, "x", "1.50"]]
