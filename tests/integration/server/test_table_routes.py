"""Tables over REST: pages and counts, what they come to, the commits of their shapes, taking in and leaving out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

TABLES = "/connectors/shop/tables"
ODD = 'public."<img src=x onerror=alert(1)>"'
SCRIPT = f"""
create table a (id int primary key, v text);
insert into a select n, 'v' || n from generate_series(1, 100) n;
create table counted (id int primary key, v text);
insert into counted select * from a;
create table b (id int primary key);
create table "*" (id int primary key);
create table {ODD} (id int primary key);
create schema other;
create table other.c (id int primary key);
"""


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres) -> Iterator[tuple[Served, str]]:
    """One server and one connector for all tests here."""
    dsn = postgres.create_database("table_routes")
    execute(dsn, SCRIPT)
    with TemporaryDirectory(prefix="tailrace-home-") as home, serving(Path(home)) as server:
        server.create("shop", config_for(dsn))
        server.create("idle", config_for(dsn), initial_state="STOPPED")
        wait_until(lambda: _states(server) == ["live"] * 6, 60)
        yield server, dsn
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)
    postgres.drop_database("table_routes")


def _states(server: Served) -> list[str]:
    return [each["state"] for each in server.ask("GET", TABLES)]


def test_tables_come_in_pages_that_name_the_next_one(shop: tuple[Served, str]) -> None:
    server, _ = shop
    all_ = [each["table"] for each in server.ask("GET", TABLES)]
    pages, path = [], f"{TABLES}?limit=2&state=live"
    while path:
        answer = server.http.get(path)
        assert (answer.headers["tailrace-states"], answer.headers["tailrace-count"]) == ("live=6", "6")
        pages.append([each["table"] for each in answer.json()])
        path = answer.links.get("next", {}).get("url", "")
    assert [len(each) for each in pages] == [2, 2, 2]
    assert [table for page in pages for table in page] == all_
    found = server.http.get(f"{TABLES}?search=OTHER.&state=errored&state=live")
    assert ([each["table"] for each in found.json()], found.headers["tailrace-count"]) == (["other.c"], "1")
    none = server.http.get(f"{TABLES}?state=errored")
    assert (none.json(), none.headers["tailrace-count"], none.headers["tailrace-states"]) == ([], "0", "live=6")
    for wrong in ("limit=0", "state=nonsense", "after=nonsense", "limit=many"):
        server.ask("GET", f"{TABLES}?{wrong}", status=400)
    assert server.ask("GET", "/connectors/idle/tables?figures=true&behind=true") == []


def test_rows_bytes_and_the_last_change_are_those_of_the_newest_version(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    before = _figures(server, "public.counted")
    assert (before["rows"], before["last_changed"]) == (100, None)
    assert before["bytes"] > 100
    assert server.ask("GET", f"{TABLES}?limit=1")[0]["rows"] is None, "only where it is asked for"
    execute(dsn, "delete from counted where id <= 40; insert into counted values (500, 'x')")
    wait_until(lambda: _figures(server, "public.counted")["rows"] == 61, 30)
    after = _figures(server, "public.counted")
    assert after["last_changed"] == server.ask("GET", "/connectors/shop/cuts/newest")["committed"]
    untouched = _figures(server, "other.c")
    assert untouched["rows"] in (0, 1), "an empty table has 0 rows, which is known; another test inserts one"
    detail = server.ask("GET", f"{TABLES}/public.counted")
    assert {key: detail[key] for key in after} == after
    newest = server.ask("GET", "/connectors/shop/cuts/newest")
    assert detail["last_good"] == {
        "position": newest["position"],
        "committed": newest["committed"],
        "is_newest": True,
    }


def test_each_shape_names_the_commit_that_brought_it(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    execute(dsn, "insert into b values (1)")
    execute(dsn, "insert into a values (900, 'another table, between'); alter table b add column w text")
    execute(dsn, "insert into b values (2, 'x')")
    wait_until(lambda: len(_shapes(server)) == 2, 30)
    first, second = _shapes(server)
    assert [column["name"] for column in second["columns"]] == ["id", "w"]
    rows = server.ask(
        "POST", "/query", {"connector": "shop", "sql": "select id from b order by 1", "as_of": second["commit"]}
    )
    assert rows["rows"] == [[1], [2]], "as of the commit, the rows that came with it are there"
    assert rows["committed"] == second["committed"]
    assert first["commit"] is None or first["committed"] < second["committed"]


def test_tables_are_left_out_and_taken_in_again(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    body = {"tables": ["public.*", ODD.replace('"', "")], "patterns": ["other.*"]}
    plan = server.ask("POST", f"{TABLES}/exclude?dry_run=true", body)
    assert [each["table"] for each in plan["tables"]] == ["other.c", "public.*", ODD.replace('"', "")]
    assert (plan["applied"], "3 tables will be left out by the running connector" in plan["consequence"]) == (
        False,
        True,
    )
    assert set(_states(server)) == {"live"}
    done = server.ask("POST", f"{TABLES}/exclude", body)
    assert done == plan | {"applied": True}
    wait_until(lambda: sorted(_states(server)) == ["live"] * 3 + ["removed"] * 3, 60)
    refused = server.ask("POST", f"{TABLES}/public.*/resync", status=409)
    assert "left out" in refused["message"]
    server.ask("POST", f"{TABLES}/include", {"patterns": ["*"]})
    execute(dsn, "insert into other.c values (1)")
    wait_until(lambda: set(_states(server)) == {"live"}, 60)
    for wrong in (
        {},
        {"tables": ["nonsense"]},
        {"patterns": [r"/(/"]},
        {"patterns": ["[" * 1001]},
        {"tables": "public.a"},
    ):
        server.ask("POST", f"{TABLES}/exclude", wrong, 400)
    server.ask("POST", "/connectors/idle/tables/exclude", {"patterns": ["*"]}, 409)
    server.ask("POST", "/connectors/none/tables/include", {"patterns": ["*"]}, 404)


def _figures(server: Served, table: str) -> Any:
    found = server.ask("GET", f"{TABLES}?figures=true&search={table}")
    (one,) = [each for each in found if each["table"] == table]
    return {key: one[key] for key in ("rows", "bytes", "last_changed")}


def _shapes(server: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.ask("GET", f"{TABLES}/public.b")["schemas"]
    return found
