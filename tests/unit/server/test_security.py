"""Who may ask, and how much."""

from __future__ import annotations

import asyncio
import base64
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from tailrace.errors import DefiniteError
from tailrace.server.errors import RequestError
from tailrace.server.security import PEER_REQUESTS_MAX, FailedLogins, Gate, Guard, exposed_token
from tailrace.server.supervisor.home import ServerHome, folder_name, require_name

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
    for site, expected in {
        "none": 200,
        "same-origin": 200,
        "same-site": 403,
        "cross-site": 403,
        "Cross-Site": 403,
    }.items():
        assert status(guard, **{"sec-fetch-site": site}) == expected


MALFORMED = ["http://[", "http://[::1", "//[x]", "http://a]b", "[", "]", "\x80", ""]


@pytest.mark.parametrize("value", MALFORMED)
def test_headers_that_make_no_sense_are_refused_and_nothing_breaks(value: str, token_file: Path) -> None:
    assert status(Guard.make("127.0.0.1", None), origin=value) == 403
    assert status(Guard.make("127.0.0.1", None), host=value) == 403
    open_to_others = Guard.make("0.0.0.0", token_file)
    assert status(open_to_others, origin=value, authorization=f"Bearer {TOKEN}") == 403
    assert status(open_to_others, authorization=f"Basic {value}") == 401


def test_the_consoles_files_need_no_token_and_what_they_ask_does(token_file: Path) -> None:
    open_to_others = Guard.make("0.0.0.0", token_file)
    for path in ("/ui", "/ui/", "/ui/login", "/ui/static/app.js"):
        assert status(open_to_others, path) == 200
        # A link on another page leads here.
        assert status(open_to_others, path, **{"sec-fetch-site": "cross-site"}) == 200
    for path in ("/uix", "/connectors/ui/", "/", "/events"):
        assert status(open_to_others, path) == 401
        assert status(open_to_others, path, **{"sec-fetch-site": "cross-site"}) == 403


@given(st.text(), st.text(), st.text())
def test_no_header_breaks_the_guard(host: str, origin: str, authorization: str) -> None:
    for guard in (Guard(None, "127.0.0.1"), Guard(TOKEN, "0.0.0.0")):
        headers = {b"host": host, b"origin": origin, b"authorization": f"Basic {authorization}"}
        raw = [(name, value.encode("latin-1", "replace")) for name, value in headers.items()]
        refused = guard.refusal(Headers(raw=raw), "/")
        assert refused is None or refused[0] in (401, 403)


class Asked:
    """A gate before an application that reads a whole body and then answers, and what both saw of requests."""

    def __init__(self, token: str | None = None, failed: FailedLogins | None = None, **guard: Any) -> None:
        self.got: list[bytes] = []
        """The bodies that were read to their end."""
        self.inside = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()
        self.go_on.set()
        requests_max = guard.pop("requests_max", 10)
        self.gate = Gate(self._application, Guard(token, "127.0.0.1", **guard), requests_max, failed=failed)

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

    async def request(
        self, headers: dict[str, str], *parts: bytes, path: str = "/", peer: str = "", **more: int
    ) -> int:
        """The status, for a body that comes in parts; in so many, if `last` says so."""
        sent: list[dict[str, Any]] = []
        last = more.get("last", len(parts))
        messages = iter(
            {"type": "http.request", "body": part, "more_body": number < last} for number, part in enumerate(parts, 1)
        )

        async def receive() -> Any:
            message = next(messages, None)
            # What does not come is waited for.
            return await asyncio.get_running_loop().create_future() if message is None else message

        async def send(message: Any) -> None:
            sent.append(message)

        raw = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": raw,
            "client": (peer, 1),
        }
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


def test_a_body_that_does_not_come_to_its_end_is_not_waited_for() -> None:
    async def ask() -> None:
        asked = Asked(body_seconds_max=0.1)
        assert await asked.request({}, b"begun", last=2) == 408
        assert await asked.request({}, b"begun", b"ended") == 200
        assert asked.got == [b"begunended"]

    asyncio.run(ask())


def test_one_peer_does_not_take_the_places_of_all() -> None:
    async def ask() -> None:
        asked = Asked(requests_max=PEER_REQUESTS_MAX + 10)
        asked.go_on.clear()
        async with asyncio.TaskGroup() as group:
            many = [group.create_task(asked.request({}, b"", peer="1.1.1.1")) for _ in range(PEER_REQUESTS_MAX)]
            for _ in many:
                await asked.inside.acquire()
            assert await asked.request({}, b"", peer="1.1.1.1") == 503
            others = [group.create_task(asked.request({}, b"", peer="2.2.2.2"))]
            others += [group.create_task(asked.request({}, b"", peer="1.1.1.1", path="/health"))]
            for _ in others:
                await asked.inside.acquire()
            asked.go_on.set()
        assert {each.result() for each in (*many, *others)} == {200}
        assert await asked.request({}, b"", peer="1.1.1.1") == 200

    asyncio.run(ask())


def test_failed_logins_are_told_and_answered_ever_later(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        asked = Asked(TOKEN, FailedLogins())
        begun = time.monotonic()
        for _ in range(3):
            assert await asked.request({"authorization": "Bearer guessed"}, b"", peer="1.1.1.1") == 401
        assert time.monotonic() - begun > 0.25 + 0.5 + 1.0 - 0.1
        assert await asked.request({"authorization": f"Bearer {TOKEN}"}, b"", peer="1.1.1.1") == 200

    with caplog.at_level("WARNING"):
        asyncio.run(ask())
    told = [(each.message, each.__dict__["peer"], each.__dict__["failures"]) for each in caplog.records]
    assert told == [("failed login", "1.1.1.1", 1), ("failed login", "1.1.1.1", 2)]


def test_failed_logins_are_forgotten_and_wait_no_longer_than_seconds() -> None:
    now = [0.0]
    failed = FailedLogins(lambda: now[0])
    pauses = [failed.pause_seconds("1.1.1.1") for _ in range(2000)]
    assert (pauses[0], pauses[-1]) == (0.25, 4.0)
    assert failed.pause_seconds("2.2.2.2") == 0.25
    now[0] = 1e6
    assert failed.pause_seconds("1.1.1.1") == 0.25


def test_a_tokens_file_that_others_can_read_is_warned_of(token_file: Path) -> None:
    token_file.chmod(0o600)
    assert exposed_token(token_file) is None
    for mode in (0o640, 0o604, 0o644):
        token_file.chmod(mode)
        assert f"chmod 600 {token_file}" in str(exposed_token(token_file))


@pytest.mark.parametrize(
    "name", ["", " a", "a ", ".", "..", "a/b", "/", "\\", "a\x00", "a\n", "x" * 256, "\ud800", "a\u202eb", "a\u200bb"]
)
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
