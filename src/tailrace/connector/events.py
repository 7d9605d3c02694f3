"""What a connector tells its listeners. Values; it runs the same without a listener.

Listeners are called one event after another, by threads of the connector, and must return soon.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from tailrace.engine.door import NO_WORK, WorkDone
from tailrace.model.copy_progress import TableProgress
from tailrace.model.cut import PublishedCut
from tailrace.model.notification import Notification
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord


class ConnectorState(StrEnum):
    """Where a connector is. Set by itself, stored in `state.json` for those who look from outside."""

    STARTING = "starting"
    """Checks, claim, capture, Spark. Next: snapshotting or running."""
    SNAPSHOTTING = "snapshotting"
    """No table can be read yet; tables are being copied. Next: running."""
    RUNNING = "running"
    """Changes are published batch by batch. Next: paused, stopped or failed."""
    PAUSED = "paused"
    """Takes nothing from the source and publishes nothing, on request. Next: running or stopped."""
    STOPPED = "stopped"
    """Ended on request, or because `once` had caught up. Next: starting."""
    FAILED = "failed"
    """Ended by an error that is not one table's; the reason says which. Next: starting."""


@dataclass(frozen=True)
class StateChanged:
    state: ConnectorState
    reason: str | None = None


@dataclass(frozen=True)
class SourcePrepared:
    """What was made at the source, a line each."""

    done: Sequence[str]


@dataclass(frozen=True)
class SparkStarting:
    """There are rows to move, and Spark takes a while to start."""

    master: str


@dataclass(frozen=True)
class SparkShown:
    """Spark has started and shows its own page there."""

    address: str


@dataclass(frozen=True)
class SparkWorked:
    """What Spark did in a run that ends."""

    work: WorkDone


@dataclass(frozen=True)
class SourceRetained:
    """What the source keeps of its own log for the connector, every ten seconds."""

    bytes: int | None
    safe_bytes: int | None
    """How much more may be written before the source may give that up; None where it sets no limit."""


@dataclass(frozen=True)
class TableChanged:
    table: TableId
    record: TableRecord


@dataclass(frozen=True)
class SnapshotProgressed:
    tables: Sequence[TableProgress]


@dataclass(frozen=True)
class TablesLanded:
    """These tables have their rows, as of this position or an earlier one."""

    tables: Sequence[TableId]
    text: str | None
    """The position as the source writes it; None before the first transaction of the log."""


@dataclass(frozen=True)
class CutPublished:
    cut: PublishedCut
    text: str
    seconds: float = 0.0
    """What it took to publish."""
    transactions: int | None = None
    """How many came since the cut before; None for the first cut that is known."""


@dataclass(frozen=True)
class CopyNotified:
    """A step in the life of a copy. In the lake's journal when it is told."""

    notification: Notification


@dataclass(frozen=True)
class TroubleChanged:
    """What the connector waits for, or struggles with and tries again; None when it is over."""

    message: str | None
    hint: str | None = None


@dataclass(frozen=True)
class StreamProgressed:
    """How far the copy is, a few times a second."""

    cut: PublishedCut
    text: str
    log_seq: int
    """Transactions in the log; those after the cut are readable live."""
    changes_per_second: float
    lag_bytes: int | None
    """What the source has written and our log does not have yet."""
    lag_seconds: float
    """Age of the oldest transaction that is not yet published; 0 when all are."""
    work: WorkDone = NO_WORK
    """What Spark has done in this run."""


Event = (
    StateChanged
    | SourcePrepared
    | SparkStarting
    | SparkShown
    | SparkWorked
    | SourceRetained
    | TableChanged
    | SnapshotProgressed
    | TablesLanded
    | CutPublished
    | CopyNotified
    | TroubleChanged
    | StreamProgressed
)

_FREQUENT = (SnapshotProgressed, StreamProgressed, SourceRetained)
_logger = logging.getLogger("tailrace.connector")


def log_event(event: Event) -> None:
    """Every event is a message of our logger too, its fields as structure; the frequent ones only for debugging."""
    level = logging.DEBUG if isinstance(event, _FREQUENT) else logging.INFO
    if _logger.isEnabledFor(level):
        _logger.log(level, type(event).__name__, extra={"event": fields_of(event)})


def fields_of(event: Event) -> dict[str, Any]:
    """What it says, as structure. A cut may have thousands of tables and a definition thousands of columns: files of
    their own have them."""
    match event:
        case CutPublished(cut, text, seconds, transactions):
            named = {"seq": cut.seq, "position": text, "tables": len(cut.tables)}
            return {**named, "seconds": seconds, "transactions": transactions}
        case StreamProgressed(cut):
            # Several times a second: the cut's tables are not copied for it.
            others = {
                each.name: getattr(event, each.name) for each in fields(event) if each.name not in ("cut", "work")
            }
            return {**others, "work": asdict(event.work), "cut_seq": cut.seq, "tables": len(cut.tables)}
        case TableChanged(table, record):
            known = replace(record, definition=None, ended=())
            shown = {name: each for name, each in asdict(known).items() if name not in ("definition", "ended")}
            return {"table": asdict(table), "record": shown}
    return asdict(event)
