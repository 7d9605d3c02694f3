"""Who may ask, and how much."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from tailrace.errors import DefiniteError
from tailrace.server.errors import RequestError
from tailrace.server.home import ServerHome, folder_name, require_name
from tailrace.server.security import Gate, Guard

TOKEN = "0123456789abcdef"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


def status(guard: Guard, path: str = "/connectors", **headers: str) -> int:
    refused = guard.refusal(Headers({"host": "127.0.0.1:8083", **headers}), path)
    return refused[0] if refused else 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "db.internal", "8.8.8.8"])
def test_an_address_that_others_can_reach_needs_a_token(host: str, token_file: Path) -> None:
    with pytest.raises(DefiniteError, match="there is no token"):
        Guard.make(host, None)
    assert Guard.make(host, token_file).token == TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.7", "::1", "localhost"])
def test_this_machine_alone_needs_none(host: str) -> None:
    assert Guard.make(host, None).token is None


@pytest.mark.parametrize(
    "content", ["", "short", "with a space in it", "two\nlines-of-a-token", "ctrl-\x07-in-the-middle"]
)
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(DefiniteError, match="no token that could be used"):
        Guard.make("0.0.0.0", tmp_path / "token")
    with pytest.raises(DefiniteError, match="cannot be read"):
        Guard.make("0.0.0.0", tmp_path / "none")


def test_only_the_token_opens(token_file: Path) -> None:
    guard = Guard.make("0.0.0.0", token_file)
    assert status(guard, authorization=f"Bearer {TOKEN}") == 200
    assert status(guard, authorization=f"bearer {TOKEN} ") == 200
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    assert status(guard, authorization=f"Basic {basic}") == 200
    for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, "Basic !", "Basic /w==", "Bearer ü"):
        assert status(guard, authorization=wrong) == 401
    assert status(guard) == 401
    assert status(guard, "/health/live") == 200
    assert status(guard, "/health/ready") == 401


def test_other_origins_and_other_hosts_are_refused() -> None:
    guard = Guard.make("127.0.0.1", None)
    assert status(guard) == 200
    assert status(guard, host="localhost:8083") == 200
    assert status(guard, host="[::1]:8083") == 200
    assert status(guard, host="rebound.example:8083") == 403
    assert status(guard, host="") == 403
    assert status(guard, origin="http://evil.example") == 403
    assert status(guard, origin="null") == 403
    assert status(guard, origin="http://127.0.0.1:8083") == 200


MALFORMED = ["http://[", "http://[::1", "//[x]", "http://a]b", "[", "]", "\x80", ""]


@pytest.mark.parametrize("value", MALFORMED)
def test_headers_that_make_no_sense_are_refused_and_nothing_breaks(value: str, token_file: Path) -> None:
    assert status(Guard.make("127.0.0.1", None), origin=value) == 403
    assert status(Guard.make("127.0.0.1", None), host=value) == 403
    open_to_others = Guard.make("0.0.0.0", token_file)
    assert status(open_to_others, origin=value, authorization=f"Bearer {TOKEN}") == 403
    assert status(open_to_others, authorization=f"Basic {value}") == 401


@given(st.text(), st.text(), st.text())
def test_no_header_breaks_the_guard(host: str, origin: str, authorization: str) -> None:
    for guard in (Guard(None, "127.0.0.1"), Guard(TOKEN, "0.0.0.0")):
        headers = {b"host": host, b"origin": origin, b"authorization": f"Basic {authorization}"}
        raw = [(name, value.encode("latin-1", "replace")) for name, value in headers.items()]
        refused = guard.refusal(Headers(raw=raw), "/")
        assert refused is None or refused[0] in (401, 403)


class Asked:
    """A gate before an application that reads a whole body and then answers, and what both saw of requests."""

    def __init__(self, **guard: int) -> None:
        self.got: list[bytes] = []
        """The bodies that were read to their end."""
        self.inside = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()
        self.go_on.set()
        requests_max = guard.pop("requests_max", 10)
        self.gate = Gate(self._application, Guard(None, "127.0.0.1", **guard), requests_max)

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside.release()
        await self.go_on.wait()
        try:
            self.got.append(await Request(scope, receive).body())
        except ClientDisconnect:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"broken off"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async def request(self, headers: dict[str, str], *parts: bytes, path: str = "/") -> int:
        """The status, for a body that comes in parts."""
        sent: list[dict[str, Any]] = []
        last = len(parts)
        messages = iter(
            {"type": "http.request", "body": part, "more_body": number < last} for number, part in enumerate(parts, 1)
        )

        async def receive() -> Any:
            return next(messages)

        async def send(message: Any) -> None:
            sent.append(message)

        raw = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": raw}
        await self.gate(scope, receive, send)
        assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]
        status = sent[0]["status"]
        assert isinstance(status, int)
        return status


def test_a_body_that_is_too_large_never_gets_in() -> None:
    async def ask() -> None:
        asked = Asked(body_bytes_max=10)
        assert await asked.request({"content-length": "10"}, b"0123456789") == 200
        assert await asked.request({"content-length": "11"}, b"01234567890") == 413
        assert await asked.request({"content-length": "9" * 30}, b"") == 413
        # One whose length is not told, or told wrong: what is there of it is not taken for all of it.
        assert await asked.request({}, b"01234", b"56789", b"x", b"y") == 413
        assert await asked.request({"content-length": "1"}, b"01234", b"56789x") == 413
        assert await asked.request({}, b"01234", b"56789", b"") == 200
        assert asked.got == [b"0123456789", b"0123456789"]

    asyncio.run(ask())


def test_more_requests_at_once_than_there_is_room_for_are_told_to_come_back() -> None:
    async def ask() -> None:
        asked = Asked(requests_max=2)
        asked.go_on.clear()
        async with asyncio.TaskGroup() as group:
            under_way = [group.create_task(asked.request({}, b"")) for _ in range(2)]
            for _ in under_way:
                await asked.inside.acquire()
            assert await asked.request({}, b"") == 503
            live = group.create_task(asked.request({}, b"", path="/health/live"))
            await asked.inside.acquire()
            asked.go_on.set()
        assert [each.result() for each in (*under_way, live)] == [200, 200, 200]
        assert await asked.request({}, b"") == 200

    asyncio.run(ask())


@pytest.mark.parametrize("name", ["", " a", "a ", ".", "..", "a/b", "/", "\\", "a\x00", "a\n", "x" * 256, "\ud800"])
def test_a_name_that_is_a_path_or_cannot_be_seen_is_refused(name: str) -> None:
    with pytest.raises(RequestError):
        require_name(name)


def test_a_name_is_one_folder_of_its_own_whatever_it_is(tmp_path: Path) -> None:
    names = ["shop", "Shop", "a b", "a%20b", "...", "a.b", "~", "~a", "ü", "%", "x" * 255, "x" * 254 + "y", "😀" * 255]
    folders = [ServerHome(tmp_path).lake_of(require_name(name)) for name in names]
    assert len(set(folders)) == len(names)
    for folder in folders:
        assert folder.parent == tmp_path / "lakes"
        assert len(folder.name.encode()) <= 255
        assert not folder.name.startswith(".")
        # DuckDB reads nothing below one.
        assert "%" not in folder.name
    assert folder_name("shop") == "shop"


def test_a_lake_whose_folder_was_named_with_a_percent_sign_stays_there(tmp_path: Path) -> None:
    older = tmp_path / "lakes" / "my%2Eshop"
    assert ServerHome(tmp_path).lake_of("my.shop").name == "my~2Eshop"
    older.mkdir(parents=True)
    assert ServerHome(tmp_path).lake_of("my.shop") == older
