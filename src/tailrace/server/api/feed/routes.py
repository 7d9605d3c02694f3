"""What happened to a connector, in one list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from tailrace.server.api.feed.feed import feed_of
from tailrace.server.api.feed.models import Feed, FeedEntry
from tailrace.server.api.parts import GetSupervisor, Name
from tailrace.server.moments import require_zone

SAME_MOMENT_MAX = 1000
"""How many more than asked for are sent, so that a page ends between two moments."""

router = APIRouter(tags=["feed"])
Before = Annotated[datetime | None, Query(description="Only what is older, or the `next` of an answer.")]


@router.get("/connectors/{name}/feed")
def get_feed(
    supervisor: GetSupervisor,
    name: Name,
    before: Before = None,
    limit: Annotated[int, Query(ge=1, le=500, description="About how many: what happened at once comes at once.")] = 50,
) -> Feed:
    """States, tables, copies, edits of offsets, configurations, troubles and errors, the newest first, as far as the
    lake and the server keep them."""
    supervisor.require(name)
    if before is not None:
        require_zone(before, "before")
    found: list[FeedEntry] = []
    for entry in feed_of(supervisor, name, before):
        is_full = len(found) >= limit and (entry.at != found[-1].at or len(found) >= limit + SAME_MOMENT_MAX)
        if is_full:
            return Feed(entries=found, next=found[-1].at)
        found.append(entry)
    return Feed(entries=found, next=None)
