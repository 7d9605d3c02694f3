"""One run of a connector, from first contact to a clean end.

    opening ─ turns ─┬─ signals: what people ask for
                     ├─ copies: what must be copied, in threads beside the stream
                     ├─ passes: look → plan → engine → commit → cut
                     └─ upkeep

Every step is safe to die in: the next run finds what is there and continues. So does this one, where the source has
lost changes and may be copied again, or has moved: it begins once more. Copies are made in threads; everything that is
decided is decided in the thread that calls `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress

from pyspark.sql import SparkSession

from tailrace.connector import events
from tailrace.connector.control import BreakingOff, RunControl
from tailrace.connector.copy.copies import Copies, window_groups
from tailrace.connector.copy.running_copy import HowToCopy
from tailrace.connector.events import ConnectorState, Event
from tailrace.connector.once import CatchingUp, Patience
from tailrace.connector.pace import Pace
from tailrace.connector.passes import RETRY_SECONDS, Passes
from tailrace.connector.publish.applier import Applier
from tailrace.connector.publish.upkeep import Upkeep
from tailrace.connector.run_opening import POLL_SECONDS, Opened, Opening
from tailrace.connector.signals.execution import SignalExecution
from tailrace.connector.start.confirmation import Confirmation
from tailrace.connector.start.restarts import Restarts
from tailrace.connector.tables.decisions import resynced
from tailrace.engine.door import Engine
from tailrace.errors import GapError, MovedError, StoreError
from tailrace.lake.records.clean_shutdown import Left
from tailrace.model.table_state import COPYING, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.stop import Stopped


def run(
    settings: ConnectorSettings,
    source: Source,
    control: RunControl,
    tell: Callable[[Event], None],
    engine: SparkSession | Engine | None,
) -> None:
    """Until told to stop, or with `once` until caught up. Raises what is not one table's error."""
    restarts = Restarts(settings.snapshot_mode)
    patience = Patience(settings.retries.patience_seconds if settings.once else None)
    source = source.watermarked(settings.watermarking)
    opening = Opening(settings, source, control, tell, engine, restarts, patience)
    while True:
        try:
            return _run_once(opening)
        except (GapError, MovedError) as error:
            restarts.allow(error)
        except (OSError, StoreError) as error:
            # A disk that is full when a run begins is waited for, as by one that runs; and so is a store.
            tell(patience.bear_fault(error))
            if control.stop.wait(RETRY_SECONDS):
                return None


def _run_once(opening: Opening) -> None:
    control = opening.control
    with ExitStack() as stack, suppress(Stopped):
        try:
            opened = opening.open(stack)
            turns = Run(opened, control, opening.tell, opening.patience)
            turns.begin(stack)
            with suppress(Stopped):
                while not turns.step():
                    control.stop.wait(POLL_SECONDS)
            turns.leave_in_order()
        except Exception:
            # A stop that reaches Spark's JVM before us breaks the batch in hand; nothing was lost by it.
            if not control.stop.is_set():
                raise


class Run:
    """A run that is open: turn by turn until it is done. One thread."""

    def __init__(self, opened: Opened, control: RunControl, tell: Callable[[Event], None], patience: Patience) -> None:
        self._opened = opened
        self._control = control
        self._tell = tell
        self._patience = patience
        settings, parts, source = opened.settings, opened.parts, opened.source
        self._applier = Applier(parts, settings, opened.book)
        how = HowToCopy(parts, source, opened.claim, settings, control.stop)
        self._copies = Copies(how, opened.book, opened.look, self._applier, tell)
        self._signals = SignalExecution(parts.home, opened.desk, opened.book, self._copies, tell)
        self._passes = Passes(opened, self._applier, tell)
        self._upkeep = Upkeep(parts.home, settings, self._applier)
        confirmation = Confirmation(parts.home, opened.capture, opened.reader) if settings.confirms_cuts else None
        self._pace = Pace(parts, source, opened.claim, opened.capture, tell, confirmation)
        self._catching_up = CatchingUp(source, opened.capture)
        self._told_state: ConnectorState | None = None

    def begin(self, stack: ExitStack) -> None:
        """Call once, before the first turn. What must be ended is on the stack."""
        opened, parts = self._opened, self._opened.parts
        stack.callback(self._applier.close)
        groups = [self._applier.publisher.group, *window_groups(parts.home)]
        stack.enter_context(BreakingOff(self._control.stop, parts.engine, groups))
        # Ended before the applier is closed: copies publish in its threads.
        stack.callback(self._copies.cancel)
        self._find_live()
        # After live tables are found: one that is not there any more must not be vouched for.
        opened.vouching.begin(opened.source, parts.codec, *opened.look.found)
        self._tell_state()

    def _find_live(self) -> None:
        """Live tables continue from where their last version says they are; one that is not there is copied again."""
        book = self._opened.book
        for table in book.of_state(TableState.LIVE):
            record, version = book[table], self._applier.opener.unchanged(table, self._opened.left)
            version = version or self._applier.opener.recover(table)
            if version is not None and version.stamp is not None and version.stamp.copy == record.copy:
                self._copies.waiting[table] = (version, None)
            else:
                book.set({table: resynced(record, "its lake table is not the one that was published")})

    def leave_in_order(self) -> None:
        """Write down what the next start would find."""
        self._pace.confirm(self._opened.reader, self._applier.cut, is_last=True)
        home, engine = self._opened.parts.home, self._opened.parts.engine
        if engine.done.jobs:
            self._tell(events.SparkWorked(engine.done))
        with suppress(OSError):
            home.runs.left.write(Left(self._applier.left(), *self._opened.look.left()))

    def step(self) -> bool:
        """One turn. True when everything is done. Raises `Stopped` when it is to end."""
        reader, passes = self._opened.reader, self._passes
        self._check()
        if self._control.is_paused:
            self._hold()
        # Signals first, then the look, then copies: each may change what the next has to do.
        self._signals.step(reader)
        passes.look_if_due()
        passes.leave()
        if not self._opened.look.is_wanted:
            self._copies.step(reader)
        self._tell_state()
        passes.join(self._copies)
        passes.publish_if_due(self._catching_up.final_seq)
        self._tell_state()
        self._acknowledge()
        is_done = self._opened.settings.once and self._is_caught_up()
        (self._upkeep.finish if is_done else self._upkeep.step)()
        self._pace.show(reader, self._applier.cut, self._copies, is_last=is_done)
        return is_done

    def _check(self) -> None:
        """Raise what capture died of, or that we are to stop; tell what it struggles with."""
        opened, cut = self._opened, self._applier.cut
        opened.capture.check()
        trouble = opened.troubles.tell(self._copies, self._applier.trouble)
        # A log at its quota takes more as soon as what it has is published.
        progress = (opened.reader.head.ordinal, cut and cut.seq) if opened.troubles.has_report else None
        self._patience.bear(trouble, progress)
        self._control.stop.check()

    def _hold(self) -> None:
        """Take nothing and publish nothing until resumed."""
        self._opened.capture.pause()
        self._copies.hold()
        self._told_state = ConnectorState.PAUSED
        self._tell(events.StateChanged(ConnectorState.PAUSED))
        while self._control.is_paused:
            self._check()
            self._control.stop.wait(POLL_SECONDS)
        self._opened.capture.resume()
        self._tell_state()

    def _tell_state(self) -> None:
        has_cut = self._applier.cut is not None or not self._opened.book.of_state(*COPYING)
        state = ConnectorState.RUNNING if has_cut else ConnectorState.SNAPSHOTTING
        if state is not self._told_state:
            self._told_state = state
            self._tell(events.StateChanged(state))

    def _acknowledge(self) -> None:
        """Let the log delete what no table, no copy and no signal needs any more."""
        needed = self._copies.needed_after()
        if self._opened.desk.seq is not None:
            needed.append(self._opened.desk.seq)
        self._applier.acknowledge(self._opened.reader, needed)

    def _is_caught_up(self) -> bool:
        """With `once`: all is published, and signals have heard what became of their tables. Raises what keeps a table
        from being published for too long."""
        if self._applier.is_stuck and self._applier.trouble:
            raise self._applier.trouble
        if not self._catching_up.is_done(self._opened.reader, self._copies, self._applier):
            return False
        # False if another signal has asked for a copy.
        self._signals.step(self._opened.reader)
        self._passes.leave()
        return self._copies.is_idle and not self._signals.is_deciding
