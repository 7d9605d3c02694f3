"""Every copy so far, put together from the journal of notifications and the book of signals. Pure.

    a signal's        from its first step to its last; its state is the signal's
    the connector's   copies that no signal asked for: all that were under way together are one run

The journal keeps the last steps only. What it no longer has is not known, and is not made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tailrace.connector.signals.orders import ExecuteSnapshot, order_of
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import SignalRecord, SignalState

EXECUTE = "execute-snapshot"
_ENDS = (CopyStep.TABLE_COMPLETED, CopyStep.ABORTED)


@dataclass
class TableRun:
    """One table in a run."""

    table: str
    last: Notification
    """Its newest step."""

    @property
    def rows(self) -> int | None:
        """None where the copy counts none: one that is made at once."""
        return self.last.rows if self.last.chunks or self.last.rows else None


@dataclass
class CopyRun:
    """One run."""

    began_us: int
    signal: SignalRecord | None = None
    """None where no signal asked for it, or the book has forgotten it."""
    id: str | None = None
    """Of the signal."""
    ended_us: int | None = None
    result: str | None = None
    is_rejected: bool = False
    tables: dict[str, TableRun] = field(default_factory=dict)

    @property
    def state(self) -> SignalState:
        if self.signal is not None:
            return self.signal.state
        if self.is_rejected:
            return SignalState.REJECTED
        if self.ended_us is None:
            return SignalState.RUNNING if self.id is None else SignalState.STOPPED
        wrong = any(each.last.step is CopyStep.ABORTED for each in self.tables.values())
        return SignalState.FAILED if wrong else SignalState.DONE

    @property
    def kind(self) -> str | None:
        """`incremental` or `blocking`; None where that is not known."""
        order = order_of(self.signal.signal) if self.signal is not None else None
        return order.kind if isinstance(order, ExecuteSnapshot) else None

    @property
    def rows(self) -> int | None:
        known = [each.rows for each in self.tables.values() if each.rows is not None]
        return sum(known) if known else None


def runs_of(
    steps: Iterable[Notification], signals: Sequence[SignalRecord], *, are_unasked_open: bool = True
) -> list[CopyRun]:
    """Oldest first. `are_unasked_open`: copies that no signal asked for are under way now. Where a signal took over the
    last of them, no step says that their run has ended."""
    orders = {record.signal.id: record for record in signals if record.signal.type == EXECUTE}
    others = {record.signal.id for record in signals} - orders.keys()
    history = _History()
    for step in steps:
        if step.signal is None or step.signal not in others:
            history.take(step, orders.get(step.signal or ""))
        elif step.step is CopyStep.ABORTED:
            history.stop(step)
    if not are_unasked_open:
        history.end_unasked()
    known = {run.id for run in history.runs}
    for id_, record in orders.items():
        if id_ not in known:
            history.runs.append(CopyRun(record.received_us, record, id_))
    for run in history.runs:
        if run.signal is not None:
            run.result = run.signal.result
            run.ended_us = run.signal.updated_us if run.signal.has_ended else None
    return sorted(history.runs, key=lambda run: run.began_us)


class _History:
    """Steps, taken one after another."""

    def __init__(self) -> None:
        self.runs: list[CopyRun] = []
        self._open: dict[str | None, CopyRun] = {}
        self._newest_us: dict[str | None, int] = {}

    def take(self, step: Notification, record: SignalRecord | None) -> None:
        if step.step in (CopyStep.PAUSED, CopyStep.RESUMED):
            return None
        run = self._open.get(step.signal)
        if run is None:
            if step.step is CopyStep.ABORTED and step.signal is not None and record is None:
                return self.stop(step)
            run = self._open[step.signal] = CopyRun(step.time_us, record, step.signal)
            self.runs.append(run)
        self._newest_us[step.signal] = step.time_us
        if step.table is not None:
            run.tables[step.table] = TableRun(step.table, step)
        elif step.step in (CopyStep.COMPLETED, CopyStep.SKIPPED):
            run.ended_us, run.result = step.time_us, step.text
            run.is_rejected = step.step is CopyStep.SKIPPED
            del self._open[step.signal]
        return None

    def stop(self, step: Notification) -> None:
        """A signal of another kind has ended the copy of a table, whoever asked for it."""
        for run in self._open.values():
            if step.table in run.tables and run.tables[step.table].last.step not in _ENDS:
                run.tables[step.table] = TableRun(step.table, step)

    def end_unasked(self) -> None:
        run = self._open.pop(None, None)
        if run is not None:
            run.ended_us = self._newest_us[None]
