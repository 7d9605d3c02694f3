"""What kcctl and kafbat ask of Kafka Connect, read in their sources: rules that they hold a server to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from tests.serving import CLASS, Served, config_for, serving

NOWHERE = "postgresql://ann@127.0.0.1:1/shop"
JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a connector that never runs."""
    with serving(tmp_path_factory.mktemp("kcctl") / "home") as served:
        served.create("shop", config_for(NOWHERE), initial_state="STOPPED")
        yield served


def test_the_version_is_one_of_kafka_connect_and_ours_is_in_the_commit(server: Served) -> None:
    """kcctl refuses commands that came with 3.6 and 3.7 to a server whose version is lower."""
    told = server.ask("GET", "/", headers=JSON)
    assert set(told) == {"version", "commit", "kafka_cluster_id"}
    assert tuple(map(int, told["version"].split("."))) >= (3, 7, 0)
    assert told["commit"] == f"tailrace-{version('tailrace')}"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/connectors/", None, 200),
        ("GET", "/connectors/?expand=status&expand=info", None, 200),
        ("GET", "/connectors/shop/", None, 200),
        ("GET", "/connector-plugins/", None, 200),
        ("GET", "/admin/loggers/", None, 200),
        ("PUT", f"/connector-plugins/{CLASS}/config/validate/", {"connector.class": CLASS}, 200),
    ],
    ids=str,
)
def test_a_slash_at_the_end_is_answered_and_not_redirected(
    server: Served, method: str, path: str, body: Any, status: int
) -> None:
    answer = server.http.request(method, path, json=body, follow_redirects=False)
    assert answer.status_code == status, answer.text


def test_a_connector_is_made_paused_and_deleted_with_a_slash_at_the_end(server: Served) -> None:
    body = {"name": "slash", "config": config_for(NOWHERE), "initial_state": "STOPPED"}
    for method, path, sent, status in (
        ("POST", "/connectors/", body, 201),
        ("PUT", "/connectors/slash/pause/", None, 202),
        ("DELETE", "/connectors/slash/", None, 204),
    ):
        answer = server.http.request(method, path, json=sent, follow_redirects=False)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_offsets_of_a_connector_that_is_not_stopped_are_refused_with_400(server: Served, method: str) -> None:
    """Clients take 409 for a rebalance, and try again and again."""
    server.ask("PUT", "/connectors/shop/pause", status=202)
    try:
        refused = server.ask(method, "/connectors/shop/offsets", {"offsets": []}, status=400)
        assert refused["error_code"] == 400
        assert "STOPPED" in refused["message"]
    finally:
        server.ask("PUT", "/connectors/shop/stop", status=204)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/connectors", {"name": "x", "config": {"connector.class": CLASS, "transforms": "a"}}, 400),
        ("POST", "/connectors", {"name": "shop", "config": config_for(NOWHERE)}, 409),
        ("PUT", "/connectors/shop/config", {"connector.class": CLASS, "transforms": "a"}, 400),
        ("PATCH", "/connectors/shop/offsets", {"offsets": []}, 400),
        ("PATCH", "/connectors/shop/offsets", {}, 400),
        ("PUT", f"/connector-plugins/{CLASS}/config/validate", {"connector.class": "another.Connector"}, 400),
        ("PUT", "/admin/loggers/tailrace", {}, 400),
        ("PUT", "/connectors/shop/topics/reset", None, 403),
        ("GET", "/connectors/nowhere/status", None, 404),
        ("GET", "/connectors/nowhere/offsets", None, 404),
        ("GET", "/connectors/shop/tasks/7/status", None, 404),
        ("GET", "/admin/loggers/nowhere", None, 404),
    ],
    ids=str,
)
def test_what_is_refused_has_connects_status_and_its_body(
    server: Served, method: str, path: str, body: Any, status: int
) -> None:
    refused = server.ask(method, path, body, status=status)
    assert set(refused) == {"error_code", "message"}
    assert refused["error_code"] == status


def test_loggers_say_when_they_were_changed_and_a_cluster_is_told_without_an_answer(server: Served) -> None:
    """KIP-976. kcctl reads `last_modified`, which may be null."""
    name = "tailrace.connector"
    before = server.ask("GET", "/admin/loggers")
    assert set(before["root"]) == {"level", "last_modified"}
    assert name in server.ask("PUT", f"/admin/loggers/{name}", {"level": "debug"}, 200)
    changed = server.ask("GET", f"/admin/loggers/{name}")
    assert (changed["level"], abs(changed["last_modified"] / 1000 - time.time()) < 60) == ("DEBUG", True)
    wide = server.http.put(f"/admin/loggers/{name}?scope=cluster", json={"level": before[name]["level"]})
    assert (wide.status_code, wide.content) == (204, b"")
    assert server.ask("GET", f"/admin/loggers/{name}")["level"] == before[name]["level"]


def test_a_worker_says_that_it_is_healthy(server: Served) -> None:
    """KIP-1017; kafbat asks for it."""
    told = server.ask("GET", "/health")
    assert told["status"] == "healthy"
    assert told["message"]


def test_a_plugin_and_its_properties_are_described(server: Served) -> None:
    """`kcctl describe plugin`: from Kafka Connect 3.2 on."""
    plugins = {each["class"]: each for each in server.ask("GET", "/connector-plugins?connectorsOnly=false")}
    assert set(plugins[CLASS]) == {"class", "type", "version"}
    keys = server.ask("GET", f"/connector-plugins/{CLASS}/config")
    assert {"name", "type", "required", "default_value", "importance", "documentation"} <= set(keys[0])
