"""What connectors and the server have said: the ends of their files of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query

from tailrace.server.api.messages.models import Filter, MessageInfo, MessageLevel, MessagesInfo
from tailrace.server.api.parts import GetSupervisor, Name
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.lakes.message_files import Place, lines_before, message_files

ANSWER_BYTES_MAX = 4 << 20
"""Of the lines of one answer; what is older has to be asked for."""

router = APIRouter(tags=["messages"])
Level = Annotated[MessageLevel | None, Query(description="Only messages that matter at least so much.")]
Before = Annotated[str | None, Query(description="Only those before this `id`, or this `next`.", max_length=40)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Search = Annotated[str, Query(description="Only those whose line has this text.", max_length=200)]


@router.get("/connectors/{name}/messages")
def get_messages(
    supervisor: GetSupervisor,
    name: Name,
    level: Level = None,
    before: Before = None,
    limit: Limit = 100,
    search: Search = "",
) -> MessagesInfo:
    """What a connector has said, the newest first, as long as its lake keeps it."""
    return _read(supervisor.lake_home(name).runs.messages, Filter(level, search), before, limit)


@router.get("/messages")
def get_server_messages(
    supervisor: GetSupervisor, level: Level = None, before: Before = None, limit: Limit = 100, search: Search = ""
) -> MessagesInfo:
    """What the server has said itself, the newest first."""
    if supervisor.own.messages is None:
        raise RequestConflictError("this server keeps no messages of its own", "ask for those of a connector")
    return _read(supervisor.own.messages, Filter(level, search), before, limit)


def _read(path: Path, wanted: Filter, before: str | None, limit: int) -> MessagesInfo:
    try:
        place = None if before is None else Place.parse(before)
    except ValueError:
        raise RequestError("before is no place in the messages", "send an `id` or the `next` of an answer") from None
    found: list[MessageInfo] = []
    room = ANSWER_BYTES_MAX
    for line in lines_before(message_files(path), place):
        if not wanted.has(line):
            continue
        if len(found) == limit or (found and len(line.content) > room):
            return MessagesInfo(messages=found, next=found[-1].id)
        room -= len(line.content)
        found.append(MessageInfo.of(line))
    return MessagesInfo(messages=found, next=None)
