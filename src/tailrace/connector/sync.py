"""`tailrace sync`: the whole journey of one connector, from first contact to a clean stop.

    check ─ claim the lake ─ publication ─ slot ─ capture ─ snapshot what is pending ─ apply, apply, …

Every step is safe to die in: the same command finds what is there and goes on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

import psycopg
from pyspark.sql import SparkSession

from tailrace.connector.apply import Applier
from tailrace.connector.capture_process import CaptureProcess
from tailrace.connector.home import LakeHome, SourceRecord
from tailrace.connector.status import Phase, StreamStatus, Watcher
from tailrace.errors import DefiniteError
from tailrace.lake.delta import DeltaTable
from tailrace.log.reader import LogReader
from tailrace.log.writer import LogOptions
from tailrace.model.cut import PublishedCut
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId
from tailrace.settings import SyncSettings
from tailrace.snapshot.initial import InitialSnapshot, SnapshotPlan
from tailrace.source.postgres.capture import CaptureOptions
from tailrace.source.postgres.catalog import TableInfo, list_tables
from tailrace.source.postgres.connection import connect
from tailrace.source.postgres.identity import require_streaming, require_timeline, wal_position
from tailrace.source.postgres.problems import problems
from tailrace.source.postgres.publication import ensure_publication, published_tables
from tailrace.source.postgres.slot import create_slot, find_slot, require_slot_name
from tailrace.spark.session import require_java, session

POLL_SECONDS = 0.05
SHOW_SECONDS = 0.5


class StopRequest(BaseException):
    """A person asked us to stop."""


class Sync:
    """One run of one connector."""

    def __init__(self, settings: SyncSettings, watcher: Watcher) -> None:
        self._settings = settings
        self._watcher = watcher
        self._stopping = threading.Event()
        self._told: str | None = None

    def stop(self) -> None:
        """End after the current batch. Any thread, any signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Until stopped, or with `once` until caught up."""
        settings, watcher = self._settings, self._watcher
        watcher.phase(Phase.STARTING)
        require_java()
        with ExitStack() as stack:
            conn = stack.enter_context(connect(settings.dsn))
            identity = require_streaming(conn, settings.dsn)
            tables = chosen_tables(conn, settings)
            home = LakeHome.create(settings.lake)
            stack.enter_context(home.locked())
            if home.source() is None:
                check_given(conn, settings.slot, settings.publication, [info.table for info in tables])
            source = home.claim(identity.log_identity, settings.slot, settings.publication, identity.timeline)
            require_timeline(source.timeline, identity.timeline)
            self._prepare_source(conn, source, tables, home)
            capture = stack.enter_context(self._capture(home, source))
            spark = session(home.spark_log, brief=False)
            stack.callback(spark.stop)
            try:
                reader = self._open_log(home, capture)
                try:
                    self._snapshot(spark, home, tables, capture)
                except DefiniteError:
                    watcher.say(f"slot {source.slot} goes on holding WAL; to give up: tailrace drop DSN LAKE")
                    raise
                self._apply(conn, spark, home, reader, tables, capture)
            except StopRequest:
                pass
            except Exception:
                # A stop that reaches Spark's JVM before us breaks the batch in hand; nothing was lost by it.
                if not self._stopping.is_set():
                    raise
        watcher.phase(Phase.STOPPED)

    def _prepare_source(
        self, conn: psycopg.Connection, source: SourceRecord, tables: Sequence[TableInfo], home: LakeHome
    ) -> None:
        names = [info.table for info in tables]
        sent = published_tables(conn, source.publication) or set()
        unsent = {str(table) for table in names if table not in sent and home.table_path(table).exists()}
        if unsent:
            # Recorded before the publication is changed: afterwards nothing would show the gap.
            home.mark_recopy(home.recopy() | unsent)
            self._watcher.say(f"{len(unsent)} tables were taken out of the publication and are copied anew")
        added = ensure_publication(conn, source.publication, names, ours=source.owns_publication)
        if added:
            self._watcher.say(f"publication {source.publication} sends {len(added)} tables")
        if find_slot(conn, source.slot) is None:
            if home.log.is_dir() and LogReader(home.log).head.lsn:
                raise DefiniteError(
                    f"replication slot {source.slot} is gone: changes since "
                    f"{LogReader(home.log).head.lsn} cannot be read any more",
                    "start a new lake in an empty folder",
                )
            lsn = create_slot(self._settings.dsn, source.slot)
            self._watcher.say(f"slot {source.slot} holds the WAL from {lsn} on")

    def _capture(self, home: LakeHome, source: SourceRecord) -> CaptureProcess:
        settings = self._settings
        log_options = LogOptions(
            segment_bytes_max=settings.log_segment_bytes_max,
            quota_bytes=settings.log_quota_bytes,
            compression=settings.log_compression,
        )
        return CaptureProcess(
            CaptureOptions(
                settings.dsn,
                source.slot,
                source.publication,
                home.log,
                source.timeline,
                settings.log_keep_seconds,
                log_options,
            )
        )

    def _open_log(self, home: LakeHome, capture: CaptureProcess) -> LogReader:
        while not (home.log / "head").exists():
            self._pause(capture)
        return LogReader(home.log)

    def _pause(self, capture: CaptureProcess) -> None:
        """A moment's wait. Raises what capture died of, or that we are to stop; tells what it struggles with."""
        capture.check()
        problem = capture.report.message if capture.report else None
        if problem != self._told:
            self._watcher.say(problem or "capture goes on")
        self._told = problem
        if self._stopping.wait(POLL_SECONDS):
            raise StopRequest

    def _snapshot(
        self, spark: SparkSession, home: LakeHome, tables: Sequence[TableInfo], capture: CaptureProcess
    ) -> None:
        pending = [info.table for info in tables if _is_pending(spark, home, info)]
        if not pending:
            return
        self._watcher.phase(Phase.SNAPSHOTTING)
        plan = SnapshotPlan(
            self._settings.dsn,
            pending,
            home.table_path,
            self._settings.chunk_bytes_max,
            self._settings.tables_in_parallel,
        )
        snapshot = InitialSnapshot(spark, plan)
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(snapshot.run, lambda: self._pause(capture))
            try:
                while not wait([run], timeout=SHOW_SECONDS).done:
                    self._watcher.snapshot(snapshot.progress())
                    self._pause(capture)
            except BaseException:
                spark.sparkContext.cancelAllJobs()
                raise
            lsn = run.result()
        home.mark_recopy(home.recopy() - {str(table) for table in pending})
        self._watcher.snapshot(snapshot.progress())
        self._watcher.say(f"snapshot of {len(pending)} tables at {lsn}")

    def _apply(
        self,
        conn: psycopg.Connection,
        spark: SparkSession,
        home: LakeHome,
        reader: LogReader,
        tables: Sequence[TableInfo],
        capture: CaptureProcess,
    ) -> None:
        settings = self._settings
        self._watcher.phase(Phase.RUNNING)
        target = wal_position(conn) if settings.once else None

        def head_reaches(lsn: Lsn) -> None:
            while reader.refresh().lsn < lsn:
                applier.let_go(reader)
                self._pause(capture)

        applier = Applier(spark, home, [(info.table, info.relation) for info in tables], settings.tables_in_parallel)
        cut = applier.start(reader, head_reaches, time.time_ns() // 1000)
        pace = _Pace(conn, self._watcher)
        if target is not None:
            while reader.refresh().lsn < target:
                # A log at its quota takes the rest only when what it has is published.
                if capture.report is not None and applier.seq < reader.head.seq:
                    cut = applier.advance(reader, reader.reach(applier.seq, settings.batch_bytes_max))
                    pace.show(reader, cut, capture, now=True)
                self._pause(capture)
            final = reader.head.seq
            while applier.seq < final:
                cut = applier.advance(reader, min(final, reader.reach(applier.seq, settings.batch_bytes_max)))
                pace.show(reader, cut, capture, now=True)
            return
        while True:
            due = time.monotonic() + settings.publish_every_seconds
            while time.monotonic() < due or reader.refresh().seq == applier.seq:
                pace.show(reader, cut, capture)
                self._pause(capture)
            cut = applier.advance(reader, reader.reach(applier.seq, settings.batch_bytes_max))
            pace.show(reader, cut, capture, now=True)


class _Pace:
    """Measures and shows, a few times a second."""

    def __init__(self, conn: psycopg.Connection, watcher: Watcher) -> None:
        self._conn = conn
        self._watcher = watcher
        self._shown_at = 0.0
        self._position = 0

    def show(self, reader: LogReader, cut: PublishedCut, capture: CaptureProcess, *, now: bool = False) -> None:
        elapsed = time.monotonic() - self._shown_at
        if elapsed < SHOW_SECONDS and not now:
            return
        head = reader.refresh()
        rate = (head.position - self._position) / elapsed if self._shown_at else 0.0
        self._shown_at, self._position = time.monotonic(), head.position
        lag_seconds = 0.0
        if head.seq > cut.seq:
            oldest_us = reader.transactions(cut.seq, cut.seq + 1).column("commit_time_us")[0].as_py()
            lag_seconds = max(0.0, time.time() - oldest_us / 1_000_000)
        try:
            lag_bytes = max(0, wal_position(self._conn) - head.lsn)
        except psycopg.OperationalError:
            # Capture reconnects by itself and says so; a figure to look at is no reason to stop.
            lag_bytes = 0
        problem = capture.report.message if capture.report else None
        self._watcher.streaming(StreamStatus(cut, head.seq, rate, lag_bytes, lag_seconds, problem))


def check_given(conn: psycopg.Connection, slot: str | None, publication: str | None, tables: Sequence[TableId]) -> None:
    """What the user named must be usable, before a lake is bound to it."""
    if publication is not None:
        ensure_publication(conn, publication, tables, ours=False)
    if slot is not None:
        require_slot_name(slot)
        find_slot(conn, slot)


def chosen_tables(conn: psycopg.Connection, settings: SyncSettings) -> list[TableInfo]:
    """The tables to copy. Refuses, before anything is changed, those that cannot be copied exactly."""
    tables = list_tables(conn, list(settings.tables), list(settings.exclude))
    clashes = [name for name, count in Counter(str(info.table).lower() for info in tables).items() if count > 1]
    if clashes:
        raise DefiniteError(
            f"two tables are called {clashes[0]} but for upper and lower case, which Spark does not tell apart",
            "leave one out with --exclude",
        )
    if not tables:
        raise DefiniteError("there are no tables to copy", "create one, or check --tables and --exclude")
    for info in tables:
        if "." in info.table.namespace:
            # A lake names its tables namespace.name, and must be able to take that apart again.
            raise DefiniteError(
                f"the schema {info.table.namespace!r} has a dot in its name", f"leave it out: --exclude '{info.table}'"
            )
        for problem in problems(info):
            hint = f"{problem.fix}; or leave it out with --exclude {info.table}"
            raise DefiniteError(problem.message, hint)
    return tables


def _is_pending(spark: SparkSession, home: LakeHome, info: TableInfo) -> bool:
    """Whether the table still needs its snapshot: it has none, or the source has a new table of that name."""
    table = DeltaTable(spark, home.table_path(info.table))
    stamp = table.version().stamp if table.exists else None
    return stamp is None or stamp.relation != info.relation or str(info.table) in home.recopy()
