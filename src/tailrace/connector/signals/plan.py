"""What a copy that someone is about to ask for would be: found out without asking for it.

Judged from the lake's records as the connector would judge the signal. What only the source knows is asked there, as
far as it can be reached: about how many rows there are, and whether they can be read so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tailrace.connector.copy.wishes import CopyWish, why_not
from tailrace.connector.signals.judgement import Records, copies_of, followed, unmatched_text
from tailrace.connector.signals.orders import ExecuteSnapshot, choose
from tailrace.errors import DefiniteError, TransientError
from tailrace.lake.records.ordered_copies import Snapshots
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableState
from tailrace.source.door.source import Source

TRIED_MAX = 20
"""Of how many tables one row is read, to see whether a condition or a column does: the signal tries them all."""


@dataclass(frozen=True)
class TablePlan:
    """A table that the order means."""

    table: TableId
    state: TableState
    condition: str | None
    """Only rows for which this is true; None: all rows."""
    surrogate_key: str | None
    notes: tuple[str, ...]
    """What a person may not expect."""


@dataclass(frozen=True)
class CopyPlan:
    """What an order means now."""

    tables: Sequence[TablePlan]
    missing: str | None
    """Which patterns mean nothing, for a person. The others are copied all the same."""


@dataclass(frozen=True)
class SourceView:
    """What the source says of the tables of a plan."""

    rows: Mapping[TableId, int]
    """About; a table that is gone is missing."""
    problems: Mapping[TableId, str]
    """Why rows cannot be read so: the signal would be rejected."""
    error: str | None = None
    """Why the source could not be asked."""


def plan_of(order: ExecuteSnapshot, records: Records, snapshots: Snapshots) -> CopyPlan:
    """Pure."""
    meant = choose(order, followed(records))
    parts = set(copies_of(meant.tables, records).parts)
    found = []
    for each in meant.tables:
        record, notes = records[each.table], []
        condition = each.condition if str(each.table) in parts else None
        if each.condition and condition is None:
            notes.append("it is not whole now, so all rows are copied")
        if record.state in COPYING:
            waits = record.state is TableState.PENDING
            notes.append("the copy that it waits for is the answer" if waits else "it is being copied: it begins again")
        if snapshots.is_paused(each.table):
            notes.append("its copies are paused: it waits until they are resumed")
        found.append(TablePlan(each.table, record.state, condition, each.surrogate_key, tuple(notes)))
    return CopyPlan(found, unmatched_text(meant.unmatched))


def ask_source(source: Source, plan: CopyPlan, records: Records) -> SourceView:
    """Reads the catalog, and one row of each table that has a condition or another order, as the signal would."""
    rows: dict[TableId, int] = {}
    problems: dict[TableId, str] = {}
    try:
        described = source.describe([each.table for each in plan.tables])
        rows = {table: each.rows_estimated for table, each in described.items()}
        problems = {table: each.problem.message for table, each in described.items() if each.problem is not None}
        for each in _to_try(plan, problems):
            wish = CopyWish(records[each.table].copy, each.surrogate_key, each.condition)
            reason = why_not(source, each.table, wish, records[each.table].text_key)
            if reason is not None:
                problems[each.table] = reason
    except (DefiniteError, TransientError) as error:
        return SourceView(rows, problems, error.message)
    return SourceView(rows, problems)


def _to_try(plan: CopyPlan, problems: Collection[TableId]) -> list[TablePlan]:
    asked = [each for each in plan.tables if (each.condition or each.surrogate_key) and each.table not in problems]
    return asked[:TRIED_MAX]
