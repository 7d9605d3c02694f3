"""What every route gets: the connectors and how the server is reached."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.figures import FigureRings
from tailrace.server.lakes.numbers import LakeNumbers
from tailrace.server.metrics import Metrics
from tailrace.server.queries.queries import Queries
from tailrace.server.security import FailedLogins, Guard
from tailrace.server.supervisor.board import Board
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.server.supervisor.store import NAME_CHARACTERS_MAX
from tailrace.source.door.source import Source
from tailrace.source.kinds import source_of

LISTENERS_MAX = 50


@dataclass(frozen=True)
class ServerParts:
    """Of one server."""

    supervisor: ConnectorHost
    worker_id: str
    """`host:port`, as Kafka Connect names a worker."""
    queries: Queries
    board: Board
    metrics: Metrics
    numbers: LakeNumbers
    figures: FigureRings
    guard: Guard
    failed_logins: FailedLogins
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the server is to stop: answers that never end by themselves end."""
    listeners: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(LISTENERS_MAX))
    """Places for those who listen to events."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """What cannot be done here at all, by action, each with the rule: for buttons, before they are pressed."""

    @classmethod
    def of(
        cls, supervisor: ConnectorHost, worker_id: str, guard: Guard, refusals: Mapping[str, str] | None = None
    ) -> ServerParts:
        """Of a server whose supervisor has not begun yet: nothing that it tells is missed."""
        board, numbers = Board(supervisor.hub), LakeNumbers()
        return cls(
            supervisor,
            worker_id,
            Queries(),
            board,
            Metrics(supervisor, board, numbers),
            numbers,
            FigureRings(board),
            guard,
            FailedLogins(),
            refusals=refusals or {},
        )


# FastAPI has a thread call what is not `async`, and that costs more than these do.
async def _parts(request: Request) -> ServerParts:
    return cast(ServerParts, request.app.state.parts)


async def _supervisor(request: Request) -> ConnectorHost:
    return cast(ServerParts, request.app.state.parts).supervisor


GetParts = Annotated[ServerParts, Depends(_parts)]
GetSupervisor = Annotated[ConnectorHost, Depends(_supervisor)]
Name = Annotated[str, Path(description="The connector's name.", min_length=1, max_length=NAME_CHARACTERS_MAX)]


def known_source(supervisor: ConnectorHost, name: str) -> Source | None:
    """What the connector copies; None where its address is not known. Is not connected yet."""
    found = supervisor.configuration(name)
    return source_of(found.dsn, **found.source_options) if found.dsn else None


def required_source(supervisor: ConnectorHost, name: str) -> Source:
    """What the connector copies; a conflict where its address is not known."""
    source = known_source(supervisor, name)
    if source is None:
        raise RequestConflictError("the address of the source is not known here", "tailrace ui LAKE --dsn DSN")
    return source


def version_in(if_match: str | None, what: str) -> int | None:
    """The version in an `If-Match` header; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RequestError(f"If-Match is not an ETag of {what}", "send the ETag that GET gave")
    return int(text)
