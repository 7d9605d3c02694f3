"""Sessions: a browser shows the token once and has a cookie from then on.

The cookie says whose it is and until when, and is signed with a key made of the token: it is good in the next server
too, and with another token it is not. Scripts of a page cannot read it, and pages of other sites cannot send it. One
that was ended is refused as long as this server runs.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

LIFE_SECONDS = 12 * 3600
COOKIE = "tailrace_session"
ENDED_MAX = 10_000
"""How many ended sessions are remembered until they would have ended by themselves."""


@dataclass(frozen=True)
class Session:
    """Who has shown the token."""

    id: str
    user: str | None
    expires: int
    """In seconds since 1970."""


class Sessions:
    """Any thread."""

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(token.encode(), b"tailrace session", sha256)
        self._clock = clock
        self._lock = threading.Lock()
        self._ended: dict[str, int] = {}

    def begin(self, user: str | None) -> tuple[str, Session]:
        """A new session, and the value of its cookie."""
        session = Session(secrets.token_hex(8), user, int(self._clock()) + LIFE_SECONDS)
        said = json.dumps([session.id, session.user, session.expires]).encode()
        return f"{_text(said)}.{_text(self._sign(said))}", session

    def find(self, cookies: str) -> Session | None:
        """Of a request with these cookies, its header's text. None where there is none, or one that is not ours or has
        ended."""
        try:
            value = SimpleCookie(cookies)[COOKIE].value
            said, signature = (base64.b64decode(part, b"-_", validate=True) for part in value.split("."))
            if not hmac.compare_digest(signature, self._sign(said)):
                return None
            session = Session(*json.loads(said))
        except (CookieError, KeyError, ValueError):
            return None
        with self._lock:
            is_over = session.id in self._ended or session.expires <= self._clock()
        return None if is_over else session

    def end(self, session: Session) -> None:
        with self._lock:
            now = self._clock()
            self._ended = {id_: expires for id_, expires in self._ended.items() if expires > now}
            while len(self._ended) >= ENDED_MAX:
                del self._ended[next(iter(self._ended))]
            self._ended[session.id] = session.expires

    def _sign(self, said: bytes) -> bytes:
        return hmac.digest(self._key, said, sha256)


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
