"""What a signal means for the tables as they are now: judged from records alone, without I/O.

    execute   which tables, which copy of each is the answer ─ what each is told ─ when all have ended
    pause     which copies wait from now on
    resume    which wait no longer
    stop      which copies are given up, which keep their rows, which earlier signals end with them

`execution.py` does what is judged here, and makes it durable in an order that a crash at any point survives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tailrace.connector.signals.desk import OpenSignal
from tailrace.connector.signals.orders import ChosenTable, ExecuteSnapshot, choose, match
from tailrace.connector.tables.decisions import asked, repaired, stopped
from tailrace.lake.records.ordered_copies import ALL_PAUSED, OrderedCopies, Snapshots
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableRecord, TableState

Records = Mapping[TableId, TableRecord]


@dataclass(frozen=True)
class SignalEnd:
    """How a signal ends."""

    state: SignalState
    result: str
    """For a person."""


def followed(records: Records) -> list[TableId]:
    """The tables that an order can mean."""
    return [table for table, record in records.items() if record.state is not TableState.REMOVED]


def unmatched_text(patterns: Sequence[str]) -> str | None:
    return f"no table matches {', '.join(patterns)}" if patterns else None


def copies_of(tables: Sequence[ChosenTable], records: Records) -> OrderedCopies:
    """Which copy of each table is the answer to an order, and which tables are copied again only in part."""
    # A copy that has not begun is the answer as it is. Any other is older than the order.
    copies = {
        str(chosen.table): records[chosen.table].copy + int(records[chosen.table].state is not TableState.PENDING)
        for chosen in tables
    }
    # Of a table that is not whole, all rows are read.
    whole = [chosen for chosen in tables if records[chosen.table].state is TableState.LIVE]
    return OrderedCopies(copies, parts=tuple(str(chosen.table) for chosen in whole if chosen.condition))


@dataclass(frozen=True)
class Asking:
    """What the tables of an order are told."""

    wanted: Mapping[TableId, int]
    """The copy of each that is the answer."""
    chosen: Sequence[ChosenTable]
    parts: Mapping[TableId, str]
    """By table, the condition for the rows that are copied again; all rows of other tables are."""
    late: Mapping[TableId, TableRecord]
    """The next records of tables that have not been told yet: all of them at first, some after a crash."""


def asking(signal: str, order: ExecuteSnapshot, ordered: OrderedCopies, records: Records) -> Asking:
    wanted = {table: ordered.copies[str(table)] for table in records if str(table) in ordered.copies}
    chosen = choose(order, list(wanted)).tables
    parts = {each.table: each.condition for each in chosen if each.condition and str(each.table) in ordered.parts}
    reason = f"signal {signal} asked for it"
    late = {
        table: (repaired if table in parts else asked)(records[table], reason)
        for table, copy in wanted.items()
        if records[table].copy < copy
    }
    return Asking(wanted, chosen, parts, late)


def is_waiting(tables: Collection[TableId], records: Records, snapshots: Snapshots) -> bool:
    """Whether a copy of one of the tables is paused."""
    return any(snapshots.is_paused(table) for table in tables if records[table].state in COPYING)


def ended_tables(ordered: OrderedCopies, records: Records) -> dict[str, str | None]:
    """Tables of an order that have ended, with the reason where they have no copy of it."""
    ended: dict[str, str | None] = {}
    for table, record in records.items():
        copy = ordered.copies.get(str(table))
        if copy is None or record.copy < copy:
            continue
        if record.state is TableState.LIVE:
            ended[str(table)] = None
        elif record.state in (TableState.ERRORED, TableState.REMOVED):
            ended[str(table)] = record.reason or "it is no longer chosen"
    return ended


def end_of(order: ExecuteSnapshot, ended: Mapping[str, str | None], records: Records) -> SignalEnd:
    """How an order ends whose tables have all ended."""
    wrong = [f"{name}: {reason}" for name, reason in ended.items() if reason is not None]
    missing = [f"no table matches {pattern}" for pattern in choose(order, list(records)).unmatched]
    result = "; ".join([f"{len(ended) - len(wrong)} of {len(ended)} tables copied", *wrong, *missing])
    return SignalEnd(SignalState.FAILED if wrong else SignalState.DONE, result)


@dataclass(frozen=True)
class NamedTables:
    """What the patterns of a signal that concerns running copies mean. Without patterns it concerns all."""

    patterns: Sequence[str]
    tables: Sequence[TableId]
    missing: str | None
    """Which patterns mean nothing, for a person."""

    @classmethod
    def of(cls, patterns: Sequence[str], records: Records) -> NamedTables:
        tables, unmatched = match(patterns, list(records))
        return cls(patterns, tables, unmatched_text(unmatched))

    def among(self, records: Records) -> list[TableId]:
        return list(self.tables if self.patterns else records)

    def end(self, done: str) -> SignalEnd:
        """Names that match no table are always told."""
        if self.patterns and not self.tables:
            return SignalEnd(SignalState.REJECTED, f"nothing was done: {self.missing}")
        return SignalEnd(SignalState.DONE, done if self.missing is None else f"{done}; {self.missing}")


def paused_with(named: NamedTables, paused: frozenset[str]) -> frozenset[str]:
    """What is paused after a `pause-snapshot`."""
    return paused | (set(map(str, named.tables)) if named.patterns else {ALL_PAUSED})


def paused_without(named: NamedTables, paused: frozenset[str], records: Records) -> frozenset[str]:
    """What is paused after a `resume-snapshot`."""
    if not named.patterns:
        return frozenset()
    all_paused = frozenset(map(str, records)) if ALL_PAUSED in paused else paused
    return all_paused - set(map(str, named.tables))


@dataclass(frozen=True)
class Stopping:
    """What a `stop-snapshot` ends."""

    tables: Sequence[TableId]
    """Those that are being copied."""
    kept: Mapping[str, int]
    """Of these, with their copies, those that had all their rows when some of them were asked for: they have them
    still, and follow the log."""
    given_up: Mapping[TableId, TableRecord]
    """The others, with their next records: they stay as they are in the last cut until they are copied again."""
    orders: Sequence[OpenSignal]
    """Earlier signals that have nothing left to wait for."""


def stopping(
    signal: str, named: NamedTables, earlier: Sequence[OpenSignal], snapshots: Snapshots, records: Records
) -> Stopping:
    """`earlier` are the open signals in the order of their arrival. What was asked for after the signal, it does not
    mean, also where both were taken up together."""
    tables = [table for table in named.among(records) if records[table].state in COPYING]
    parts = {name for ordered in snapshots.orders.values() for name in ordered.parts} | set(snapshots.cut_short)
    kept = {str(table): records[table].copy for table in tables if str(table) in parts}
    given_up = {table: stopped(table, records[table], signal) for table in tables if str(table) not in kept}
    orders = []
    for other in takewhile(lambda other: other.id != signal, earlier):
        if isinstance(other.order, ExecuteSnapshot):
            # One that has begun waits for copies; one that has not means tables by name.
            meant = tables if other.id in snapshots.orders else named.among(records)
            if left_of(other, snapshots, records) <= set(map(str, meant)):
                orders.append(other)
    return Stopping(tables, kept, given_up, orders)


def left_of(signal: OpenSignal, snapshots: Snapshots, records: Records) -> set[str]:
    """The tables that an order waits for, or will."""
    assert isinstance(signal.order, ExecuteSnapshot)
    ordered = snapshots.orders.get(signal.id)
    if ordered is not None:
        return set(ordered.copies) - set(ordered.told)
    return {str(chosen.table) for chosen in choose(signal.order, followed(records)).tables}


def still_cut_short(snapshots: Snapshots, records: Records) -> dict[str, int]:
    """Copies that were cut short and have not ended yet."""
    by_name = {str(table): record for table, record in records.items()}
    return {
        name: copy
        for name, copy in snapshots.cut_short.items()
        if name in by_name and by_name[name].copy == copy and by_name[name].state in COPYING
    }
