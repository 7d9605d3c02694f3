"""Notifications: the steps in the life of a copy that a signal, or a table's state, has begun."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class CopyStep(StrEnum):
    """Debezium's names, in lower case with hyphens."""

    STARTED = "started"
    """The order has been taken up; its tables are known."""
    IN_PROGRESS = "in-progress"
    """A group of chunks of one table is in the lake."""
    TABLE_COMPLETED = "table-completed"
    """One table is whole."""
    PAUSED = "paused"
    RESUMED = "resumed"
    ABORTED = "aborted"
    """It was stopped, or an error ended it; the text says which."""
    SKIPPED = "skipped"
    """There is nothing to do: no table is meant, or the table is being copied already."""
    COMPLETED = "completed"
    """Every table of the order is whole, or has been told of as aborted or skipped."""


@dataclass(frozen=True)
class Notification:
    """One step. A line of JSON in the lake."""

    step: CopyStep
    time_us: int
    """Microseconds since 1970-01-01 UTC."""
    signal: str | None = None
    """The id of the signal; None for a copy that no signal asked for."""
    table: str | None = None
    """As `namespace.name`; None where the step is of the whole order."""
    rows: int = 0
    """Of the table, or of all tables of the order, in the lake so far."""
    chunks: int = 0
    text: str | None = None
    """For a person: why it was aborted or skipped."""
    held_seconds: float = 0.0
    """Of a table: how long its last window held a state of the source."""
    held_seconds_max: float = 0.0
    """How long the longest of its windows did: the longest transaction that its copy had open there."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> Notification:
        """ValueError, KeyError or TypeError for anything that `to_json` did not make."""
        fields: dict[str, Any] = json.loads(line)
        return cls(CopyStep(fields.pop("step")), **fields)
