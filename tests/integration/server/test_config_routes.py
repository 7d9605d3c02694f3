"""The history of configurations over REST, the way back to one, and what is said of each property. No secret is shown,
and none is sent where it was not meant to go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.lake.equality import execute
from tests.lake_consoles import console_from_outside, running_with_console
from tests.postgres import wait_until
from tests.serving import CLASS, Served, config_for, serving

from tailrace.lake.home import LakeHome

NOWHERE = "postgresql://postgres@127.0.0.1:1/nowhere"
PASSWORD, OTHER = "canary-password-1", "canary-password-2"
CONFIG = "/connectors/shop/config"
ANN, BOB = {"tailrace-user": "ann"}, {"tailrace-user": "bob"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as server:
        config = config_for(NOWHERE, database_password=PASSWORD, readers_max="2")
        body = {"name": "shop", "config": config, "initial_state": "STOPPED"}
        server.ask("POST", "/connectors", body, 201, headers=ANN)
        yield server


def history(server: Served, **more: Any) -> Any:
    return server.ask("GET", f"{CONFIG}/history", params=more)


def revert(server: Served, version: int, status: int = 200, body: Any = None, **more: Any) -> Any:
    return server.ask("POST", f"{CONFIG}/revert?version={version}{more.pop('ask', '')}", body, status, **more)


def test_the_history_says_who_changed_what_and_shows_no_secret(server: Served, monkeypatch: Any) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", OTHER)
    server.ask("PATCH", CONFIG, {"readers.max": "3"}, 200, headers=BOB)
    server.ask("PATCH", CONFIG, {"database.password": "${env:SHOP_PASSWORD}", "readers.max": None}, 200, headers=BOB)
    server.ask("POST", "/sql", {"sql": "ALTER SOURCE shop SET (readers.max = '5')"}, 200, headers=ANN)
    found = history(server)
    assert [(each["version"], each["who"], each["is_current"]) for each in found] == [
        (4, "ann@127.0.0.1", True),
        (3, "bob@127.0.0.1", False),
        (2, "bob@127.0.0.1", False),
        (1, "ann@127.0.0.1", False),
    ]
    modified = {"field": "readers.max", "change": "modified", "before": "2", "after": "3"}
    assert found[2]["changes"] == [modified]
    secret, removed = found[1]["changes"]
    assert secret == {
        "field": "database.password",
        "change": "modified",
        "before": "********",
        "after": "********",
    }
    assert (removed["change"], removed["before"], removed["after"]) == ("removed", "3", None)
    assert {each["config"]["database.password"] for each in found} == {"********"}
    assert "SHOP_PASSWORD" not in str(found)
    assert [each["version"] for each in history(server, limit=2, before=4)] == [3, 2]
    assert history(server, limit=2, before=4)[1]["changes"] == [modified], "compared with one that is not shown"
    assert history(server, before=1) == []
    server.ask("GET", "/connectors/none/config/history", status=404)
    server.ask("DELETE", "/connectors/shop", status=204)
    server.create("shop", config_for(NOWHERE), initial_state="STOPPED")
    assert [each["config"] is None for each in history(server)] == [False, True, True, True, True, True]
    assert "nothing is kept" in revert(server, 2, 409)["message"]


def test_a_version_is_stored_again_after_a_dry_run_has_said_what_changes(server: Served) -> None:
    server.ask("PATCH", CONFIG, {"readers.max": "3", "tasks.max": "4"}, 200, headers=BOB)
    plan = revert(server, 1, ask="&dry_run=true")
    assert (plan["possible"], plan["version"], plan["to"], plan["kept"]) == (True, 2, 1, ["database.password"])
    assert [(each["field"], each["change"]) for each in plan["changes"]] == [
        ("readers.max", "modified"),
        ("tasks.max", "removed"),
    ]
    verdicts = {each["name"]: each["verdict"] for each in plan["verdicts"]}
    assert verdicts["readers.max"] == "supported"
    assert len(history(server)) == 2, "a dry run stores nothing"
    assert "at version 2, not 1" in revert(server, 1, 409, headers={"if-match": '"1"'})["message"]
    answer = revert(server, 1, headers={"if-match": '"2"'} | ANN)
    assert answer["config"]["readers.max"] == "2"
    assert "tasks.max" not in answer["config"]
    assert server.supervisor.view("shop").config["database.password"] == PASSWORD
    assert history(server)[0]["who"] == "ann@127.0.0.1"
    revert(server, 99, 404)
    revert(server, 0, 400)


def test_a_stored_password_is_not_sent_to_the_server_of_an_earlier_version(server: Served) -> None:
    moved = {"database.hostname": "127.0.0.2", "database.password": OTHER}
    server.ask("PATCH", CONFIG, moved, 200)
    plan = revert(server, 1, ask="&dry_run=true")
    assert (plan["possible"], plan["needed"], plan["kept"]) == (False, ["database.password"], [])
    assert "stored password is not used" in plan["problem"]
    assert "give the password again" in plan["hint"]
    assert "stored password is not used" in revert(server, 1, 400)["message"]
    assert server.supervisor.view("shop").config["database.hostname"] == "127.0.0.2", "nothing was stored"
    assert "mask" in revert(server, 1, 400, {"secrets": {"database.password": "********"}})["message"]
    assert "no secret" in revert(server, 1, 400, {"secrets": {"readers.max": "9"}})["message"]
    again = {"secrets": {"database.password": PASSWORD}}
    assert revert(server, 1, 200, again, ask="&dry_run=true")["possible"]
    revert(server, 1, 200, again)
    stored = server.supervisor.view("shop").config
    assert (stored["database.hostname"], stored["database.password"]) == ("127.0.0.1", PASSWORD)
    assert not any(secret in str(history(server)) for secret in (PASSWORD, OTHER))


def test_a_secret_that_is_no_longer_stored_has_to_be_given_again(server: Served) -> None:
    server.ask("PATCH", CONFIG, {"database.password": None}, 200)
    plan = revert(server, 1, ask="&dry_run=true")
    assert (plan["possible"], plan["needed"]) == (False, ["database.password"])
    assert "mask of a secret" in revert(server, 1, 400)["message"]


def test_validation_says_the_verdict_of_each_property_and_means_stored_secrets(server: Served) -> None:
    path = f"/connector-plugins/{CLASS}/config/validate"
    given = server.ask("GET", CONFIG) | {"tasks.max": "3", "transforms": "unwrap", "tabel.include.list": "a"}

    def validated(config: dict[str, str], **more: str) -> dict[str, Any]:
        answer = server.ask("PUT", path, config, 200, params=more)
        return {each["definition"]["name"]: each for each in answer["configs"]}

    found = validated(given, connector="shop")
    verdicts = {name: found[name]["definition"]["verdict"] for name in given}
    assert verdicts["database.hostname"] == "supported"
    assert (verdicts["tasks.max"], verdicts["transforms"]) == ("ignored", "refused")
    assert verdicts["tabel.include.list"] is None
    assert "table.include.list" in found["tabel.include.list"]["value"]["errors"][0]
    assert "one task" in found["tasks.max"]["value"]["warnings"][0]
    assert "a query can do the rest" in found["transforms"]["definition"]["reason"]
    assert [each["value"]["is_given"] for each in (found["tasks.max"], found["lake.retain"])] == [True, False]
    assert found["database.password"]["value"]["errors"] == []
    assert "mask of a secret" in validated(given)["database.password"]["value"]["errors"][0]
    elsewhere = validated(given | {"database.hostname": "127.0.0.2"}, connector="shop")
    assert "stored password is not used" in elsewhere["database.password"]["value"]["errors"][0]
    server.ask("PUT", path, given, 404, params={"connector": "none"})
    listed = server.ask("GET", f"/connector-plugins/{CLASS}/config")
    assert {each["verdict"] for each in listed} == {"supported", "ignored", "refused"}


def test_a_console_of_one_lake_answers_as_far_as_it_can(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key)")
    lake = tmp_path / "lake"
    with running_with_console(database, lake) as (console, _):
        wait_until(lambda: LakeHome(lake).cuts.newest() is not None, 60)
        path = f"/connectors/{console.name}"
        assert console.ask("GET", f"{path}/config/history") == []
        assert "had no configuration 1" in console.ask("POST", f"{path}/config/revert?version=1", {}, 404)["message"]
        shown = console.ask("GET", f"{path}/config")
        assert console.ask("POST", "/source/examine", {"config": shown, "connector": console.name})["ready"]
        assert console.ask("GET", f"{path}/verifications") == []
    with console_from_outside(lake) as console:
        refused = console.ask("POST", f"/connectors/{console.name}/verifications", {}, 409)["message"]
        assert "address of the source is not known" in refused
