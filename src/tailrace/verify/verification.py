"""Verification: is the lake, at one commit, the source at the same point?

The source is read under a snapshot at a position P. The lake is read, once the log has got there, at the cut that has
exactly the transactions which that snapshot shows: `Source.shown_up_to` says which, as it does for a copy that lands at
P. Writers and a running sync are not held up, and do not disturb: neither side changes any more.

    source  ──────────────── snapshot at P ── rows, on executors ──┐
    log     ── … t7 t8 ─────────────────▶ P                        ├─ checksums ── keys where they disagree
    lake    ── last cut ── + log up to t8 ── rows, on executors ───┘

The snapshot is held from P until both sides have been read: what was published and logged before keeps that short.
What a statement does to all rows at once is not in the log. So a table whose definition has moved since its copy, or
while it was read, is not judged: the connector copies or follows it first.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tailrace.errors import DefiniteError, ResyncError, TailraceError
from tailrace.lake.columns import lake_columns
from tailrace.lake.frames import quote
from tailrace.lake.home import LakeHome
from tailrace.model.exact import EXACT, LAKE_TYPE, lake_column
from tailrace.model.following import typed_like
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.read.cut import Cut, cut_as_it_lies
from tailrace.settings import VerifySettings
from tailrace.source.door import Definition, Problem, SnapshotPoint, Source, SourceTable
from tailrace.spark.chunks import ChunkPlan, read_chunks
from tailrace.spark.task_errors import errors_received, is_spark_gone
from tailrace.verify import events
from tailrace.verify._catching_up import CatchingUp
from tailrace.verify.comparison import DifferingKeys, Sides, checksums, differing_keys
from tailrace.verify.report import Report, TableReport, Verdict

PROGRESS_SECONDS = 0.25

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Judged:
    """A table that can be compared: as the source describes it under the snapshot."""

    found: SourceTable
    known: Definition | None
    """The definition that the lake's copy has followed to."""

    @property
    def table(self) -> TableId:
        return self.found.table


class Verification:
    """One run over some tables of a lake. One thread calls it. Changes nothing at the source, and the lake only where
    no sync runs: then it catches up first."""

    def __init__(self, settings: VerifySettings, source: Source, spark: SparkSession, tell: events.Tell) -> None:
        self._settings = settings
        self._home = LakeHome.find(settings.lake)
        record = self._home.source()
        self._source = source.claimed(record.claim) if record is not None else source
        self._spark = spark
        self._tell = tell
        self._catching_up = CatchingUp(self._home, source, spark, tell)
        self._opening = threading.Lock()

    def run(self) -> Report:
        """What was found. Raises what is not one table's error."""
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
        with self._source.snapshot(self._wait) as point:
            text = self._source.format(point.position)
            self._tell(events.PointTaken(text))
            judged, refused = self._describe(live)
            self._catching_up.log_up_to(point.position)
            cut = cut_as_it_lies(self._spark, self._settings.lake, point.position)
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

    def _describe(self, live: Mapping[TableId, TableRecord]) -> tuple[list[_Judged], list[TableReport]]:
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
                judged.append(_Judged(replace(found[table], schema=schema), record.definition))
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

    def _without_moved(self, judged: Sequence[_Judged], reports: Sequence[TableReport]) -> list[TableReport]:
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

    def _compare_all(self, judged: Sequence[_Judged], cut: Cut[Any], point: SnapshotPoint) -> list[TableReport]:
        with ThreadPoolExecutor(self._settings.tables_in_parallel, thread_name_prefix="verify") as pool:
            futures = {pool.submit(self._compare, each, cut, point): each.table for each in judged}
            try:
                return self._collect(futures)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                with suppress(Py4JError, ConnectionError):  # A Spark that is gone has no jobs left.
                    for table in futures.values():
                        self._spark.sparkContext.cancelJobGroup(_group(table))
                raise

    def _collect(self, futures: Mapping[Future[TableReport], TableId]) -> list[TableReport]:
        reports, pending = [], set(futures)
        while pending:
            done, pending = wait(pending, PROGRESS_SECONDS, FIRST_COMPLETED)
            for future in done:
                reports.append(future.result())
                self._tell(events.TableCompared(reports[-1]))
            for future in pending:
                if future.running():
                    self._tell_progress(futures[future])
        return reports

    def _tell_progress(self, table: TableId) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(_group(table))]
        found = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        stages = [stage for stage in found if stage]
        done = sum(stage.numCompletedTasks for stage in stages)
        self._tell(events.TableProgressed(table, done, sum(stage.numTasks for stage in stages)))

    def _compare(self, judged: _Judged, cut: Cut[Any], point: SnapshotPoint) -> TableReport:
        table = judged.table
        self._spark.sparkContext.setJobGroup(_group(table), f"verification of {table}")
        try:
            with self._opening:
                frame = cut.tables[str(table)]
            with errors_received():
                return self._compare_frame(judged, frame, point)
        except TailraceError as error:
            return TableReport.not_compared(table, error)
        except Exception as error:
            if is_spark_gone(error):
                raise
            logger.debug("comparing failed", extra={"table": str(table)}, exc_info=True)
            first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
            return TableReport.not_compared(table, DefiniteError(f"it cannot be read: {first_line[:300]}"))

    def _compare_frame(self, judged: _Judged, frame: DataFrame, point: SnapshotPoint) -> TableReport:
        lake = lake_columns(frame.schema)
        schema = typed_like(judged.found.schema, lake)
        exact = lake_column(schema.names).name
        differences = shape_differences([column for column in lake if column.name != exact], schema.columns)
        if differences and schema.definition != judged.known:
            raise DefiniteError("its columns have changed, and the lake has yet to follow", "run tailrace verify again")
        if differences:
            return TableReport(judged.table, Verdict.SHAPE_DIFFERS, reason="; ".join(differences))
        chunks = self._source.chunks(judged.found, self._settings.chunk_bytes_max)
        readers = max(1, self._settings.readers_max // self._settings.tables_in_parallel)
        plan = ChunkPlan(self._source, point, chunks, min(len(chunks), readers))
        rows = read_chunks(self._spark, plan, schema)
        sides = _sides(rows, frame, schema, exact)
        sums = checksums(sides)
        keys = differing_keys(sides, sums.differing, self._settings.keys_max) if sums.differing else DifferingKeys()
        verdict = Verdict.DIFFERENT if sums.differing else Verdict.EQUAL
        return TableReport(judged.table, verdict, sums.source_rows, sums.lake_rows, keys.counts, keys.shown)


def shape_differences(lake: Sequence[Column], source: Sequence[Column]) -> list[str]:
    """How the columns differ, for a person; their order does not count."""
    there, wanted = ({column.name: column.type for column in columns} for columns in (lake, source))
    lost = [f"column {name} is missing in the lake" for name in wanted if name not in there]
    added = [f"column {name} is in the lake only" for name in there if name not in wanted]
    typed = [
        f"column {name} is {there[name]} in the lake, not {type_}"
        for name, type_ in wanted.items()
        if there.get(name, type_) != type_
    ]
    return lost + added + typed


def _sides(rows: DataFrame, frame: DataFrame, schema: TableSchema, exact: str) -> Sides:
    """Both sides with what their columns cannot hold in a column `exact`, as entries: Spark compares no maps."""
    kept = sf.col(quote(exact)) if exact in frame.columns else sf.lit(None).cast(LAKE_TYPE)
    names = [sf.col(quote(name)) for name in schema.names]
    lake = frame.select(*names, sf.array_sort(sf.map_entries(kept)).alias(exact))
    source = rows.select(*names, sf.array_sort(sf.map_entries(sf.col(quote(EXACT)))).alias(exact))
    return Sides(source, lake, (*schema.names, exact), schema.key or schema.names)


def _group(table: TableId) -> str:
    return f"tailrace verify {table}"
