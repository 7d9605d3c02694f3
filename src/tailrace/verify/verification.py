"""Verification: is the lake, at one commit, the source at the same point?

The source is read under a snapshot at a position P. The lake is read, once the log has got there, at the cut that has
exactly the transactions which that snapshot shows: `Codec.shown_up_to` says which, as it does for a copy that lands at
P. Writers and a running sync are not held up, and do not disturb: neither side changes any more.

    source  ──────────────── snapshot at P ── rows ──┐
    log     ── … t7 t8 ─────────────────▶ P          ├─ compared ── keys where they differ
    lake    ── last cut ── + log up to t8 ── rows ───┘

Rows are read and compared in tasks of the engine: small tables several in a task, a large one by many. This process
holds none: what comes back are counts, and texts of keys that differ. Without a table to compare, no engine is started.

The snapshot is held from P until both sides have been read: what was published and logged before keeps that short.
What a statement does to all rows at once is not in the log. So a table whose definition has moved since its copy, or
while it was read, is not judged: the connector copies or follows it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import SparkSession

from tailrace.connector.engine import spark_engine
from tailrace.engine.door import Engine
from tailrace.errors import DefiniteError, ResyncError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.read.cut import seq_shown
from tailrace.settings import VerifySettings
from tailrace.source.door.rows import SnapshotPoint
from tailrace.source.door.source import Source
from tailrace.source.door.values import Definition, Problem, SourceTable
from tailrace.verify import events
from tailrace.verify.catch_up import LakeCatchUp
from tailrace.verify.judged_tables import Judged
from tailrace.verify.report import LakeReport, TableReport, TableVerdict
from tailrace.verify.sides import Sides
from tailrace.verify.table_comparison import Limits
from tailrace.verify.work import Work


class Verification:
    """One run over some tables of a lake. One thread calls it. Changes nothing at the source, and the lake only where
    no sync runs: then it catches up first."""

    def __init__(
        self, settings: VerifySettings, source: Source, engine: Engine | SparkSession | None, tell: events.Tell
    ) -> None:
        """Uses the `engine` that is given and leaves it as it is. Without one, Spark is started when it is needed, and
        stopped."""
        self._settings = settings
        self._home = LakeHome.find(settings.lake)
        record = self._home.source()
        self._source = source.claimed(record.claim) if record is not None else source
        self._tell = tell
        self._is_ours = engine is None or isinstance(engine, SparkSession)
        self._engine = self._spark(engine) if engine is None or isinstance(engine, SparkSession) else engine
        self._catching_up = LakeCatchUp(self._home, source, self._engine, tell, settings)

    def _spark(self, given: SparkSession | None) -> Engine:
        log_path = self._home.folder / "verify.log"
        return spark_engine(self._home, self._settings.spark, given, self._tell, log_path=log_path, brief=False)

    def run(self) -> LakeReport:
        """The report. Raises any error that is not one table's. Once."""
        with ExitStack() as stack:
            if self._is_ours:
                stack.enter_context(self._engine)
            return self._run()

    def _run(self) -> LakeReport:
        self._home.require_identity(self._source.identify())
        record = self._home.source()
        self._source.claim(record.claim if record is not None else None)
        if any(record.state is TableState.LIVE for record in self._chosen().values()):
            self._engine.start_soon()
        self._catching_up.to_the_present()
        chosen = self._chosen()
        live = {table: record for table, record in chosen.items() if record.state is TableState.LIVE}
        others = [TableReport.of_state(table, record) for table, record in chosen.items() if table not in live]
        if not live:
            return LakeReport(None, None, tuple(others))
        with self._source.snapshot(self._wait) as point:
            text = self._source.format(point.position)
            self._tell(events.PointTaken(text))
            found, judged, refused = self._describe(live)
            self._catching_up.log_up_to(point.position)
            seq = seq_shown(self._settings.lake, point.position)
            compared = self._work(point).compare(found, judged)
        reports = [*others, *refused, *self._without_moved(judged, compared)]
        return LakeReport(text, seq, tuple(sorted(reports, key=lambda report: report.table)))

    def _work(self, point: SnapshotPoint) -> Work:
        settings = self._settings
        limits = Limits(settings.sizes, settings.readers_max, settings.keys_max)
        return Work(self._engine, Sides.of(self._source, point, self._home), limits, self._tell)

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
            self._tell(events.WaitsFor(problem.message, problem.hint))

    def _describe(
        self, live: Mapping[TableId, TableRecord]
    ) -> tuple[dict[TableId, SourceTable], list[Judged], list[TableReport]]:
        """The tables as the source has them, those that can be compared, and why the others cannot."""
        found = self._source.describe(list(live))
        defined = self._define({table: record.definition for table, record in live.items()})
        judged, refused = [], []
        for table, record in live.items():
            try:
                schema = self._unmoved(table, record.definition, defined.get(table))
                problem = found[table].problem
                if problem is not None:
                    raise DefiniteError(problem.message, problem.hint)
                found[table] = replace(found[table], schema=schema)
                judged.append(Judged(schema, record.definition))
            except DefiniteError as error:
                refused.append(TableReport.not_compared(table, error))
        return found, judged, refused

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
        under = {each.table: each.found.definition for each in judged}
        doubted = [report.table for report in reports if report.verdict is TableVerdict.DIFFERENT]
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
