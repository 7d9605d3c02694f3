"""One run of a connector, from first contact to a clean end.

    check ─ claim the lake ─┬─ prepare the source ─ capture ─┬─ copy what must be copied, beside the stream
                            └─ Spark, if it will be needed   └─ publish, cut, publish, cut, …

Every step is safe to die in: the next run finds what is there and continues. So does this one, where the source has
lost changes and may be copied again, or has moved: it begins once more. Copies are made in a thread; everything that is
decided is decided in the thread that calls `run`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace

from pyspark.sql import SparkSession

from tailrace.connector import events
from tailrace.connector._once import CatchingUp, Patience
from tailrace.connector._pace import Pace
from tailrace.connector.control import BreakingOff, RunControl, StopRequest
from tailrace.connector.copy.copies import Copies, HowToCopy, window_groups
from tailrace.connector.engine import engine_of
from tailrace.connector.events import ConnectorState, Event
from tailrace.connector.messages import messages_to
from tailrace.connector.offsets.waiting_edits import take_up
from tailrace.connector.publish.applier import Applier, LakeParts
from tailrace.connector.publish.upkeep import Upkeep
from tailrace.connector.signals.desk import SignalDesk
from tailrace.connector.signals.execution import Orders
from tailrace.connector.signals.resync_requests import take_requests
from tailrace.connector.start import capture_order, capture_process
from tailrace.connector.start.capture_process import CaptureProcess
from tailrace.connector.start.preflight import require_ready
from tailrace.connector.start.restarts import Rechecks
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import became_live, decide_without_log, failed, is_live, resynced
from tailrace.connector.tables.selection import Chooser
from tailrace.connector.tables.source_check import TableLook
from tailrace.connector.tables.voucher import Vouching
from tailrace.engine.door import Engine
from tailrace.engine.spark.cluster import is_cluster
from tailrace.engine.spark.session import require_startable
from tailrace.errors import GapError, MovedError, ResyncError, TailraceError, TransientError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.records.clean_shutdown import Left
from tailrace.log.reader import LogReader
from tailrace.log.write.adoption import adopt
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.source.door.values import Definition

POLL_SECONDS = 0.05
RETRY_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Run:
    """One run."""

    def __init__(
        self,
        settings: ConnectorSettings,
        source: Source,
        control: RunControl,
        tell: Callable[[Event], None],
        engine: SparkSession | Engine | None,
    ) -> None:
        self._settings = settings
        self._source = source.watermarked(settings.watermarking)
        self._control = control
        self._tell = tell
        self._given_engine = engine
        self._rechecks = Rechecks(settings.snapshot_mode)
        self._patience = Patience(is_short=settings.once)

    def run(self) -> None:
        """Until told to stop, or with `once` until caught up. Raises what is not one table's error."""
        while True:
            try:
                return self._run()
            except (GapError, MovedError) as error:
                self._rechecks.take(error)
            except OSError as error:
                # A disk that is full when a run begins is waited for, as by one that runs.
                self._tell(self._patience.bear_fault(error))
                self._control.wait(RETRY_SECONDS)
                if self._control.is_stopping:
                    return None

    def _run(self) -> None:
        self._look_due = 0.0
        self._told_state: ConnectorState | None = None
        self._publish_due = -math.inf
        with ExitStack() as stack, suppress(StopRequest):
            try:
                self._open(stack)
                self._pace.told = self._patience.told
                with suppress(StopRequest):
                    while not self._step():
                        self._control.wait(POLL_SECONDS)
                self._leave_in_order()
            except Exception:
                # A stop that reaches Spark's JVM before us breaks the batch in hand; nothing was lost by it.
                if not self._control.is_stopping:
                    raise

    def _open(self, stack: ExitStack) -> None:
        """Everything up to the first batch, the cheap and likely to fail first."""
        settings, source = self._settings, self._source
        format_named(settings.format)
        is_new = LakeHome.is_new(settings.lake)
        if self._given_engine is None and (is_new or is_cluster(settings.spark.master)):
            require_startable(settings.spark)
        if is_new:
            require_ready(source, settings)
        identity = source.identify()
        capture_process.prepare(source)
        if is_new:
            # Nothing is made for a pattern that names nothing.
            source.tables(settings.tables, settings.exclude)
        self._home = home = LakeHome.create(settings.lake)
        stack.enter_context(home.locked())
        self._control.home = home
        stack.enter_context(messages_to(home.messages))
        self._rechecks.compare(home, identity)
        self._vouching = stack.enter_context(Vouching(home))
        self._book = TableBook(home, self._vouching, source.is_same_shape, self._tell)
        settings = self._settings = take_up(home, source, self._book, settings)
        record = self._claim(home, dict(identity))
        self._source = source = source.claimed(record.claim)
        self._left = home.left.take()
        chooser = Chooser(settings, source, home)
        self._engine = stack.enter_context(engine_of(settings, home, self._given_engine, self._tell))
        if is_new or self._book.of_state(*COPYING):
            # Rows will be copied: Spark starts beside the preparation of the source.
            self._engine.start_soon()
        self._desk = SignalDesk(home, settings, source.decode)
        stack.callback(self._desk.close)
        self._desk.begin(LogReader(home.log) if (home.log / "head").exists() else None)
        record = self._look_first(replace(record, identity=dict(identity)), chooser)
        self._capture = stack.enter_context(CaptureProcess(capture_order.order_of(source, record, home.log, settings)))
        self._parts = LakeParts(self._engine, home, format_named(record.format), type(source))
        self._pace = Pace(settings, self._parts, source, self._capture, self._tell)
        self._catching_up = CatchingUp(source, self._capture)
        self._reader = self._first_log(home)
        self._applier = Applier(self._parts, settings, self)
        stack.callback(self._applier.close)
        groups = [self._applier.publisher.group, *window_groups(home)]
        stack.enter_context(BreakingOff(self._control, self._engine, groups))
        how = HowToCopy(self._parts, source, record.claim, settings)
        self._copies = Copies(how, self._book, self._look, self._applier, self._tell)
        stack.callback(self._copies.cancel)
        self._orders = Orders(home, self._desk, self._book, self._copies, self._tell)
        self._upkeep = Upkeep(home, settings, self._applier)
        self._find_live()
        self._vouching.begin(source, self._parts.codec, *self._look.found)
        self._tell_state()

    def _first_log(self, home: LakeHome) -> LogReader:
        """Once capture has begun one."""
        while not (home.log / "head").exists():
            self._capture.check()
            self._patience.bear(self._pace.tell_trouble(None))
            self._control.check()
            self._control.wait(POLL_SECONDS)
        return LogReader(home.log)

    def _claim(self, home: LakeHome, identity: dict[str, str]) -> SourceRecord:
        record = home.source()
        claim = self._source.claim(record.claim if record else None)
        if record is None:
            record = SourceRecord(identity, claim, self._settings.format)
            home.store_source(record)
        return record

    def _look_first(self, record: SourceRecord, chooser: Chooser) -> SourceRecord:
        """Where the source has lost changes and that is allowed, every table is copied again. All of this is written
        down before anything is taken up behind the gap."""

        def look(record: SourceRecord) -> None:
            self._look = TableLook(self._source, chooser, record.claim, self._book, self._control, self._tell)
            if not self._look.is_still(self._left):
                self._look.begin(self._book.resume())

        if not (self._home.log / "head").exists():
            # Copies begin only when there is a log. A new one would not tell what the old one had.
            self._book.set(decide_without_log(self._book.records))
        end = self._book.resume()
        try:
            self._rechecks.raise_gap()
            claim = self._source.require_continuity(record.claim, end)
            if claim != record.claim:
                record = replace(record, claim=claim)
                self._home.store_source(record)
            look(record)
        except GapError as error:
            if end is None or not self._rechecks.may_copy(end):
                raise
            records = {t: r for t, r in self._book.records.items() if r.state in (TableState.LIVE, *COPYING)}
            self._book.set({table: resynced(each, error.message) for table, each in records.items()})
            record = replace(record, claim=self._source.restart(record.claim, end))
            adopt(self._home.log, record.identity)
            self._home.store_source(record)
            look(record)
        return record

    def _find_live(self) -> None:
        """Live tables continue from where their last version says they are; one that is not there is copied again."""
        for table in self._book.of_state(TableState.LIVE):
            record, version = self._book[table], self._applier.still(table, self._left)
            version = version or self._applier.recover(table)
            if version is not None and version.stamp is not None and version.stamp.copy == record.copy:
                self._copies.waiting[table] = (version, None)
            else:
                self._book.set({table: resynced(record, "its lake table is not the one that was published")})

    def _leave_in_order(self) -> None:
        """Write down what the next start would find."""
        if self._engine.done.jobs:
            self._tell(events.SparkWorked(self._engine.done))
        with suppress(OSError):
            self._home.left.write(Left(self._applier.left(), *self._look.left()))

    def _step(self) -> bool:
        """One turn. True when everything is done."""
        self._check()
        if self._control.is_paused:
            self._hold()
        take_requests(self._home, self._control, self._book)
        self._orders.step(self._reader)
        if self._look.is_due(is_urgent=self._vouching.wants_look):
            self._take_look()
        self._leave()
        if not self._look.is_wanted:
            self._copies.step(self._reader)
        self._tell_state()
        self._join()
        self._publish()
        self._acknowledge()
        if self._settings.once and self._applier.is_stuck and self._applier.trouble:
            raise self._applier.trouble
        is_done = self._settings.once and self._is_caught_up() and self._is_all_told()
        (self._upkeep.finish if is_done else self._upkeep.step)()
        self._pace.show(self._reader, self._applier.cut, self._copies, is_last=is_done)
        return is_done

    def _check(self) -> None:
        """Raise what capture died of, or that we are to stop; tell what it struggles with."""
        self._capture.check()
        trouble = self._pace.tell_trouble(self._copies, self._applier.trouble)
        # A log at its quota takes more as soon as what it has is published.
        cut = self._applier.cut
        self._patience.bear(trouble, (self._reader.head.ordinal, cut and cut.seq) if self._capture.report else None)
        self._control.check()

    def _hold(self) -> None:
        self._capture.pause()
        self._copies.hold()
        self._told_state = ConnectorState.PAUSED
        self._tell(events.StateChanged(ConnectorState.PAUSED))
        while self._control.is_paused:
            self._check()
            self._control.wait(POLL_SECONDS)
        self._capture.resume()
        self._tell_state()

    def _tell_state(self) -> None:
        has_cut = self._applier.cut is not None or not self._book.of_state(*COPYING)
        state = ConnectorState.RUNNING if has_cut else ConnectorState.SNAPSHOTTING
        if state is not self._told_state:
            self._told_state = state
            self._tell(events.StateChanged(state))

    def _take_look(self) -> bool:
        """Look at the tables; live ones that moved harmlessly are to follow. False if there was no answer: nothing is
        published until there is one."""
        if time.monotonic() < self._look_due:
            return False
        try:
            self._look.take_again(self._book.resume())
        except TransientError as error:
            self._look_due = time.monotonic() + RETRY_SECONDS
            self._pace.trouble(error)
            return False
        self._pace.trouble(None)
        for table in self._applier.tables:
            self._move(table)
        is_settled, mark = self._look.found
        self._vouching.trust(is_settled, mark)
        self._publish_due = (
            self._publish_due if is_settled else -math.inf
        )  # Live reads wait until tables have followed.
        return True

    def _move(self, table: TableId) -> None:
        schema = self._look.moved(table)
        if schema is not None:
            self._applier.move(table, schema, self._look.position)

    def _leave(self) -> None:
        """Tables that are no longer live, or are to be another copy, stop following the log."""
        for live in self._applier.tables.values():
            record = self._book[live.table]
            if record.state in (TableState.ERRORED, TableState.REMOVED) or record.copy != live.copy:
                self._applier.leave(live.table)

    def _join(self) -> None:
        """Tables whose position the log has got to follow it from now on."""
        head = self._reader.refresh()
        for table, (version, shown_seq) in list(self._copies.waiting.items()):
            stamp, record = version.stamp, self._book[table]
            assert stamp is not None
            if head.ordinal < stamp.position.ordinal:
                if stamp.seq is None:
                    # All that the log has now is older than the snapshot.
                    self._copies.waiting[table] = (version, head.seq)
                continue
            del self._copies.waiting[table]
            try:
                self._applier.join(self._reader, table, record, version, shown_seq)
                self._move(table)
                if stamp.seq is not None:
                    # It has rows from the stream, and the process that published them may have died before the next
                    # look at the table.
                    self._applier.tables[table].require_parts(self._reader, stamp.seq)
                self._publish_due = -math.inf
            except ResyncError as error:
                self.table_failed(table, error)

    def _publish(self) -> None:
        head = self._reader.refresh()
        if self._applier.is_level(head.seq, head.ordinal):
            return
        if self._applier.has_changes(self._reader):
            # It may be due only later: Spark starts meanwhile.
            self._engine.start_soon()
        if not self._is_due_to_publish():
            return
        begun = time.monotonic()
        upto = self._applier.next_seq(self._reader, self._settings.batch_bytes_max)
        if self._catching_up.final_seq is not None:
            upto = min(upto, self._catching_up.final_seq)
        # Looked at after the last transaction of the batch: what was done to a whole table before it shows.
        if not self._take_look():
            return
        self._leave()
        cut = self._applier.advance(self._reader, self._applier.stops_at(self._reader, upto))
        self._publish_due = self._pace.next_publish(begun, is_behind=upto < head.seq)
        # Tables that had to follow have done so, or have left.
        self._vouching.trust(*self._look.found)
        if cut is not None:
            self._vouching.published(cut)
            took_seconds = time.monotonic() - begun
            self._tell(events.CutPublished(cut, self._parts.codec.format(cut.position), took_seconds))
            self._make_live(cut)

    def _make_live(self, cut: PublishedCut) -> None:
        """Tables whose first cut this is."""
        live = [each for each in self._applier.tables.values() if str(each.table) in cut.tables]
        new = [each for each in live if not is_live(self._book[each.table], each.relation)]
        self._book.set({each.table: became_live(self._book[each.table], each.relation) for each in new})
        self._tell_state()

    def _is_due_to_publish(self) -> bool:
        if not self._settings.once:
            return time.monotonic() >= self._publish_due
        # Everything at once at the end, unless a log at its quota takes the rest only when what it has is published.
        return self._catching_up.final_seq is not None or self._capture.report is not None

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        self._book.set({table: failed(table, self._book[table], error)})

    def table_followed(self, table: TableId, definition: Definition | None, version: int) -> None:
        self._book.follow(table, definition, version)

    def _acknowledge(self) -> None:
        """Let the log delete what no table, no copy and no signal needs any more."""
        needed = self._copies.needed_after()
        if self._desk.seq is not None:
            needed.append(self._desk.seq)
        self._applier.acknowledge(self._reader, needed)

    def _is_all_told(self) -> bool:
        """With `once`: signals hear what became of their tables. False if another one has asked for a copy."""
        self._orders.step(self._reader)
        self._leave()
        return self._copies.is_idle and not self._orders.is_deciding

    def _is_caught_up(self) -> bool:
        return self._catching_up.is_done(self._reader, self._copies, self._applier)
