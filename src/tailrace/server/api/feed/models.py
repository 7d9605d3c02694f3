"""What happened to a connector, as the API shows it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, Field


class FeedKind(StrEnum):
    """Where an entry comes from."""

    STATE = "state"
    """The connector's own. `state` is `starting`, `snapshotting`, `running`, `paused`, `stopped` or `failed`."""
    TABLE = "table"
    """A table's state changed: `state` is its new one."""
    COPY = "copy"
    """A step of a copy: `state` is `started`, `table-completed`, `paused`, `resumed`, `aborted`, `skipped`,
    `completed`."""
    OFFSETS = "offsets"
    """An edit of the offsets: `state` is `waiting`, `taken` or `undone`."""
    CONFIGURATION = "configuration"
    """Another configuration was stored."""
    TROUBLE = "trouble"
    """What the connector waited for or struggled with began, or was over: then `state` is `over`."""
    SOURCE = "source"
    """What was made at the source."""
    WARNING = "warning"
    ERROR = "error"


class FeedEntry(BaseModel):
    """One thing that happened."""

    at: datetime
    kind: FeedKind
    state: str | None = None
    text: str = Field("", description="For a person; empty where the state says it all.")
    hint: str | None = None
    table: str | None = None
    who: str | None = None


class Feed(BaseModel):
    """What happened, the newest first."""

    entries: list[FeedEntry]
    next: datetime | None = Field(description="`before` for what is older; None where nothing is kept.")
