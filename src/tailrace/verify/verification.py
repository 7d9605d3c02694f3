"""Verification: is the lake, at one commit, the source at the same point?

The source is read under a snapshot at a position P. The lake is read, once the log has got there, at the cut that has
exactly the transactions which that snapshot shows: `Source.shown_up_to` says which, as it does for a copy that lands at
P. Writers and a running sync are not held up, and do not disturb: neither side changes any more.

    source  ──────────────── snapshot at P ── rows ──┐
    log     ── … t7 t8 ─────────────────▶ P          ├─ compared ── keys where they differ
    lake    ── last cut ── + log up to t8 ── rows ───┘

Small tables are read and compared by this process, large ones by Spark's executors: a lake of small tables needs no
Spark at all.

The snapshot is held from P until both sides have been read: what was published and logged before keeps that short.
What a statement does to all rows at once is not in the log. So a table whose definition has moved since its copy, or
while it was read, is not judged: the connector copies or follows it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tailrace.connector.events import SparkStarting
from tailrace.errors import DefiniteError, ResyncError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.read.cut import Cut, cut_as_it_lies
from tailrace.read.duckdb import connect
from tailrace.settings import VerifySettings
from tailrace.source.door import Definition, Problem, SnapshotPoint, Source
from tailrace.spark.session import LazySession, session
from tailrace.verify import events
from tailrace.verify._catching_up import CatchingUp
from tailrace.verify._executors import Executors
from tailrace.verify._in_memory import TooLargeError
from tailrace.verify._judged import Judged, reported
from tailrace.verify._small_tables import SmallTables
from tailrace.verify.report import Report, TableReport, Verdict


class Verification:
    """One run over some tables of a lake. One thread calls it. Changes nothing at the source, and the lake only where
    no sync runs: then it catches up first."""

    def __init__(self, settings: VerifySettings, source: Source, spark: SparkSession | None, tell: events.Tell) -> None:
        """Uses `spark`, or starts one when a table is large, and stops it."""
        self._settings = settings
        self._home = LakeHome.find(settings.lake)
        record = self._home.source()
        self._source = source.claimed(record.claim) if record is not None else source
        self._tell = tell
        self._spark = self._lazy(spark)
        self._catching_up = CatchingUp(self._home, source, self._spark, tell)

    def _lazy(self, given: SparkSession | None) -> LazySession:
        record, settings = self._home.source(), self._settings.spark
        assert record is not None
        lake_format, log_path = format_named(record.format), self._home.path / "_tailrace" / "verify.log"
        start = partial(session, lake_format, log_path, brief=False, settings=settings, lake=self._home.path)
        return LazySession(start, given, partial(self._tell, SparkStarting(settings.master)), settings.master)

    def run(self) -> Report:
        """What was found. Raises what is not one table's error. Once."""
        with self._spark:
            return self._run()

    def _run(self) -> Report:
        self._home.require_identity(self._source.identify())
        record = self._home.source()
        self._source.claim(record.claim if record is not None else None)
        self._chosen()
        self._catching_up.to_the_present()
        chosen = self._chosen()
        live = {table: record for table, record in chosen.items() if record.state is TableState.LIVE}
        others = [TableReport.of_state(table, record) for table, record in chosen.items() if table not in live]
        if not live:
            return Report(None, None, tuple(others))
        with self._source.snapshot(self._wait) as point, connect(is_private=True) as connection:
            text = self._source.format(point.position)
            self._tell(events.PointTaken(text))
            judged, refused = self._describe(live)
            self._catching_up.log_up_to(point.position)
            cut = cut_as_it_lies(connection, self._settings.lake, point.position)
            compared = self._compare_all(judged, cut, point)
        reports = [*others, *refused, *self._without_moved(judged, compared)]
        return Report(text, cut.seq, tuple(sorted(reports, key=lambda report: report.table)))

    def _chosen(self) -> dict[TableId, TableRecord]:
        """The lake's tables that the patterns name. A definite error for a pattern that names none."""
        known, patterns = self._home.tables.load(), self._settings.tables
        for pattern in patterns:
            if not any(table.matches(pattern) for table in known):
                hint = f"it has {', '.join(map(str, sorted(known))) or 'none yet'}"
                raise DefiniteError(f"no table of the lake matches '{pattern}'", hint)
        is_chosen = [table for table in known if not patterns or any(map(table.matches, patterns))]
        return {table: known[table] for table in sorted(is_chosen)}

    def _wait(self, problem: Problem | None) -> None:
        if problem is not None:
            self._tell(events.Waits(problem.message, problem.hint))

    def _describe(self, live: Mapping[TableId, TableRecord]) -> tuple[list[Judged], list[TableReport]]:
        """The tables that can be compared, and why the others cannot."""
        found = self._source.describe(list(live))
        defined = self._define({table: record.definition for table, record in live.items()})
        judged, refused = [], []
        for table, record in live.items():
            try:
                schema = self._unmoved(table, record.definition, defined.get(table))
                problem = found[table].problem
                if problem is not None:
                    raise DefiniteError(problem.message, problem.hint)
                judged.append(Judged(replace(found[table], schema=schema), record.definition))
            except DefiniteError as error:
                refused.append(TableReport.not_compared(table, error))
        return judged, refused

    def _define(self, known: Mapping[TableId, Definition | None]) -> dict[TableId, TableSchema]:
        record = self._home.source()
        assert record is not None
        return self._source.define(record.claim, known)

    def _unmoved(self, table: TableId, before: Definition | None, now: TableSchema | None) -> TableSchema:
        """The table's shape now. A definite error where rows copied under `before` may not be its rows any more."""
        if now is None:
            raise DefiniteError("it is gone from the source", "the running or the next tailrace sync notices")
        if before is not None and now.definition is not None:
            reason = self._source.why_copy(before, now.definition)
            if reason is not None:
                raise ResyncError.of(table, reason)
        return now

    def _without_moved(self, judged: Sequence[Judged], reports: Sequence[TableReport]) -> list[TableReport]:
        """A difference counts only if nothing was done to the whole table while it was read."""
        under = {each.table: each.found.schema.definition for each in judged}
        doubted = [report.table for report in reports if report.verdict is Verdict.DIFFERENT]
        defined = self._define({table: under[table] for table in doubted}) if doubted else {}
        checked = []
        for report in reports:
            try:
                if report.table in doubted:
                    self._unmoved(report.table, under[report.table], defined.get(report.table))
                checked.append(report)
            except DefiniteError as error:
                checked.append(TableReport.not_compared(report.table, error))
        return checked

    def _compare_all(self, judged: Sequence[Judged], cut: Cut[Any], point: SnapshotPoint) -> list[TableReport]:
        """Small tables here, one after another; then the others on executors."""
        reports, large = [], []
        small = SmallTables(self._settings, self._source, cut, point)
        for each in judged:
            try:
                reports.append(self._told(reported(each.table, partial(small.compare, each))))
            except TooLargeError:
                large.append(each)
        if large:
            executors = Executors(self._settings, self._source, self._spark.get(), point)
            reports += map(self._told, executors.compare(large, self._tell))
        return reports

    def _told(self, report: TableReport) -> TableReport:
        self._tell(events.TableCompared(report))
        return report
