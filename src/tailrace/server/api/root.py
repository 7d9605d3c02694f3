"""What this server is: `/tailrace`, and Kafka Connect's `/` and `/admin/loggers`."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from tailrace.server.api.models import ServerInfo
from tailrace.server.api.parts import GetParts
from tailrace.server.errors import NotFoundError, RequestError
from tailrace.server.moments import moment
from tailrace.server.security import PAGES, prefers_html

CONNECT_VERSION = "3.9.0"
"""Whose API this is. Clients ask for it to know what they may ask: stopping, offsets, plugins' properties."""
OURS, ROOT = "tailrace", "root"
"""All loggers are below ours, which is the root to Kafka Connect's clients."""
LEVELS = {"TRACE": 10, "DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "FATAL": 50, "OFF": 60}
SHOWN = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "FATAL", 60: "OFF"}

router = APIRouter()
_modified_ms: dict[str, int] = {}
"""When a logger's level was last changed; by name, as levels are: for the whole process."""


class OurServer(BaseModel):
    """What this server is, and what it cannot do."""

    version: str = Field(description="Of Tailrace.")
    began: datetime
    address: str = Field(description="Where it listens.")
    home: str | None = Field(description="Its folder; None where it shows one lake and has none.")
    state: str | None = Field(description="Where connectors are stored, without a user or a password.")
    refusals: dict[str, str] = Field(
        description="Actions that cannot be done here at all, each with the rule: `pause`, `create` and so on."
    )


class NewLevel(BaseModel):
    """How much a logger is to say."""

    level: str


class Level(BaseModel):
    """How much a logger says."""

    level: str
    last_modified: int | None = Field(description="When that was changed over REST, in milliseconds since 1970.")


@router.get(
    "/",
    tags=["server"],
    response_model=ServerInfo,
    responses={303: {"description": "To the pages, for a browser."}},
)
async def get_server_info(request: Request) -> ServerInfo | RedirectResponse:
    """Which version of Kafka Connect's API this is, and of Tailrace. A browser is sent to the pages."""
    if prefers_html(request.headers.get("accept", "")):
        return RedirectResponse(f"{PAGES}/", 303, {"vary": "accept"})
    return ServerInfo(version=CONNECT_VERSION, commit=f"tailrace-{version('tailrace')}", kafka_cluster_id="tailrace")


@router.get("/tailrace", tags=["server"])
async def get_server(parts: GetParts) -> OurServer:
    """What this server is, and what cannot be done here: so that a button says why before it is pressed."""
    own = parts.supervisor.own
    return OurServer(
        version=version("tailrace"),
        began=moment(own.began_us),
        address=parts.worker_id,
        home=None if own.home is None else str(own.home),
        state=own.state,
        refusals=dict(parts.refusals),
    )


@router.get("/admin/loggers", tags=["server"])
def list_loggers() -> dict[str, Level]:
    """Every logger of ours, and what it says."""
    return {name: _level(name) for name in [ROOT, *sorted(_ours())]}


@router.get("/admin/loggers/{logger}", tags=["server"])
def get_logger(logger: Annotated[str, Path(description="A logger's name.")]) -> Level:
    """How much one logger says."""
    return _level(_require(logger))


@router.put("/admin/loggers/{logger}", tags=["server"], response_model=list[str], responses={204: {}})
def set_logger_level(
    logger: Annotated[str, Path(description="A logger's name.")],
    level: NewLevel,
    scope: Annotated[str, Query(description="`cluster` answers 204, as there.")] = "worker",
) -> list[str] | Response:
    """Let a logger and those below it say more or less, until the server ends. The loggers that changed."""
    found = _require(logger)
    wanted = LEVELS.get(level.level.upper())
    if wanted is None:
        raise RequestError(f"invalid log level {level.level[:20]}", f"known are {', '.join(LEVELS)}")
    changed = sorted(name for name in _ours() if name == found or name.startswith(f"{found}."))
    for name in changed:
        logging.getLogger(name).setLevel(wanted)
        _modified_ms[name] = time.time_ns() // 1_000_000
    return Response(status_code=204) if scope.lower() == "cluster" else changed


def _ours() -> list[str]:
    known = logging.Logger.manager.loggerDict
    return [OURS, *(name for name in list(known) if name.startswith(f"{OURS}."))]


def _level(name: str) -> Level:
    found = OURS if name == ROOT else name
    level = logging.getLogger(found).getEffectiveLevel()
    return Level(level=SHOWN.get(level, str(level)), last_modified=_modified_ms.get(found))


def _require(name: str) -> str:
    found = OURS if name == ROOT else name
    if found not in _ours():
        raise NotFoundError(f"Logger {name[:100]} not found.")
    return found
