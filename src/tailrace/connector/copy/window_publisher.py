"""Rows of a window put into the lake, those of all its tables together:

    bring       each table to the window's transaction           one job
    reconcile   the rows with what their state did not show      one job
    commit      one version of each table

What fails for one table is that table's. A table that another writer rearranged meanwhile is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tailrace.changes.window_rows import ReconciledPortion
from tailrace.connector.copy.growing_table import GrowingTable, Unseen, WindowPart
from tailrace.connector.copy.window_reader import TableWindow
from tailrace.connector.publish.batch import ATTEMPTS, Batch, Publisher, is_everyones
from tailrace.engine.dividing import Outcome, attempted, side_by_side
from tailrace.engine.door import Job
from tailrace.errors import TailraceError
from tailrace.lake.door import ConflictError
from tailrace.model.table import TableId

Windows = Mapping[TableId, tuple[GrowingTable, TableWindow]]
Errors = dict[TableId, TailraceError | None]


@dataclass(frozen=True)
class WindowPublisher:
    """Puts windows into the lake. One thread."""

    publisher: Publisher

    def add(self, batch: Batch, windows: Windows, unseen: Unseen) -> Errors:
        """What stopped each table, if anything did. Raises what is no one table's."""
        errors: Errors = {
            table: attempted(str(table), partial(grown.expect, window, batch), is_everyones).error
            for table, (grown, window) in windows.items()
        }
        ready = [grown for table, (grown, _) in windows.items() if errors[table] is None]
        errors |= self.publisher.bring(ready, batch)
        left = {table: pair for table, pair in windows.items() if errors[table] is None}
        for _ in range(ATTEMPTS):
            errors |= self._add(batch, left, unseen)
            left = {table: pair for table, pair in left.items() if isinstance(errors[table], ConflictError)}
            if not left:
                break
        return errors

    def _add(self, batch: Batch, windows: Windows, unseen: Unseen) -> Errors:
        planned = {
            table: attempted(
                str(table), partial(grown.plan_window, batch, window, unseen, self.publisher.sizes), is_everyones
            )
            for table, (grown, window) in windows.items()
        }
        parts = {table: outcome.result for table, outcome in planned.items() if outcome.result is not None}
        outcomes = self._reconciled(parts)
        errors: Errors = {table: outcome.error for table, outcome in planned.items()}
        for table, part in parts.items():
            failed = next((outcome.error for outcome in outcomes[table] if outcome.error), None)
            results = [outcome.result for outcome in outcomes[table] if outcome.result is not None]
            grown = windows[table][0]
            errors[table] = failed or durably(grown, partial(grown.take_window, part, results))
        return errors

    def _reconciled(self, planned: Mapping[TableId, WindowPart]) -> dict[TableId, list[Outcome[ReconciledPortion]]]:
        """What tasks made of each table's rows."""
        portions = [(table, portion) for table, part in planned.items() for portion in part.portions]
        names = [str(table) for table in planned]
        what = names[0] if len(names) == 1 else f"{len(names)} tables"
        job = Job(f"write rows of {what}", self.publisher.group)
        outcomes = side_by_side(self.publisher.engine, job, [portion for _, portion in portions], is_everyones)
        by_table: dict[TableId, list[Outcome[ReconciledPortion]]] = {table: [] for table in planned}
        for (table, _), outcome in zip(portions, outcomes, strict=True):
            by_table[table].append(outcome)
        return by_table


def durably(grown: GrowingTable, work: Callable[[], None]) -> TailraceError | None:
    """Do a table's part and let it survive a power cut. What stopped it, if anything did."""

    def done() -> None:
        work()
        grown.make_durable()

    return attempted(str(grown.table), done, is_everyones).error
