"""Waiting for a commit: the newest cut, once everything that committed up to a position is in it.

Whoever waits costs no thread: what the connector tells wakes a look at the lake's files. Where no connector is told of,
as for one lake that is looked at from outside, a cheap look each second finds out.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Query

from tailrace.lake.home import LakeHome
from tailrace.read.reached import Approach, HowFar
from tailrace.server.api.cuts.models import CutInfo, info_of
from tailrace.server.api.parts import LISTENERS_MAX, ServerParts, required_source
from tailrace.server.errors import BusyError, NotFoundError, RequestError, TimedOutError
from tailrace.source.door.codec import Codec
from tailrace.source.kinds import codec_of

WAIT_SECONDS_MAX = 300.0
LOOK_SECONDS = 1.0
"""How long at most between two looks at what tells whether there is more."""
PAUSE_SECONDS = 0.05
"""At least between two looks: several things are told at once."""
NOW = "now"

AtLeast = Annotated[
    str | None,
    Query(description="A position, or `now`: how far the source has committed at this moment.", max_length=100),
]
Wait = Annotated[float, Query(description="How many seconds to wait for it at most.", ge=0, le=WAIT_SECONDS_MAX)]


async def cut_with(parts: ServerParts, name: str, at_least: str | None, wait_seconds: float) -> CutInfo:
    """The newest cut, once it has everything up to `at_least`.

    A 404 as long as nothing was published, where nothing is waited for; else a 408 when the time is over.
    """
    home, codec, ordinal = await run_sync(_asked, parts, name, at_least)
    approach = Approach(home, ordinal)
    found = await run_sync(approach.look)
    if not found.is_reached and wait_seconds > 0:
        found = await _awaited(parts, name, approach, time.monotonic() + wait_seconds)
    if found.is_reached and found.cut is not None:
        return await run_sync(info_of, codec, found.cut)
    if ordinal is None and wait_seconds == 0:
        raise NotFoundError("nothing has been published yet", "wait until the snapshot is done")
    raise _not_in_time(found, codec, at_least, wait_seconds)


def _asked(parts: ServerParts, name: str, at_least: str | None) -> tuple[LakeHome, type[Codec], int | None]:
    """Where to look, and for what."""
    home = parts.supervisor.lake(name)
    record = home.source()
    assert record is not None
    codec = codec_of(record.kind)
    if at_least is None:
        return home, codec, None
    if at_least == NOW:
        with parts.supervisor.asking_source():
            source = required_source(parts.supervisor, name).claimed(record.claim)
            return home, codec, source.now().ordinal
    try:
        return home, codec, codec.parse(at_least).ordinal
    except ValueError:
        raise RequestError(
            f"at_least is no position: {at_least[:60]!r}", "write it as a cut's position, or now"
        ) from None


async def _awaited(parts: ServerParts, name: str, approach: Approach, deadline: float) -> HowFar:
    """What was found last, reached or not."""
    if not parts.listeners.acquire(blocking=False):
        raise BusyError(f"{LISTENERS_MAX} wait or listen already", "ask again when one has ended")
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(woken.set)

    try:
        with parts.supervisor.hub.listening(wake) as listener:
            seen, found = None, await run_sync(approach.look)
            while not found.is_reached and not parts.closing.is_set() and time.monotonic() < deadline:
                is_told = await _is_told(woken, min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
                if is_told and not any(each.name in (name, "") for each in listener.take()):
                    continue
                signs = await run_sync(approach.signs)
                if signs != seen:
                    seen, found = signs, await run_sync(approach.look)
            return found
    finally:
        parts.listeners.release()


async def _is_told(woken: asyncio.Event, seconds_max: float) -> bool:
    """Whether anything was told before the time was over."""
    try:
        await asyncio.wait_for(woken.wait(), seconds_max)
    except TimeoutError:
        return False
    await asyncio.sleep(PAUSE_SECONDS)
    woken.clear()
    return True


def _not_in_time(found: HowFar, codec: type[Codec], at_least: str | None, wait_seconds: float) -> TimedOutError:
    message = f"not yet up to {at_least}" if at_least is not None else "no cut yet"
    waited = f" after {wait_seconds:g} s" if wait_seconds else ""
    return TimedOutError(f"{message}{waited}: {found.words(codec)}", "wait longer: ?wait=60")
