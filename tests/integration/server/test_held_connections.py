"""A server answers whoever asks, however many connections are held by others that ask nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.postgres import wait_until
from tests.serving import Process, process, serving

TOKEN = "0123456789abcdef"
HELD = 520


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("held")
    (home / "token").write_text(TOKEN)
    (home / "token").chmod(0o644)
    with process(home / "home", "--token-file", str(home / "token")) as served:
        yield served
        served.process.terminate()
        served.process.wait(60)
    assert "can be read by others" in served.printed["stderr"]


@contextmanager
def held(address: str, sent: bytes) -> Iterator[None]:
    place = urlsplit(address)
    with ExitStack() as stack:
        for _ in range(HELD):
            connection = stack.enter_context(socket.create_connection((place.hostname, place.port), 30))
            try:
                connection.sendall(sent)
            except OSError:
                # It had to make room.
                continue
        yield


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /connectors HTTP/1.1\r\nhost: x\r\n",
        b"POST /connectors HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\ncontent-length: 99\r\n\r\n{"
        % TOKEN.encode(),
    ],
    ids=["silent", "half a header", "half a body"],
)
def test_health_is_answered_while_hundreds_of_connections_are_held(server: Process, sent: bytes) -> None:
    with held(server.address, sent):
        for path in ("/health/live", "/health"):
            assert status(server, path) == 200
        if b"{" not in sent:
            assert status(server, "/connectors") == 200
    wait_until(lambda: status(server, "/connectors") == 200, 60)


def status(server: Process, path: str) -> int:
    """Over a connection of its own: one that is kept would have to make room."""
    return httpx.get(server.address + path, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60).status_code


def test_a_proxy_on_this_machine_may_say_who_asks(tmp_path: Path) -> None:
    assert "FORWARDED_ALLOW_IPS" not in os.environ
    with serving(tmp_path / "home") as server:
        for forwarded in ("192.0.2.7", "not an address"):
            assert server.http.get("/connectors", headers={"x-forwarded-for": forwarded}).status_code == 200
