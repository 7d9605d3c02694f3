"""The doctor over REST, for a database that no connector has yet. A stored password goes nowhere that it was not meant
for, and no secret comes back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.integration.lake.equality import execute
from tests.serving import Served, config_for, serving

PATH = "/source/examine"
PASSWORD = "canary-password"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as server:
        yield server


def checks(found: Any) -> dict[str, Any]:
    return {each["name"]: each for each in found["checks"]}


def test_a_database_is_examined_before_any_connector_has_it(server: Served, database: str) -> None:
    execute(
        database,
        "create table orders (id int primary key, note text); insert into orders select n from generate_series(1, 9) n;"
        'create table "no key" (note text); create table zebras (id int primary key); analyze',
    )
    found = server.ask("POST", PATH, {"address": database, "config": {"table.exclude.list": r"public\.zebras"}})
    assert checks(found)["connection"]["ok"]
    assert checks(found)["wal_level"]["ok"]
    limit = checks(found)["max_slot_wal_keep_size"]
    assert (limit["ok"], limit["is_sql"]) == (None, True)
    assert limit["hint"].startswith("alter system set")
    tables = {each["table"]: each for each in found["tables"]}
    assert list(tables) == ["public.no key", "public.orders", "public.zebras"]
    orders, keyless = tables["public.orders"], tables["public.no key"]
    assert (orders["rows"], orders["key"], orders["problem"]) == (9, ["id"], None)
    assert orders["bytes"] > 0
    assert [each["is_chosen"] for each in tables.values()] == [True, True, False]
    assert "has no primary key" in keyless["problem"]
    assert "append.only.tables" in keyless["hint"], "in the words of a configuration"
    assert (orders["expression"], keyless["expression"]) == (r"public\.orders", r"public\.no\ key")
    assert found["ready"], "a table that is left out keeps the others from nothing"
    address = urlsplit(database)
    assert found["config"]["database.hostname"] == address.hostname
    assert f"HOST '{address.hostname}'" in found["sql"]
    paged = server.ask("POST", PATH, {"address": database, "limit": 1, "after": "public.no key"})
    assert ([each["table"] for each in paged["tables"]], paged["has_more"]) == (["public.orders"], True)
    assert paged["tables_total"] == 3
    assert server.ask("GET", "/connectors") == [], "nothing was stored"


def test_a_database_that_cannot_be_reached_is_a_finding_with_its_hint(server: Served, database: str) -> None:
    config = config_for(database, database_password=PASSWORD)
    wrong = server.ask("POST", PATH, {"config": config | {"database.user": "no_such_user"}})
    connection = checks(wrong)["connection"]
    assert (wrong["ready"], connection["ok"], wrong["tables"]) == (False, False, [])
    assert "no_such_user" in connection["found"]
    assert PASSWORD not in str(wrong)
    assert wrong["config"]["database.password"] == "********"
    missing = server.ask("POST", PATH, {"config": {"database.hostname": "127.0.0.1"}}, 400)["message"]
    assert "database.user: required" in missing
    assert "nosql:// is not supported" in server.ask("POST", PATH, {"address": "nosql://x/y"}, 400)["message"]
    twice = {"address": database, "config": {"database.hostname": "127.0.0.2"}}
    assert "the address says that already" in server.ask("POST", PATH, twice, 400)["message"]
    server.ask("POST", PATH, {}, 400)


def test_a_stored_password_is_used_only_for_the_server_that_it_was_given_for(server: Served, database: str) -> None:
    config = config_for(database, database_password=PASSWORD)
    server.create("shop", config, initial_state="STOPPED")
    shown = server.ask("GET", "/connectors/shop/config")
    assert server.ask("POST", PATH, {"config": shown, "connector": "shop"})["checks"][0]["ok"]
    assert "mask of a secret" in server.ask("POST", PATH, {"config": shown}, 400)["message"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        elsewhere = {"config": shown | {"database.port": str(listener.getsockname()[1])}, "connector": "shop"}
        assert "stored password is not used" in server.ask("POST", PATH, elsewhere, 400)["message"]
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    server.ask("POST", PATH, {"config": shown, "connector": "none"}, 404)


def test_what_a_reference_leads_to_is_in_no_check(server: Served, database: str, monkeypatch: Any) -> None:
    execute(database, "create table t (id int primary key); create role canary_role login")
    monkeypatch.setenv("SHOP_USER", "canary_role")
    config = config_for(database) | {"database.user": "${env:SHOP_USER}"}
    found = server.ask("POST", PATH, {"config": config})
    assert "******** lacks it" in checks(found)["replication privilege"]["found"]
    assert "canary" not in str(found)
    execute(database, "drop role canary_role")


def test_a_database_that_does_not_answer_is_not_waited_for(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key)")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = config_for(f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/x")
        late = server.ask("POST", PATH, {"config": mute, "seconds_max": 0.3}, 408)
        assert "has not answered within 0.3 s" in late["message"]
    with psycopg.connect(database) as conn:
        conn.execute("lock table pg_class in access exclusive mode")
        server.ask("POST", PATH, {"address": database, "seconds_max": 0.5}, 408)
    assert server.ask("POST", PATH, {"address": database})["ready"]
