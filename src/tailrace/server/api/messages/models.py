"""Messages, as the API shows them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from tailrace.server.lakes.message_files import LINE_BYTES_MAX, MessageLine

_HEAD = re.compile(rb'\{"time": "([^"]*)", "level": "(\w+)", "logger": "([^"]*)"')
"""How every line of ours begins: much of it need not be read as JSON."""
_PLAIN = ("time", "level", "logger", "message", "traceback")


class MessageLevel(StrEnum):
    """How much a message matters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


_LEVELS = list(MessageLevel)


class MessageInfo(BaseModel):
    """One message. It never has values of rows."""

    id: str = Field(description="Its place, for `before`.")
    time: datetime | None = Field(description="None where the line cannot be read.")
    level: str
    logger: str
    message: str
    fields: dict[str, Any] = Field(description="What else it says, as structure.")
    traceback: str | None

    @classmethod
    def of(cls, line: MessageLine) -> MessageInfo:
        """A line that is no message of ours is shown as it is."""
        try:
            found = json.loads(line.content)
            text = {name: str(found[name]) for name in ("level", "logger", "message")}
            time = time_of(str(found["time"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls.unread(line)
        others = {name: value for name, value in found.items() if name not in _PLAIN}
        return cls(id=str(line.place), time=time, fields=others, traceback=found.get("traceback"), **text)

    @classmethod
    def unread(cls, line: MessageLine) -> MessageInfo:
        head = _HEAD.match(line.content)
        level, logger = (each.decode() for each in head.groups()[1:]) if head else ("info", "")
        text = line.content[:2000].decode("utf-8", "replace")
        is_long = len(line.content) >= LINE_BYTES_MAX
        message = f"too long to be shown, it begins: {text}" if is_long else text
        time = _time_in(head[1]) if head else None
        return cls(
            id=str(line.place), time=time, level=level, logger=logger, message=message, fields={}, traceback=None
        )


class MessagesInfo(BaseModel):
    """Messages, the newest first."""

    messages: list[MessageInfo]
    next: str | None = Field(description="`before` for older ones; None where there are none.")


class Filter:
    """Which lines are wanted. Looks at bytes: most lines are not read as JSON."""

    def __init__(self, level: MessageLevel | None, search: str) -> None:
        wanted = _LEVELS[0 if level is None else _LEVELS.index(level) :]
        self._levels = frozenset(each.value.encode() for each in wanted)
        # As it stands in a line. Small and large letters are told apart only beyond ASCII.
        self._needle = json.dumps(search)[1:-1].encode().lower()

    def has(self, line: MessageLine) -> bool:
        head = _HEAD.match(line.content)
        return (head is None or head[2] in self._levels) and self._needle in line.content.lower()


def time_of(text: str) -> datetime:
    """ValueError for anything else than a time. One without a zone was written by an earlier state of Tailrace, in the
    zone of this machine."""
    return datetime.fromisoformat(text).astimezone(UTC)


def line_time(line: MessageLine) -> datetime | None:
    """Without reading the line as JSON."""
    head = _HEAD.match(line.content)
    return _time_in(head[1]) if head else None


def _time_in(text: bytes) -> datetime | None:
    try:
        return time_of(text.decode())
    except (ValueError, OverflowError):
        return None
