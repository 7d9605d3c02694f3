"""What signals ask for, carried out: copies begun, paused, continued and stopped, and told of step by step.

An order is done when each of its tables has the copy that was asked for, or cannot have it. Everything that is needed
to continue it after a crash is on disk before it takes effect.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from tailrace.connector.copy.copies import Copies
from tailrace.connector.copy.growth import Growth
from tailrace.connector.events import CopyNotified, Event
from tailrace.connector.signals._feasibility import Asked
from tailrace.connector.signals._unasked_copies import Unasked
from tailrace.connector.signals.desk import OpenSignal, SignalDesk
from tailrace.connector.signals.orders import (
    ExecuteSnapshot,
    Log,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    choose,
    match,
)
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import repaired, resynced, stopped
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome
from tailrace.lake.records.ordered_copies import ALL_PAUSED, OrderedCopies
from tailrace.log.reader import LogReader
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableState

logger = logging.getLogger(__name__)


class Orders:
    """One thread."""

    def __init__(
        self, home: LakeHome, desk: SignalDesk, book: TableBook, copies: Copies, tell: Callable[[Event], None]
    ) -> None:
        self._file = home.snapshots
        self._desk = desk
        self._book = book
        self._copies = copies
        self._tell = tell
        self._state = self._file.load()
        self._told: dict[TableId, Growth] = {}
        """How far tables were when that was told."""
        self._asked: dict[str, Asked] = {}
        """By the id of a signal that has not begun: whether the source can do what it asks for."""
        self._open = {signal.id: signal for signal in desk.open_signals()}
        self._unasked = Unasked(partial(self._notify_of, None))
        copies.is_paused = self._is_paused

    def step(self, reader: LogReader) -> None:
        """Take what has arrived, and see what has become of the rest."""
        self._open |= {signal.id: signal for signal in self._desk.take(reader)}
        self._cut_short({})
        for signal in list(self._open.values()):
            if signal.id not in self._open:
                continue  # Another one has ended it.
            match signal.order:
                case ExecuteSnapshot():
                    self._execute(signal, signal.order)
                case PauseSnapshot(tables):
                    self._pause(signal, tables)
                case ResumeSnapshot(tables):
                    self._resume(signal, tables)
                case StopSnapshot(tables):
                    self._stop(signal, tables)
                case Log(message):
                    logger.info("signal", extra={"signal": signal.id, "text": message})
                    self._end(signal, SignalState.DONE, None)
        self._tell_unasked()

    def _tell_unasked(self) -> None:
        """Of copies that no signal asked for."""
        asked = {name for ordered in self._state.orders.values() for name in ordered.copies}
        asked |= set(self._state.cut_short)
        found = self._unasked.step(self._state.unasked, self._book.records, asked)
        self._unasked.tell_progress(found, self._copies.brought)
        if found != self._state.unasked:
            self._state = replace(self._state, unasked=found)
            self._file.store(self._state)

    def _execute(self, signal: OpenSignal, order: ExecuteSnapshot) -> None:
        ordered = self._state.orders.get(signal.id)
        if ordered is None:
            ordered = self._begin(signal, order)
        if ordered is not None:
            self._ask(signal, order, ordered)
            self._finish(signal, order, ordered)

    def _begin(self, signal: OpenSignal, order: ExecuteSnapshot) -> OrderedCopies | None:
        """Choose the tables and write down which copy of each is the answer. None while that is not known."""
        records = self._book.records
        choice = choose(order, self._chosen())
        missing = f"no table matches {', '.join(choice.unmatched)}" if choice.unmatched else None
        if not choice.tables:
            text = f"nothing was copied: {missing or 'the lake follows no table'}"
            self._notify(CopyStep.SKIPPED, signal, text=text)
            self._end(signal, SignalState.REJECTED, text)
            return None
        reasons = self._asked.setdefault(signal.id, Asked(self._copies.why_not)).reasons(choice.tables)
        if reasons is None:
            return None
        if any(reasons):
            text = "; ".join(reason for reason in reasons if reason)
            self._notify(CopyStep.SKIPPED, signal, text=text)
            self._end(signal, SignalState.REJECTED, text)
            return None
        # One whose copy has not begun answers as it is.
        copies = {
            str(each.table): records[each.table].copy + int(records[each.table].state is not TableState.PENDING)
            for each in choice.tables
        }
        # Of a table that is not whole, all rows are read.
        is_part = [each.condition and records[each.table].state is TableState.LIVE for each in choice.tables]
        parts = [str(each.table) for each, part in zip(choice.tables, is_part, strict=True) if part]
        ordered = OrderedCopies(copies, parts=tuple(parts))
        self._store(signal, ordered)
        failpoint("signals.ordered")
        self._notify(CopyStep.STARTED, signal, text=missing)
        return ordered

    def _chosen(self) -> list[TableId]:
        return [table for table, record in self._book.records.items() if record.state is not TableState.REMOVED]

    @property
    def is_deciding(self) -> bool:
        """Whether the source has yet to say if it can do what a signal asks for."""
        return any(asked.is_open for asked in self._asked.values())

    def _ask(self, signal: OpenSignal, order: ExecuteSnapshot, ordered: OrderedCopies) -> None:
        """Tell tables that have not been told: also after a crash between two of these lines."""
        records = self._book.records
        wanted = {table: ordered.copies[str(table)] for table in records if str(table) in ordered.copies}
        late = [table for table, copy in wanted.items() if records[table].copy < copy]
        chosen = choose(order, list(wanted)).tables
        self._copies.surrogate_keys |= {each.table: each.surrogate_key for each in chosen if each.surrogate_key}
        parts = {each.table: each.condition for each in chosen if each.condition and str(each.table) in ordered.parts}
        self._copies.conditions |= {table: (wanted[table], text) for table, text in parts.items()}
        reason = f"signal {signal.id} asked for it"
        self._book.set({t: (repaired if t in parts else resynced)(records[t], reason) for t in late})
        records = self._book.records
        if order.kind == "blocking":
            under_way = [table for table, copy in wanted.items() if records[table].copy == copy]
            self._copies.at_once |= {table for table in under_way if records[table].state in COPYING}
        if late:
            failpoint("signals.asked")
        for table in wanted:
            brought = self._copies.brought.get(table)
            is_new = brought is not None and brought.rows and self._told.get(table) is not brought
            if records[table].state in COPYING and brought is not None and is_new:
                self._told[table] = brought
                self._notify(CopyStep.IN_PROGRESS, signal, str(table))
        progress = progress_text([self._told[table] for table in wanted if table in self._told])
        is_paused = any(self._state.is_paused(table) for table in wanted if records[table].state in COPYING)
        self._desk.set(signal.id, SignalState.PAUSED if is_paused else SignalState.RUNNING, progress)

    def _finish(self, signal: OpenSignal, order: ExecuteSnapshot, ordered: OrderedCopies) -> None:
        """Tell of tables that have ended; the last one ends the signal."""
        ended: dict[str, str | None] = {}
        for table, record in self._book.records.items():
            copy = ordered.copies.get(str(table))
            if copy is None or record.copy < copy:
                continue
            if record.state is TableState.LIVE:
                ended[str(table)] = None
            elif record.state in (TableState.ERRORED, TableState.REMOVED):
                ended[str(table)] = record.reason or "it is no longer chosen"
        for name in [each for each in ended if each not in ordered.told]:
            step = CopyStep.TABLE_COMPLETED if ended[name] is None else CopyStep.ABORTED
            self._notify(step, signal, name, ended[name])
            ordered = replace(ordered, told=(*ordered.told, name))
            self._store(signal, ordered)
        if len(ended) == len(ordered.copies):
            wrong = [f"{name}: {reason}" for name, reason in ended.items() if reason is not None]
            done = len(ended) - len(wrong)
            unmatched = choose(order, list(self._book.records)).unmatched
            missing = [f"no table matches {each}" for each in unmatched]
            result = "; ".join([f"{done} of {len(ended)} tables copied", *wrong, *missing])
            self._notify(CopyStep.COMPLETED, signal, text=result)
            self._end(signal, SignalState.FAILED if wrong else SignalState.DONE, result)

    def _pause(self, signal: OpenSignal, tables: tuple[str, ...]) -> None:
        found, missing = self._named(tables)
        paused = self._state.paused | (set(map(str, found)) if tables else {ALL_PAUSED})
        self._state = replace(self._state, paused=frozenset(paused))
        self._file.store(self._state)
        self._notify(CopyStep.PAUSED, signal, text=missing)
        self._end(signal, *_outcome("copies are paused", found if tables else None, missing))

    def _resume(self, signal: OpenSignal, tables: tuple[str, ...]) -> None:
        found, missing = self._named(tables)
        paused = set(map(str, self._book.records)) if ALL_PAUSED in self._state.paused else self._state.paused
        kept = frozenset(paused - set(map(str, found))) if tables else frozenset[str]()
        self._state = replace(self._state, paused=kept)
        self._file.store(self._state)
        self._notify(CopyStep.RESUMED, signal, text=missing)
        self._end(signal, *_outcome("copies continue", found if tables else None, missing))

    def _stop(self, signal: OpenSignal, tables: tuple[str, ...]) -> None:
        """A table that is being copied stays as it is in the last cut that has it, until it is copied again. One that
        had all its rows when some of them were asked for has them still, and follows the log.

        Who asked for the copies, and who listens, is told first: after a crash, this is done once more and finds them
        as they were."""
        found, missing = self._named(tables)
        records = self._book.records
        chosen = [table for table in (found if tables else records) if records[table].state in COPYING]
        parts = {name for ordered in self._state.orders.values() for name in ordered.parts}
        kept = [table for table in chosen if str(table) in parts or table in self._copies.cut_short]
        self._cut_short({str(table): records[table].copy for table in kept})
        reason = f"signal {signal.id} stopped it"
        # What was asked for after it, it does not mean, also where both were taken up together.
        earlier = list(takewhile(lambda each: each.id != signal.id, self._open.values()))
        for other in [each for each in earlier if isinstance(each.order, ExecuteSnapshot)]:
            meant = chosen if other.id in self._state.orders else found if tables else records
            if self._left_of(other) <= set(map(str, meant)):
                self._end(other, SignalState.STOPPED, reason)
        given_up = [table for table in chosen if table not in kept]
        for table in chosen:
            self._notify(CopyStep.ABORTED, signal, str(table), reason)
        self._book.set({table: stopped(table, records[table], signal.id) for table in given_up})
        failpoint("signals.stopped")
        counted = "1 table" if len(chosen) == 1 else f"{len(chosen)} tables"
        self._end(signal, *_outcome(f"{counted} stopped", found if tables else None, missing))

    def _left_of(self, signal: OpenSignal) -> set[str]:
        """The tables that a signal waits for, or will."""
        assert isinstance(signal.order, ExecuteSnapshot)
        ordered = self._state.orders.get(signal.id)
        if ordered is not None:
            return set(ordered.copies) - set(ordered.told)
        return {str(each.table) for each in choose(signal.order, self._chosen()).tables}

    def _cut_short(self, tables: Mapping[str, int]) -> None:
        """Also those that were and have not ended yet."""
        open_ = {name: copy for name, copy in self._state.cut_short.items() if self._is_open(name, copy)}
        if {**open_, **tables} != self._state.cut_short:
            self._state = replace(self._state, cut_short={**open_, **tables})
            self._file.store(self._state)
        self._copies.cut_short = {TableId.parse(name): copy for name, copy in self._state.cut_short.items()}

    def _is_open(self, name: str, copy: int) -> bool:
        record = self._book.records.get(TableId.parse(name))
        return record is not None and record.copy == copy and record.state in COPYING

    def _is_paused(self, table: TableId) -> bool:
        return self._state.is_paused(table)

    def _named(self, patterns: tuple[str, ...]) -> tuple[list[TableId], str | None]:
        found, missing = match(patterns, list(self._book.records))
        return found, f"no table matches {', '.join(missing)}" if missing else None

    def _store(self, signal: OpenSignal, ordered: OrderedCopies | None) -> None:
        self._state = self._state.with_order(signal.id, ordered)
        self._file.store(self._state)

    def _end(self, signal: OpenSignal, state: SignalState, result: str | None) -> None:
        self._desk.set(signal.id, state, result)
        failpoint("signals.ended")
        self._open.pop(signal.id, None)
        self._asked.pop(signal.id, None)
        if signal.id in self._state.orders:
            for name in self._state.orders[signal.id].copies:
                table = TableId.parse(name)
                self._copies.conditions.pop(table, None)
                self._copies.surrogate_keys.pop(table, None)
                self._copies.at_once.discard(table)
            self._store(signal, None)

    def _notify(self, step: CopyStep, signal: OpenSignal, table: str | None = None, text: str | None = None) -> None:
        self._notify_of(signal.id, step, table, text)

    def _notify_of(self, id_: str | None, step: CopyStep, table: str | None = None, text: str | None = None) -> None:
        grown = (self._copies.brought.get(TableId.parse(table)) if table is not None else None) or Growth(None)
        held = grown.held_seconds, grown.held_seconds_max
        time_us = time.time_ns() // 1000
        self._tell(CopyNotified(Notification(step, time_us, id_, table, grown.rows, grown.windows, text, *held)))


def progress_text(tables: Sequence[Growth]) -> str | None:
    """How far an order is, and the longest transaction that it had open at the source; None at its beginning."""
    rows = sum(each.rows for each in tables)
    longest = max((each.held_seconds_max for each in tables), default=0.0)
    return f"{rows:,} rows so far, no state held for longer than {longest:.1f} s" if rows else None


def _outcome(done: str, found: Sequence[TableId] | None, missing: str | None) -> tuple[SignalState, str]:
    """Of a signal that names the tables which were `found`, or none: names that match no table are always told."""
    if found is not None and not found:
        return SignalState.REJECTED, f"nothing was done: {missing}"
    return SignalState.DONE, done if missing is None else f"{done}; {missing}"
