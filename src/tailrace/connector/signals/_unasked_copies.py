"""Copies that no signal asked for: the first one of a table, and those after a request or because of a change.

They are told of step by step like the others. What was told of them is stored after it was told: after a crash a step
may be told twice, and none is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tailrace.connector.copy.growth import Growth
from tailrace.model.notification import CopyStep
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

NAMES_MAX = 20
_BEGUN = (TableState.SNAPSHOTTING, TableState.RESYNCING)


class Notify(Protocol):
    """Tells a step of a table, or of all of them."""

    def __call__(self, step: CopyStep, table: str | None = None, text: str | None = None) -> None: ...


class Unasked:
    """One thread."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._told: dict[str, Growth] = {}
        """How far tables were when that was told."""

    def step(self, known: Mapping[str, int], records: Mapping[TableId, TableRecord], asked: set[str]) -> dict[str, int]:
        """Tell what has changed since the copies `known` were told of. Returns those that are under way now. Tables
        that are `asked` for are left to who asked."""
        under_way = {str(t): r.copy for t, r in records.items() if r.state in _BEGUN and str(t) not in asked}
        new = sorted(name for name, copy in under_way.items() if known.get(name) != copy)
        if new:
            more = f" and {len(new) - NAMES_MAX:,} more" if len(new) > NAMES_MAX else ""
            self._notify(CopyStep.STARTED, new[0] if len(new) == 1 else None, ", ".join(new[:NAMES_MAX]) + more)
        ended = [name for name in known if name not in under_way and name not in asked]
        for name in ended:
            self._tell_end(name, records.get(TableId.parse(name)))
        if ended and not under_way:
            self._notify(CopyStep.COMPLETED)
        return under_way

    def tell_progress(self, under_way: Mapping[str, int], brought: Mapping[TableId, Growth]) -> None:
        """Of those that have more rows than when it was last told."""
        for table, growth in brought.items():
            if str(table) in under_way and growth.rows and self._told.get(str(table)) is not growth:
                self._told[str(table)] = growth
                self._notify(CopyStep.IN_PROGRESS, str(table))

    def _tell_end(self, name: str, record: TableRecord | None) -> None:
        self._told.pop(name, None)
        if record is not None and record.state is TableState.LIVE:
            self._notify(CopyStep.TABLE_COMPLETED, name)
        elif record is None or record.state in (TableState.ERRORED, TableState.REMOVED):
            self._notify(CopyStep.ABORTED, name, record.reason if record is not None else None)
