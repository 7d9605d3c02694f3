"""What a running connector shows to whoever watches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tailrace.model.cut import PublishedCut
from tailrace.snapshot.initial import TableProgress


class Phase(StrEnum):
    """Where a connector is. Set by `Sync`, never stored: a restart finds out anew."""

    STARTING = "starting"
    """Checks, publication, slot, capture, Spark. Next: snapshotting or running."""
    SNAPSHOTTING = "snapshotting"
    """Tables without a snapshot are being copied. Next: running."""
    RUNNING = "running"
    """Changes are published batch by batch. Next: stopped."""
    STOPPED = "stopped"
    """Ended on request, or because `once` had caught up."""


@dataclass(frozen=True)
class StreamStatus:
    """How far the copy is behind."""

    cut: PublishedCut
    log_seq: int
    """Transactions in the log; those behind the cut are readable live."""
    changes_per_second: float
    lag_bytes: int
    """WAL that is not yet durable in our log."""
    lag_seconds: float
    """Age of the oldest transaction that is not yet published; 0 when all are."""
    problem: str | None = None
    """What capture is struggling with."""


class Watcher(Protocol):
    """Shows progress; never decides anything."""

    def say(self, line: str) -> None: ...

    def snapshot(self, tables: Sequence[TableProgress]) -> None: ...

    def streaming(self, status: StreamStatus) -> None: ...

    def phase(self, phase: Phase) -> None: ...
