"""Server-sent events: what connectors tell, as it happens.

A listener that falls behind is told how much it missed. Nothing is sent again after a reconnection: who needs the state
asks for it, and then listens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tailrace.connector.events import StreamProgressed, fields_of
from tailrace.hidden import masked_in
from tailrace.server.api.parts import LISTENERS_MAX, GetParts, Name, ServerParts
from tailrace.server.errors import BusyError
from tailrace.server.supervisor.hub import EventsMissed, LifeChanged, Told

ALIVE_SECONDS = 15.0
LOOK_SECONDS = 0.5

router = APIRouter(tags=["events"])
EVENT_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


@router.get("/events", response_class=StreamingResponse, responses=EVENT_STREAM)
async def listen(
    parts: GetParts,
    request: Request,
    connector: Annotated[list[str] | None, Query(description="Of these connectors only.")] = None,
) -> StreamingResponse:
    """States, notifications and progress of all connectors."""
    return _streamed(parts, request, set(connector) if connector else None)


@router.get("/connectors/{name}/events", response_class=StreamingResponse, responses=EVENT_STREAM)
async def listen_to_one(parts: GetParts, request: Request, name: Name) -> StreamingResponse:
    """States, notifications and progress of one connector."""
    parts.supervisor.require(name)
    return _streamed(parts, request, {name})


def _streamed(parts: ServerParts, request: Request, names: set[str] | None) -> StreamingResponse:
    if not parts.listeners.acquire(blocking=False):
        raise BusyError(f"{LISTENERS_MAX} listeners are there already", "end one of them")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    lines = _lines(parts, request, names)
    return _Listening(lines, parts.listeners.release, media_type="text/event-stream", headers=headers)


class _Listening(StreamingResponse):
    """One that has a place among the listeners until it has ended, however it ends."""

    def __init__(self, lines: AsyncIterator[str], ended: Callable[[], None], **more: Any) -> None:
        super().__init__(lines, **more)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _lines(parts: ServerParts, request: Request, names: set[str] | None) -> AsyncIterator[str]:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):
            # The server may have ended at this moment.
            loop.call_soon_threadsafe(woken.set)

    with parts.supervisor.hub.listening(wake) as listener:
        yield ": listening\n\n"
        quiet = 0.0
        while not parts.closing.is_set() and not await request.is_disconnected():
            for name, told in listener.take():
                if names is None or name in names or isinstance(told, EventsMissed):
                    yield _line(name, told)
                    quiet = 0.0
            try:
                await asyncio.wait_for(woken.wait(), LOOK_SECONDS)
                woken.clear()
            except TimeoutError:
                quiet += LOOK_SECONDS
            if quiet >= ALIVE_SECONDS:
                quiet = 0.0
                yield ": alive\n\n"


def _line(name: str, told: Told) -> str:
    match told:
        case LifeChanged(life):
            fields: dict[str, Any] = {
                "target": life.target,
                "phase": life.phase,
                "trace": life.trace,
                "is_removed": life.is_removed,
            }
        case EventsMissed():
            fields = asdict(told)
        case StreamProgressed():
            fields = fields_of(told)
            del fields["cut"]
            fields |= {"cut_seq": told.cut.seq, "tables": len(told.cut.tables)}
        case _:
            fields = fields_of(told)
    data = json.dumps({"connector": name, **masked_in(fields)}, default=str)
    return f"event: {type(told).__name__}\ndata: {data}\n\n"
