"""Opening a run: from first contact with the source to a log that capture writes.

    check ─ claim the lake ─ take up edits ─┬─ prepare the source ─ first look ─ capture ─ log
                                            └─ Spark, if it will be needed

What is cheap and likely to fail comes first, and nothing is made before it has passed. Every step is safe to die in:
the next opening finds what is there and continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.connector.control import RunControl
from tailrace.connector.engine import engine_of
from tailrace.connector.events import Event, SourcePrepared
from tailrace.connector.messages import messages_to
from tailrace.connector.offsets.waiting_edits import take_up
from tailrace.connector.once import Patience
from tailrace.connector.pace import Troubles
from tailrace.connector.publish.opening import LakeParts
from tailrace.connector.signals.desk import SignalDesk
from tailrace.connector.start.capture_process import Capture, CaptureOrder, Captures
from tailrace.connector.start.new_log import begin_after_cut, require_own_log
from tailrace.connector.start.preflight import require_ready
from tailrace.connector.start.restarts import Restarts
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import decide_after_cut, decide_without_log, resynced
from tailrace.connector.tables.selection import Chooser
from tailrace.connector.tables.source_check import TableLook
from tailrace.connector.tables.voucher import Vouching
from tailrace.engine.door import Engine
from tailrace.engine.spark.cluster import is_cluster
from tailrace.engine.spark.session import require_startable
from tailrace.errors import DefiniteError, GapError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome, SourceRecord, require_fit_place
from tailrace.lake.records.clean_shutdown import Left
from tailrace.lake.records.confirmed import Confirmed
from tailrace.log.files.layout import adopt
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import COPYING, TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim
from tailrace.source.kinds import path_of

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Opened:
    """What a run works with. Whatever must be closed is on the stack that it was opened on."""

    settings: ConnectorSettings
    """With what edits of the offset have made of them."""
    source: Source
    claim: Claim
    parts: LakeParts
    book: TableBook
    look: TableLook
    """Its first look is taken."""
    vouching: Vouching
    """Not begun: the run first finds its live tables."""
    desk: SignalDesk
    capture: Capture
    reader: LogReader
    troubles: Troubles
    left: Left | None
    """How the last run left the lake, if it ended in order."""


@dataclass(frozen=True)
class Opening:
    """How to open a run: any number of times, one after another."""

    settings: ConnectorSettings
    source: Source
    control: RunControl
    tell: Callable[[Event], None]
    engine: SparkSession | Engine | None
    restarts: Restarts
    patience: Patience
    captures: Captures = field(default_factory=Captures)

    def open(self, stack: ExitStack) -> Opened:
        """Raises what keeps the run from beginning, and `Stopped` if it is not to begin any more."""
        is_new = LakeHome.is_new(self.settings.lake)
        if not is_new:
            self._require_home()
        identity = self._check(is_new)
        home = self._hold(stack)
        require_own_log(home)
        self.restarts.compare(home, identity)
        vouching = stack.enter_context(Vouching(home))
        book = TableBook(home, vouching, self.source.is_same_shape, self.tell)
        # Before the claim is read: an edit may replace it.
        settings = take_up(home, self.source, book, self.settings)
        record = self._claim(home, identity)
        source = self.source.claimed(record.claim)
        # Taken away before anything changes: a run that dies from here on leaves none.
        left = home.runs.left.take()
        engine = stack.enter_context(engine_of(settings, home, self.engine, self.tell))
        if is_new or book.of_state(*COPYING):
            # Rows will be copied: Spark starts beside the preparation of the source.
            engine.start_soon()
        desk = SignalDesk(home, settings, source.decode)
        stack.callback(desk.close)
        # Before the source is prepared: what is inserted into the signal table from then on counts.
        desk.begin(LogReader(home.log) if home.has_log else None)
        first = _FirstLook(home, source, Chooser(settings, source, home), book, self)
        look, record = first.take(replace(record, identity=identity), left)
        # After the look: it has made what the source needs to send every table.
        capture = stack.enter_context(self.captures.begin(capture_order(source, record, home.log, settings)))
        parts = LakeParts(engine, home, format_named(record.format), type(source))
        troubles = Troubles(capture, self.tell, self.patience.told)
        reader = self._await_log(home, capture, troubles)
        about = settings, source, record.claim, parts, book, look, vouching, desk
        return Opened(*about, capture, reader, troubles, left)

    def _check(self, is_new: bool) -> dict[str, str]:
        """Who the source is, after all that can be checked without making anything."""
        settings, source = self.settings, self.source
        format_named(settings.format)
        if self.engine is None and (is_new or is_cluster(settings.spark.master)):
            require_startable(settings.spark)
        if is_new:
            require_fit_place(LakeHome(settings.lake))
            require_ready(source, settings)
        identity = source.identify()
        self.captures.prepare(source)
        if is_new:
            # Nothing is made for a pattern that names nothing.
            source.tables(settings.tables, settings.exclude)
        return dict(identity)

    def _require_home(self) -> None:
        """A definite error for a lake whose home is elsewhere, or lost: what was taken from the source and is in no cut
        is in its log. Every table may be copied again instead."""
        home = LakeHome(self.settings.lake)
        if home.is_here or self.settings.snapshot_mode is SnapshotMode.WHEN_NEEDED:
            return
        if home.confirmed.load() is not None:
            return
        message = f"the home of {home.lake} is not in {home.folder}: it has the log of what the source has sent"
        hint = "name it: --home FOLDER; if it is lost, --snapshot-mode when_needed copies every table again"
        raise DefiniteError(message, hint)

    def _hold(self, stack: ExitStack) -> LakeHome:
        """The lake, ours alone until the stack is closed."""
        home = LakeHome.create(self.settings.lake)
        stack.enter_context(home.locked())
        self.control.home = home
        stack.enter_context(messages_to(home.runs.messages))
        return home

    def _claim(self, home: LakeHome, identity: Mapping[str, str]) -> SourceRecord:
        """What is ours at the source: names, written down before anything is made under them."""
        record = home.source()
        claim = self.source.claim(record.claim if record else None)
        if record is None:
            record = SourceRecord(dict(identity), claim, self.settings.format)
            home.begin(record)
            if self.settings.confirms_cuts:
                # Nothing is made at the source yet, so it has been told of nothing.
                home.confirmed.store(Confirmed(0))
        return record

    def _await_log(self, home: LakeHome, capture: Capture, troubles: Troubles) -> LogReader:
        """The log, once capture has begun one."""
        while not home.has_log:
            capture.check()
            self.patience.bear(troubles.tell(None))
            self.control.stop.check()
            self.control.stop.wait(POLL_SECONDS)
        return LogReader(home.log)


@dataclass(frozen=True)
class _FirstLook:
    """The first look at the source's tables, and whether the source still has what follows the log."""

    home: LakeHome
    source: Source
    chooser: Chooser
    book: TableBook
    opening: Opening

    def take(self, record: SourceRecord, left: Left | None) -> tuple[TableLook, SourceRecord]:
        """The look, and the claim that capture continues with.

        Where the source has lost changes and that is allowed, every table is copied again. All of this is written down
        before anything after the gap is taken up.
        """
        if not self.home.has_log:
            self._begin_log(record)
        self._see_to_confirmation()
        end, restarts = self.book.resume(), self.opening.restarts
        try:
            restarts.raise_gap()
            claim = self.source.require_continuity(record.claim, end)
            if claim != record.claim:
                record = replace(record, claim=claim)
                self.home.store_source(record)
            return self._look(record, left), record
        except GapError as error:
            if end is None or not restarts.may_copy(end):
                raise
            record = self._restart(record, end, error.message)
            return self._look(record, left), record

    def _begin_log(self, record: SourceRecord) -> None:
        """A new log after the newest cut, if the source has all that follows. Else a new one would not tell what the
        old one had, and copies begin only when there is a log."""
        options = log_options(self.opening.settings)
        cut = begin_after_cut(self.home, format_named(record.format), record.identity, options)
        if cut is None:
            self.book.set(decide_without_log(self.book.records))
            return
        self.book.set(decide_after_cut(self.book.records, cut.copies))
        text = self.source.format(cut.position)
        self.opening.tell(SourcePrepared([f"the log was not here: a new one continues after the newest cut, {text}"]))

    def _see_to_confirmation(self) -> None:
        """Before capture begins, which may tell the source of what is in the log alone."""
        if not self.opening.settings.confirms_cuts:
            self.home.confirmed.remove()

    def _restart(self, record: SourceRecord, end: SourcePosition, reason: str) -> SourceRecord:
        """Continue after the gap. The tables are told first, then the log, the claim last: what dies in between finds
        the gap again."""
        records = {t: r for t, r in self.book.records.items() if r.state in (TableState.LIVE, *COPYING)}
        self.book.set({table: resynced(each, reason) for table, each in records.items()})
        record = replace(record, claim=self.source.restart(record.claim, end))
        adopt(self.home.log, record.identity)
        self.home.store_source(record)
        return record

    def _look(self, record: SourceRecord, left: Left | None) -> TableLook:
        opening = self.opening
        look = TableLook(self.source, self.chooser, record.claim, self.book, opening.control.stop, opening.tell)
        if not look.is_unchanged(left):
            look.begin(self.book.resume())
        return look


def log_options(settings: ConnectorSettings) -> LogOptions:
    """How the log is written."""
    return LogOptions(
        segment_bytes_max=settings.log_segment_bytes_max,
        quota_bytes=settings.log_quota_bytes,
        compression=settings.log_compression,
    )


def capture_order(source: Source, record: SourceRecord, log: Path, settings: ConnectorSettings) -> CaptureOrder:
    """What the capture process of a lake is told when it is started."""
    return CaptureOrder(
        source=path_of(source),
        arguments=source.arguments,
        claim=record.claim,
        identity=record.identity,
        log=str(log),
        keep_seconds=settings.log_keep_seconds,
        log_options=asdict(log_options(settings)),
        waits_for_cuts=settings.confirms_cuts,
    )
