"""A browser logs in once and then asks with its cookie; clients of Kafka Connect find what they look for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version

import httpx
import pytest
from tests.serving import Served, config_for, serving

from tailrace.server.sessions import COOKIE

NOWHERE = "postgresql://ann@127.0.0.1:9/shop"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("session")
    (folder / "token").write_text("a-token-of-these-tests")
    (folder / "token").chmod(0o600)
    with serving(folder / "home", token_file=folder / "token") as served:
        yield served


@pytest.fixture
def browser(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=60) as client:
        yield client


def test_a_browser_shows_the_token_once(server: Served, browser: httpx.Client) -> None:
    assert browser.get("/session").json() == {
        "needs_token": True,
        "is_logged_in": False,
        "user": None,
        "expires": None,
    }
    assert browser.get("/connectors").status_code == 401
    answer = browser.post("/session", json={"token": "a-token-of-these-tests", "user": "ann\x07"})
    assert (answer.status_code, answer.json()["user"]) == (200, "ann")
    said = answer.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
        assert flag in said
    assert "Secure" not in said
    assert browser.get("/connectors").json() == []
    assert browser.get("/session").json() == answer.json()
    old = browser.cookies[COOKIE]
    assert browser.delete("/session").status_code == 204
    assert COOKIE not in browser.cookies
    assert browser.get("/connectors").status_code == 401
    assert httpx.get(f"{server.address}/connectors", cookies={COOKIE: old}).status_code == 401


def test_wrong_tokens_are_answered_ever_later(browser: httpx.Client) -> None:
    began, took = time.monotonic(), []
    for _ in range(3):
        answer = browser.post("/session", json={"token": "not the token at all"})
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert "not the token at all" not in answer.text
        took.append(time.monotonic() - began)
        began = time.monotonic()
    assert took[0] < took[1] < took[2]
    assert browser.post("/session", json={}).status_code == 400
    assert browser.post("/session", json={"token": "x" * 5000}).status_code == 400


def test_a_cookie_is_sent_over_tls_only_where_it_was_made_over_tls(server: Served, browser: httpx.Client) -> None:
    login = {"token": "a-token-of-these-tests"}
    answer = browser.post("/session", json=login, headers={"x-forwarded-proto": "https"})
    assert "Secure" in answer.headers["set-cookie"]


def test_histories_name_the_user_of_the_session(server: Served, browser: httpx.Client) -> None:
    browser.post("/session", json={"token": "a-token-of-these-tests", "user": "ann"})
    server.create("shop", config_for(NOWHERE), initial_state="STOPPED")
    assert browser.get("/connectors/shop/").json()["name"] == "shop"
    server.ask("DELETE", "/connectors/shop", status=204)


def test_the_root_tells_clients_of_kafka_connect_whose_api_this_is(server: Served) -> None:
    told = server.ask("GET", "/")
    major, minor, _ = told["version"].split(".")
    # From then on clients stop connectors, edit offsets and ask for properties of plugins.
    assert (int(major), int(minor)) >= (3, 6)
    assert told["commit"].startswith("tailrace-")
    ours = server.ask("GET", "/tailrace")
    assert (ours["version"], ours["refusals"]) == (version("tailrace"), {})
    page = server.http.get("/", headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["location"]) == (303, "/ui/")
    assert httpx.get(server.address, headers={"accept": "text/html"}).status_code == 303


def test_a_slash_at_the_end_of_a_path_is_no_matter(server: Served) -> None:
    assert server.ask("GET", "/connectors/") == []
    body = {"name": "slash", "config": config_for(NOWHERE), "initial_state": "STOPPED"}
    server.ask("POST", "/connectors/", body, 201)
    for path in ("/connectors/slash/", "/connectors/slash/status//", "/health/", "/connector-plugins/"):
        server.ask("GET", path, status=200)
    assert httpx.get(f"{server.address}/health/").status_code == 200
    assert httpx.get(f"{server.address}/connectors/").status_code == 401
    # One that is written as %2F belongs to the name.
    server.ask("GET", "/connectors/slash%2F", status=404)
    server.ask("DELETE", "/connectors/slash/", status=204)
