"""A session stands for the token, for whoever has its cookie, until it ends."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from tailrace.server.security import Guard, prefers_html
from tailrace.server.sessions import COOKIE, ENDED_MAX, LIFE_SECONDS, Sessions

TOKEN = "0123456789abcdef"


class Clock:
    """Moved by a test."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_cookie_is_found_again_also_by_the_next_server_and_not_with_another_token() -> None:
    clock = Clock()
    value, begun = Sessions(TOKEN, clock).begin("ann")
    assert (begun.user, begun.expires) == ("ann", clock.now + LIFE_SECONDS)
    assert Sessions(TOKEN, clock).find(f"other=1; {COOKIE}={value}") == begun
    assert Sessions("fedcba9876543210", clock).find(f"{COOKIE}={value}") is None
    assert TOKEN not in value


def test_a_session_ends_by_itself_and_when_it_is_ended() -> None:
    clock = Clock()
    sessions = Sessions(TOKEN, clock)
    (one, begun), (other, _) = sessions.begin(None), sessions.begin(None)
    sessions.end(begun)
    assert sessions.find(f"{COOKIE}={one}") is None
    assert sessions.find(f"{COOKIE}={other}") is not None
    clock.now += LIFE_SECONDS
    assert sessions.find(f"{COOKIE}={other}") is None


def test_what_was_ended_is_remembered_within_bounds() -> None:
    sessions = Sessions(TOKEN)
    cookies = [sessions.begin(None) for _ in range(ENDED_MAX + 1)]
    for _, session in cookies:
        sessions.end(session)
    assert [sessions.find(f"{COOKIE}={value}") is None for value, _ in cookies[1:]] == [True] * ENDED_MAX


@pytest.mark.parametrize("change", ["", "x", "a.b.c", "é", "=", '"; ', "YWJj.YWJj", "\x00", "." * 5000])
def test_a_cookie_that_is_not_ours_is_none(change: str) -> None:
    sessions = Sessions(TOKEN)
    value, _ = sessions.begin("ann")
    assert sessions.find(f"{COOKIE}={change}") is None
    said, signature = value.split(".")
    for wrong in (f"{said}.{signature[:-8]}{change}", f"{change}{said}.{signature}x"):
        assert sessions.find(f"{COOKIE}={wrong}") is None
    assert sessions.find(change) is None


def status(guard: Guard, path: str, method: str = "GET", **headers: str) -> int:
    refused = guard.refusal(Headers({"host": "127.0.0.1:8083", **headers}), path, method)
    return refused[0] if refused else 200


def test_a_cookie_opens_what_the_token_opens_but_not_for_other_sites() -> None:
    sessions = Sessions(TOKEN)
    guard = Guard(TOKEN, "127.0.0.1", sessions=sessions)
    value, session = sessions.begin(None)
    cookie = f"{COOKIE}={value}"
    assert status(guard, "/connectors", cookie=cookie) == 200
    assert status(guard, "/connectors", "DELETE", cookie=cookie, origin="http://evil.example") == 403
    assert status(guard, "/connectors", "POST", cookie=cookie, **{"sec-fetch-site": "same-site"}) == 403
    sessions.end(session)
    assert status(guard, "/connectors", cookie=cookie) == 401


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/ui/", 200),
        ("HEAD", "/ui/app.js", 200),
        ("GET", "/ui", 200),
        ("GET", "/session", 200),
        ("POST", "/session", 200),
        ("DELETE", "/session", 401),
        ("POST", "/ui/app.js", 401),
        ("GET", "/uis", 401),
        ("GET", "/session/x", 401),
        ("GET", "/", 401),
        ("GET", "/connectors", 401),
        ("PUT", "/health", 401),
    ],
)
def test_only_pages_and_the_session_itself_need_no_token(method: str, path: str, expected: int) -> None:
    assert status(Guard(TOKEN, "127.0.0.1", sessions=Sessions(TOKEN)), path, method) == expected


@pytest.mark.parametrize(
    ("accept", "wants"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("text/html", True),
        ("*/*", False),
        ("", False),
        ("application/json", False),
        ("application/json, text/html;q=0.9", False),
        ("text/html;q=0.5, */*;q=0.1", True),
        ("text/html;q=nonsense", False),
        ("text/html, application/json", False),
    ],
)
def test_a_browser_wants_a_page_and_a_program_json(accept: str, wants: bool) -> None:
    assert prefers_html(accept) is wants
    assert status(Guard(TOKEN, "127.0.0.1", sessions=Sessions(TOKEN)), "/", accept=accept) == (200 if wants else 401)
