"""Who asks, for histories. A name that is given is believed: whoever has the token could give any."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Depends, Header, Request

from tailrace.server.api.parts import GetParts

NAME_CHARACTERS_MAX = 100
User = Annotated[
    str | None,
    Header(
        description="Who asks, for the history. Default: the user of the session, or of basic authentication.",
        max_length=NAME_CHARACTERS_MAX,
    ),
]


def who_asks(request: Request, parts: GetParts, tailrace_user: User = None) -> str:
    """`ann@192.0.2.7`; without a name, the address alone."""
    address = request.client.host if request.client else "REST"
    session = parts.guard.session_of(request.headers)
    name = printable(tailrace_user) or printable(_basic_user(request.headers.get("authorization", "")))
    name = name or (session.user if session is not None else None)
    return f"{name}@{address}" if name else address


Who = Annotated[str, Depends(who_asks)]


def _basic_user(authorization: str) -> str | None:
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return None


def printable(name: str | None) -> str | None:
    """No one's terminal is written to by a history."""
    found = "".join(each for each in name or "" if each.isprintable()).strip()
    return found[:NAME_CHARACTERS_MAX] or None
