"""What every route gets: the supervisor and how the server is reached."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from tailrace.server.errors import RequestError
from tailrace.server.figures import FigureRings
from tailrace.server.lakes.numbers import LakeNumbers
from tailrace.server.metrics import Metrics
from tailrace.server.queries.queries import Queries
from tailrace.server.supervisor.board import Board
from tailrace.server.supervisor.store import NAME_CHARACTERS_MAX
from tailrace.server.supervisor.supervisor import Supervisor

LISTENERS_MAX = 50


@dataclass(frozen=True)
class ServerParts:
    """Of one server."""

    supervisor: Supervisor
    worker_id: str
    """`host:port`, as Kafka Connect names a worker."""
    queries: Queries
    board: Board
    metrics: Metrics
    numbers: LakeNumbers
    figures: FigureRings
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the server is to stop: answers that never end by themselves end."""
    listeners: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(LISTENERS_MAX))
    """Places for those who listen to events."""

    @classmethod
    def of(cls, supervisor: Supervisor, worker_id: str) -> ServerParts:
        """Of a server whose supervisor has not begun yet: nothing that it tells is missed."""
        board, numbers = Board(supervisor.hub), LakeNumbers()
        metrics = Metrics(supervisor, board, numbers)
        return cls(supervisor, worker_id, Queries(), board, metrics, numbers, FigureRings(board))


# FastAPI has a thread call what is not `async`, and that costs more than these do.
async def _parts(request: Request) -> ServerParts:
    return cast(ServerParts, request.app.state.parts)


async def _supervisor(request: Request) -> Supervisor:
    return cast(ServerParts, request.app.state.parts).supervisor


GetParts = Annotated[ServerParts, Depends(_parts)]
GetSupervisor = Annotated[Supervisor, Depends(_supervisor)]
Name = Annotated[str, Path(description="The connector's name.", min_length=1, max_length=NAME_CHARACTERS_MAX)]


def version_in(if_match: str | None, what: str) -> int | None:
    """The version in an `If-Match` header; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RequestError(f"If-Match is not an ETag of {what}", "send the ETag that GET gave")
    return int(text)
