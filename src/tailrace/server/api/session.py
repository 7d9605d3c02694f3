"""`/session`: the token once, then a cookie. For browsers, whose event streams cannot send a header."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from tailrace.server.api.parts import GetParts
from tailrace.server.api.who import NAME_CHARACTERS_MAX, printable
from tailrace.server.errors import UnauthorizedError
from tailrace.server.sessions import COOKIE, LIFE_SECONDS, Session

TOKEN_CHARACTERS_MAX = 4096

router = APIRouter(tags=["session"])


class Login(BaseModel):
    """What opens a session."""

    token: str = Field(max_length=TOKEN_CHARACTERS_MAX)
    user: str | None = Field(None, max_length=NAME_CHARACTERS_MAX, description="For histories. It is believed.")


class SessionInfo(BaseModel):
    """Whether the one who asks may ask more."""

    needs_token: bool = Field(description="Whether the server has a token.")
    is_logged_in: bool
    user: str | None
    expires: datetime | None


@router.get("/session")
async def get_session(parts: GetParts, request: Request) -> SessionInfo:
    """Whether a token is needed, and whether this request brings it. Needs none itself."""
    guard = parts.guard
    session = guard.session_of(request.headers)
    return _info(session, needs_token=guard.token is not None, is_in=guard.may_ask(request.headers))


@router.post("/session")
async def begin_session(parts: GetParts, request: Request, login: Login, response: Response) -> SessionInfo:
    """Show the token; the answer sets a cookie that stands for it. Wrong ones are answered ever later."""
    guard = parts.guard
    if guard.sessions is None:
        return _info(None, needs_token=False, is_in=True)
    if not guard.is_token(login.token):
        peer = request.client.host if request.client else ""
        await asyncio.sleep(parts.failed_logins.pause_seconds(peer))
        raise UnauthorizedError("this is not the token", "it is in the file that --token-file names")
    value, session = guard.sessions.begin(printable(login.user))
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, value, max_age=LIFE_SECONDS, secure=is_secure, httponly=True, samesite="strict")
    response.headers["cache-control"] = "no-store"
    return _info(session, needs_token=True, is_in=True)


@router.delete("/session", status_code=204, response_class=Response)
async def end_session(parts: GetParts, request: Request, response: Response) -> None:
    """Forget the cookie, here and in the browser."""
    session = parts.guard.session_of(request.headers)
    if session is not None and parts.guard.sessions is not None:
        parts.guard.sessions.end(session)
    response.delete_cookie(COOKIE, secure=request.url.scheme == "https", httponly=True, samesite="strict")


def _info(session: Session | None, *, needs_token: bool, is_in: bool) -> SessionInfo:
    expires = None if session is None else datetime.fromtimestamp(session.expires, UTC)
    user = None if session is None else session.user
    return SessionInfo(needs_token=needs_token, is_logged_in=is_in, user=user, expires=expires)
