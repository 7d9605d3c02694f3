"""What signals ask for, carried out: copies begun, paused, continued and stopped, and told of step by step.

A signal is done when each of its tables has the copy that was asked for, or cannot have it. `judgement.py` says what a
signal means; here it is done, and everything that is needed to continue after a crash is on disk before it takes
effect.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tailrace.connector.copy.copies import Copies
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.wishes import CopyWish
from tailrace.connector.events import CopyNotified, Event
from tailrace.connector.signals import judgement
from tailrace.connector.signals._feasibility import Feasibility
from tailrace.connector.signals._unasked_copies import Unasked
from tailrace.connector.signals.desk import OpenSignal, SignalDesk
from tailrace.connector.signals.judgement import Asking, NamedTables, SignalEnd
from tailrace.connector.signals.orders import ExecuteSnapshot, Log, PauseSnapshot, ResumeSnapshot, StopSnapshot, choose
from tailrace.connector.tables.book import TableBook
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome
from tailrace.lake.records.ordered_copies import OrderedCopies, Snapshots
from tailrace.log.reader import LogReader
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING

logger = logging.getLogger(__name__)


class SignalExecution:
    """The signals of one run that have not ended. One thread."""

    def __init__(
        self, home: LakeHome, desk: SignalDesk, book: TableBook, copies: Copies, tell: Callable[[Event], None]
    ) -> None:
        self._file = home.signals.snapshots
        self._desk = desk
        self._book = book
        self._copies = copies
        self._tell = tell
        self._state = self._file.load()
        self._told: dict[TableId, Growth] = {}
        """How far tables were when that was told."""
        self._feasibility: dict[str, Feasibility] = {}
        """By the id of a signal that has not begun: whether the source can do what it asks for."""
        self._open = {signal.id: signal for signal in desk.open_signals()}
        self._unasked = Unasked(partial(self._notify_of, None))
        copies.wishes.pause_if(self._is_paused)

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

    @property
    def is_deciding(self) -> bool:
        """Whether the source has yet to say if it can do what a signal asks for."""
        return any(each.is_open for each in self._feasibility.values())

    def _tell_unasked(self) -> None:
        """Of copies that no signal asked for."""
        ordered = {name for ordered in self._state.orders.values() for name in ordered.copies}
        under_way = self._unasked.step(self._state.unasked, self._book.records, ordered | set(self._state.cut_short))
        self._unasked.tell_progress(under_way, self._copies.brought)
        self._store(replace(self._state, unasked=under_way))

    def _execute(self, signal: OpenSignal, order: ExecuteSnapshot) -> None:
        ordered = self._state.orders.get(signal.id) or self._begin(signal, order)
        if ordered is not None:
            self._ask(signal, order, ordered)
            self._finish(signal, order, ordered)

    def _begin(self, signal: OpenSignal, order: ExecuteSnapshot) -> OrderedCopies | None:
        """Choose the tables and write down which copy of each is the answer. None while that is not known, and if the
        signal is rejected."""
        meant = choose(order, judgement.followed(self._book.records))
        missing = judgement.unmatched_text(meant.unmatched)
        if not meant.tables:
            self._reject(signal, f"nothing was copied: {missing or 'the lake follows no table'}")
            return None
        reasons = self._feasibility.setdefault(signal.id, Feasibility(self._copies.why_not)).reasons(meant.tables)
        if reasons is None:
            return None
        if any(reasons):
            self._reject(signal, "; ".join(reason for reason in reasons if reason))
            return None
        # Written down before any table is told: after a crash, those are told whose copy number is lower.
        ordered = judgement.copies_of(meant.tables, self._book.records)
        self._store(self._state.with_order(signal.id, ordered))
        failpoint("signals.ordered")
        self._notify(CopyStep.STARTED, signal, text=missing)
        return ordered

    def _reject(self, signal: OpenSignal, reason: str) -> None:
        self._notify(CopyStep.SKIPPED, signal, text=reason)
        self._end(signal, SignalState.REJECTED, reason)

    def _ask(self, signal: OpenSignal, order: ExecuteSnapshot, ordered: OrderedCopies) -> None:
        """Tell tables that have not been told: also after a crash between two of these lines."""
        asking = judgement.asking(signal.id, order, ordered, self._book.records)
        # How the copies are to be made comes before the book says that they are wanted, which begins them.
        for chosen in asking.chosen:
            how = chosen.surrogate_key or None, asking.parts.get(chosen.table), order.kind == "blocking"
            self._copies.wishes.wish(chosen.table, CopyWish(asking.wanted[chosen.table], *how))
        self._book.set(asking.late)
        if asking.late:
            failpoint("signals.asked")
        self._tell_progress(signal, asking)
        progress = progress_text([self._told[table] for table in asking.wanted if table in self._told])
        is_waiting = judgement.is_waiting(asking.wanted, self._book.records, self._state)
        self._desk.set(signal.id, SignalState.PAUSED if is_waiting else SignalState.RUNNING, progress)

    def _tell_progress(self, signal: OpenSignal, asking: Asking) -> None:
        records = self._book.records
        for table in asking.wanted:
            brought = self._copies.brought.get(table)
            is_new = brought is not None and brought.rows and self._told.get(table) is not brought
            if records[table].state in COPYING and brought is not None and is_new:
                self._told[table] = brought
                self._notify(CopyStep.IN_PROGRESS, signal, str(table))

    def _finish(self, signal: OpenSignal, order: ExecuteSnapshot, ordered: OrderedCopies) -> None:
        """Tell of tables that have ended; the last one ends the signal."""
        ended = judgement.ended_tables(ordered, self._book.records)
        for name in [name for name in ended if name not in ordered.told]:
            step = CopyStep.TABLE_COMPLETED if ended[name] is None else CopyStep.ABORTED
            self._notify(step, signal, name, ended[name])
            # Stored after it was told: after a crash it may be told twice, and is never left out.
            ordered = replace(ordered, told=(*ordered.told, name))
            self._store(self._state.with_order(signal.id, ordered))
        if len(ended) == len(ordered.copies):
            end = judgement.end_of(order, ended, self._book.records)
            self._notify(CopyStep.COMPLETED, signal, text=end.result)
            self._close(signal, end)

    def _pause(self, signal: OpenSignal, patterns: tuple[str, ...]) -> None:
        named = NamedTables.of(patterns, self._book.records)
        self._store(replace(self._state, paused=judgement.paused_with(named, self._state.paused)))
        self._notify(CopyStep.PAUSED, signal, text=named.missing)
        self._close(signal, named.end("copies are paused"))

    def _resume(self, signal: OpenSignal, patterns: tuple[str, ...]) -> None:
        named = NamedTables.of(patterns, self._book.records)
        paused = judgement.paused_without(named, self._state.paused, self._book.records)
        self._store(replace(self._state, paused=paused))
        self._notify(CopyStep.RESUMED, signal, text=named.missing)
        self._close(signal, named.end("copies continue"))

    def _stop(self, signal: OpenSignal, patterns: tuple[str, ...]) -> None:
        """Who asked for the copies, and who listens, is told first: after a crash this is done once more, and finds
        the copies as they were."""
        named = NamedTables.of(patterns, self._book.records)
        earlier = list(self._open.values())
        stopping = judgement.stopping(signal.id, named, earlier, self._state, self._book.records)
        self._cut_short(stopping.kept)
        reason = f"signal {signal.id} stopped it"
        for other in stopping.orders:
            self._end(other, SignalState.STOPPED, reason)
        for table in stopping.tables:
            self._notify(CopyStep.ABORTED, signal, str(table), reason)
        self._book.set(stopping.given_up)
        failpoint("signals.stopped")
        count = len(stopping.tables)
        self._close(signal, named.end("1 table stopped" if count == 1 else f"{count} tables stopped"))

    def _is_paused(self, table: TableId) -> bool:
        return self._state.is_paused(table)

    def _cut_short(self, tables: Mapping[str, int]) -> None:
        """Also those that were and have not ended yet."""
        open_ = judgement.still_cut_short(self._state, self._book.records)
        self._store(replace(self._state, cut_short={**open_, **tables}))
        self._copies.wishes.cut_short({TableId.parse(name): copy for name, copy in self._state.cut_short.items()})

    def _store(self, state: Snapshots) -> None:
        """Durable when this returns."""
        if state != self._state:
            self._file.store(state)
            self._state = state

    def _close(self, signal: OpenSignal, end: SignalEnd) -> None:
        self._end(signal, end.state, end.result)

    def _end(self, signal: OpenSignal, state: SignalState, result: str | None) -> None:
        self._desk.set(signal.id, state, result)
        failpoint("signals.ended")
        self._open.pop(signal.id, None)
        self._feasibility.pop(signal.id, None)
        if signal.id in self._state.orders:
            for table in map(TableId.parse, self._state.orders[signal.id].copies):
                self._copies.wishes.withdraw(table)
            self._store(self._state.with_order(signal.id, None))

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
