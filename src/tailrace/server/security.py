"""Who may ask, and how much: a token, the size of a request, and no other web page.

Without a token the server is for this machine alone. A page in a browser on this machine can send requests too, so one
that comes from another origin, or asks for a host that is not ours, is refused whoever sends it.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import logging
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailrace.errors import DefiniteError
from tailrace.model.backoff import Backoff
from tailrace.server.api.errors import answer
from tailrace.server.connections import Connections
from tailrace.server.sessions import Session, Sessions

BODY_BYTES_MAX = 1 << 20
TOKEN_CHARACTERS_MIN = 16
BODY_SECONDS = 30.0
"""From the end of a request's header to the end of its body."""
REQUESTS_MAX, PEER_REQUESTS_MAX = 200, 100
"""At once, of all peers and of one; more are answered 503."""
LOGIN_BACKOFF = Backoff(0.25, 4.0)
FORGET_SECONDS = 300.0
PEERS_MAX = 1000
OPEN_PATHS = ("/health", "/health/live")
"""What is answered without a token: that the server lives."""
SESSION, PAGES = "/session", "/ui"
"""What a browser needs before it has shown the token: pages that are the same for everyone, and where to show it."""
UNAUTHORIZED = 401
_HEADERS = {
    UNAUTHORIZED: {"www-authenticate": "Bearer"},
    # What is left of the body is not waited for.
    408: {"connection": "close"},
    503: {"retry-after": "1"},
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Guard:
    """What a request must bring."""

    token: str | None
    host: str
    """Where the server listens."""
    body_bytes_max: int = BODY_BYTES_MAX
    body_seconds_max: float = BODY_SECONDS
    sessions: Sessions | None = None
    """Of browsers that have shown the token; none without one."""

    @classmethod
    def make(cls, host: str, token_file: Path | None) -> Guard:
        """A definite error for a server that others could reach without a token."""
        token = None if token_file is None else _token(token_file)
        if token is None and not is_loopback(host):
            raise DefiniteError(
                f"{host} can be reached by others, and there is no token",
                "name a file with one: --token-file FILE; or listen on 127.0.0.1",
            )
        return cls(token, host, sessions=None if token is None else Sessions(token))

    def refusal(self, headers: Headers, path: str, method: str = "GET") -> tuple[int, str] | None:
        """Why a request is refused, or None."""
        if not self._is_our_host(headers.get("host", "")):
            return 403, "the Host header names another server"
        origin = headers.get("origin")
        if origin is not None and _place(origin) != headers.get("host", "").lower():
            return 403, "requests of other origins are not answered"
        is_page = f"{path}/".startswith(f"{PAGES}/")
        if not is_page and headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin"):
            # A page may ask without saying its origin, as for a picture. A link from elsewhere to a page is followed.
            return 403, "requests of other sites are not answered"
        if _is_open(path, method, headers.get("accept", "")) or self.may_ask(headers):
            return None
        return UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN"

    def may_ask(self, headers: Headers) -> bool:
        """Whether a request brings the token, or the cookie that stands for it, or none is needed."""
        return (
            self.token is None
            or self._has_token(headers.get("authorization", ""))
            or self.session_of(headers) is not None
        )

    def session_of(self, headers: Headers) -> Session | None:
        """Whose session a request belongs to."""
        return None if self.sessions is None else self.sessions.find(headers.get("cookie", ""))

    def is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.strip().encode(), self.token.encode())

    def _is_our_host(self, host: str) -> bool:
        """With a token, anything: there may be a proxy. Without one, only this machine's own names."""
        if self.token is not None:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in ("localhost", self.host) or is_loopback(name)

    def _has_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            # For clients that know users and passwords only: the password is the token, whatever the user.
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except ValueError:
                return False
        elif scheme.lower() != "bearer":
            return False
        return self.is_token(given)


def _is_open(path: str, method: str, accept: str) -> bool:
    """What is answered to everyone: it is the same for all, or asks for the token itself."""
    if method in ("GET", "HEAD"):
        is_page = path == PAGES or path.startswith(f"{PAGES}/")
        return path in (*OPEN_PATHS, SESSION) or is_page or (path == "/" and prefers_html(accept))
    return (method, path) == ("POST", SESSION)


def prefers_html(accept: str) -> bool:
    """Whether a header `Accept` wants a page rather than JSON, as a browser's does for an address that is typed in."""
    weights: dict[str, float] = {}
    for each in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        weights[kind] = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0
    others = [weights[kind] for kind in ("application/json", "application/*", "*/*") if kind in weights]
    return weights.get("text/html", 0.0) > max(others[:1], default=0.0)


class FailedLogins:
    """Logins that failed, by peer: told in the server's messages, and answered ever later. One event loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, tuple[int, float]] = {}
        """How many in a row, and when the last one was; oldest first."""

    def pause_seconds(self, peer: str) -> float:
        """How long to wait before this one is answered. Of many, the first, second, fourth … gets a message."""
        count, last = self._known.pop(peer, (0, 0.0))
        count = count + 1 if self._now() - last < FORGET_SECONDS else 1
        self._known[peer] = count, self._now()
        if len(self._known) > PEERS_MAX:
            del self._known[next(iter(self._known))]
        if count & (count - 1) == 0:
            logger.warning("failed login", extra={"peer": peer, "failures": count})
        return LOGIN_BACKOFF.seconds(count)


class Gate:
    """Passes on what the guard lets through, no more requests at once than there is room for, and no body that is too
    large, whether or not its length was told, or takes too long. One event loop."""

    def __init__(
        self,
        app: ASGIApp,
        guard: Guard,
        requests_max: int = REQUESTS_MAX,
        connections: Connections | None = None,
        failed: FailedLogins | None = None,
    ) -> None:
        self._app = app
        self._guard = guard
        self._requests_max = requests_max
        self._requests = 0
        self._connections = connections or Connections()
        self._failed = failed or FailedLogins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _without_slash(scope)
        client = tuple(scope.get("client") or ("", 0))
        self._connections.begun(client)
        try:
            await self._pass(scope, receive, send, client[0])
        finally:
            self._connections.ended(client)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, peer: str) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        refused = (
            self._busy(path, peer) or self._guard.refusal(headers, path, scope["method"]) or self._too_large(headers)
        )
        if refused is not None:
            if refused[0] == UNAUTHORIZED and "authorization" in headers:
                await asyncio.sleep(self._failed.pause_seconds(peer))
            await answer(*refused, _HEADERS.get(refused[0]))(scope, receive, send)
            return
        self._requests += 1
        try:
            await _Measured(self._app, self._guard)(scope, receive, send)
        finally:
            self._requests -= 1

    def _too_large(self, headers: Headers) -> tuple[int, str] | None:
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._guard.body_bytes_max:
            return _too_large(self._guard.body_bytes_max)
        return None

    def _busy(self, path: str, peer: str) -> tuple[int, str] | None:
        """That the server lives is answered always."""
        if path in OPEN_PATHS:
            return None
        if self._connections.requests_of(peer) > PEER_REQUESTS_MAX:
            return (
                503,
                f"{PEER_REQUESTS_MAX} requests of this address are being answered already\nhint: ask again later",
            )
        if self._requests < self._requests_max:
            return None
        return 503, f"{self._requests_max} requests are being answered already\nhint: ask again later"


class _Measured:
    """One request. The application never sees the end of a body that is too long or too late, so it does nothing with
    it; whatever it answers then, the answer is that."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        self._left = guard.body_bytes_max
        self._deadline = asyncio.get_running_loop().time() + guard.body_seconds_max
        self._is_whole = self._has_begun = False
        self._refused: tuple[int, str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def measured() -> Message:
            return await self._next(receive)

        async def begun(message: Message) -> None:
            if self._refused is None or self._has_begun:
                self._has_begun = True
                await send(message)

        try:
            await self._app(scope, measured, begun)
        finally:
            if self._refused is not None and not self._has_begun:
                await answer(*self._refused, _HEADERS.get(self._refused[0]))(scope, receive, send)

    async def _next(self, receive: Receive) -> Message:
        message: Message = {"type": "http.disconnect"}
        if self._refused is None:
            try:
                async with asyncio.timeout_at(None if self._is_whole else self._deadline):
                    message = await receive()
            except TimeoutError:
                seconds = self._guard.body_seconds_max
                self._refused = 408, f"the request has not come to its end within {seconds:g} s"
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body", False)
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self._refused = _too_large(self._guard.body_bytes_max)
        return {"type": "http.disconnect"} if self._refused is not None else message


def _without_slash(scope: Scope) -> Scope:
    """The same request without a slash at the end of its path, which clients of Kafka Connect send. A slash that is
    written as `%2F` belongs to a name."""
    path, raw = scope["path"], scope.get("raw_path") or scope["path"].encode()
    while len(raw) > 1 and raw.endswith(b"/") and raw != f"{PAGES}/".encode():
        path, raw = path[:-1], raw[:-1]
    return {**scope, "path": path or "/", "raw_path": raw}


def _too_large(bytes_max: int) -> tuple[int, str]:
    size = f"{bytes_max >> 20} MiB" if bytes_max >= 1 << 20 else f"{bytes_max} bytes"
    return 413, f"the request is larger than {size}"


def _place(origin: str) -> str | None:
    """Host and port of an origin; None for what is none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise DefiniteError(
            f"the token's file {path} cannot be read", "make one: openssl rand -hex 32 > FILE"
        ) from None
    if len(token) < TOKEN_CHARACTERS_MIN or not token.isprintable() or " " in token:
        hint = f"at least {TOKEN_CHARACTERS_MIN} characters on one line: openssl rand -hex 32 > {path}"
        raise DefiniteError(f"{path} has no token that could be used", hint)
    return token


def exposed_token(path: Path) -> str | None:
    """What to tell of a token's file that others can read; None where only its owner can."""
    if os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return f"the token's file {path} can be read by others: chmod 600 {path}"
    return None
