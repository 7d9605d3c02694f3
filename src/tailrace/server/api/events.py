"""Server-sent events: what connectors tell, as it happens.

A listener that falls behind is told how much it missed, and so is one that comes back. Nothing is sent again: who needs
the state listens first, and then asks for it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tailrace.connector.events import CutPublished, fields_of
from tailrace.hidden import masked_in
from tailrace.server.api.parts import LISTENERS_MAX, GetParts, Name, ServerParts
from tailrace.server.errors import BusyError, RequestError
from tailrace.server.moments import moment_text
from tailrace.server.supervisor.hub import EventsMissed, LifeChanged, Listener, Telling, Told

ALIVE_SECONDS = 15.0
LOOK_SECONDS = 0.5
RETRY_MS = 2000
"""After how long a browser that lost the connection asks again."""
KINDS = tuple(sorted(each.__name__ for each in get_args(Told)))
RUN = secrets.token_hex(4)
"""Numbers of events begin again with each server, so the number of one says nothing to another."""

router = APIRouter(tags=["events"])
EVENT_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
Kinds = Annotated[list[str] | None, Query(description="Of these kinds only, such as `CutPublished`.")]
LastEventId = Annotated[str | None, Header(description="Sent by browsers that come back.", max_length=100)]


@dataclass(frozen=True)
class Subscription:
    """What a listener wants to hear."""

    names: frozenset[str] | None
    kinds: frozenset[str] | None
    last_id: str | None
    """The last event that it had before."""

    @classmethod
    def of(cls, names: list[str] | None, kinds: list[str] | None, last_id: str | None) -> Subscription:
        strange = sorted(set(kinds or ()) - set(KINDS))
        if strange:
            raise RequestError(f"there is no kind of event {strange[0][:100]}", f"there are {', '.join(KINDS)}")
        return cls(frozenset(names) if names else None, frozenset(kinds) if kinds else None, last_id)

    def has(self, telling: Telling) -> bool:
        if isinstance(telling.told, EventsMissed):
            return True
        is_named = self.names is None or telling.name in self.names
        return is_named and (self.kinds is None or type(telling.told).__name__ in self.kinds)

    def missed(self, newest: int) -> EventsMissed | None:
        """What was told between the last event that the listener had and the one that is the newest now."""
        if self.last_id is None:
            return None
        run, _, number = self.last_id.partition("-")
        if run != RUN or not (number.isascii() and number.isdigit()):
            return EventsMissed(None)
        return EventsMissed(newest - int(number)) if int(number) < newest else None


@router.get("/events", response_class=StreamingResponse, responses=EVENT_STREAM)
async def listen_to_events(
    parts: GetParts,
    request: Request,
    connector: Annotated[list[str] | None, Query(description="Of these connectors only.")] = None,
    kinds: Kinds = None,
    last_event_id: LastEventId = None,
) -> StreamingResponse:
    """States, notifications and progress of all connectors."""
    return _streamed(parts, request, Subscription.of(connector, kinds, last_event_id))


@router.get("/connectors/{name}/events", response_class=StreamingResponse, responses=EVENT_STREAM)
async def listen_to_connector_events(
    parts: GetParts, request: Request, name: Name, kinds: Kinds = None, last_event_id: LastEventId = None
) -> StreamingResponse:
    """States, notifications and progress of one connector."""
    parts.supervisor.require(name)
    return _streamed(parts, request, Subscription.of([name], kinds, last_event_id))


def _streamed(parts: ServerParts, request: Request, wanted: Subscription) -> StreamingResponse:
    if not parts.listeners.acquire(blocking=False):
        raise BusyError(f"{LISTENERS_MAX} listeners are there already", "end one of them")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    lines = _lines(parts, request, wanted)
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


async def _lines(parts: ServerParts, request: Request, wanted: Subscription) -> AsyncIterator[str]:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):
            # The server may have ended at this moment.
            loop.call_soon_threadsafe(woken.set)

    with parts.supervisor.hub.listening(wake) as listener:
        yield f": listening\nretry: {RETRY_MS}\n\n"
        missed = wanted.missed(listener.began)
        if missed is not None:
            yield _line(Telling(listener.began, "", missed))
        quiet = 0.0
        while not parts.closing.is_set() and not await request.is_disconnected():
            lines = _taken(listener, wanted)
            if lines:
                quiet = 0.0
                yield lines
            try:
                await asyncio.wait_for(woken.wait(), LOOK_SECONDS)
                woken.clear()
            except TimeoutError:
                quiet += LOOK_SECONDS
            if quiet >= ALIVE_SECONDS:
                quiet = 0.0
                yield ": alive\n\n"


def _taken(listener: Listener, wanted: Subscription) -> str:
    return "".join(_line(each) for each in listener.take() if wanted.has(each))


def _line(telling: Telling) -> str:
    if telling.shown is None:
        kind, data = type(telling.told).__name__, {"connector": telling.name, **masked_in(_fields(telling.told))}
        telling.shown = f"id: {RUN}-{telling.number}\nevent: {kind}\ndata: {json.dumps(data, default=str)}\n\n"
    return telling.shown


def _fields(told: Told) -> dict[str, Any]:
    match told:
        case LifeChanged(life):
            return {"target": life.target, "phase": life.phase, "trace": life.trace, "is_removed": life.is_removed}
        case EventsMissed():
            return asdict(told)
        case CutPublished(cut):
            times = {"committed": moment_text(cut.position.time_us), "published": moment_text(cut.published_us)}
            return fields_of(told) | times
    return fields_of(told)
