"""What a verification tells its listener while it runs. A sync that it runs itself tells the connector's events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.connector import events as connector_events
from tailrace.verify.report import TableReport


@dataclass(frozen=True)
class WaitsFor:
    """What it waits for. Told again and again until it continues."""

    message: str
    hint: str | None = None


@dataclass(frozen=True)
class PointTaken:
    """The source is read as of this point from now on."""

    text: str


@dataclass(frozen=True)
class TasksProgressed:
    """How many of the tasks that compare rows are done, of those that the engine knows of so far."""

    tasks_done: int
    tasks: int


@dataclass(frozen=True)
class TableJudged:
    """What was found of a table while others are still being compared. It may be doubted later: `TableCompared` has the
    last word."""

    report: TableReport


@dataclass(frozen=True)
class TableCompared:
    report: TableReport


VerifyEvent = WaitsFor | PointTaken | TasksProgressed | TableJudged | TableCompared | connector_events.Event
Tell = Callable[[VerifyEvent], None]
"""Called in the thread that verifies, and for the connector's events in the connector's."""
