"""Copies of tables, as the API shows them and is asked for them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from tailrace.connector.signals.plan import CopyPlan, SourceView, TablePlan
from tailrace.connector.signals.runs import CopyRun, TableRun
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import ID_CHARACTERS_MAX, SignalState
from tailrace.model.table_state import TableState
from tailrace.server.api.progress.models import CopyProgress
from tailrace.server.api.signals import SignalInfo
from tailrace.server.moments import moment
from tailrace.source.door.codec import Codec

RUN_TABLES_MAX = 100


class Condition(BaseModel):
    """Which rows of a table are to be copied."""

    model_config = ConfigDict(populate_by_name=True)

    data_collection: str = Field(alias="data-collection")
    filter: str


class SnapshotRequest(BaseModel):
    """Which tables to copy again."""

    model_config = ConfigDict(populate_by_name=True)

    id: str | None = Field(None, max_length=ID_CHARACTERS_MAX)
    tables: list[str] = Field(
        alias="data-collections", description="Whole names, or regular expressions for whole names.", max_length=5000
    )
    type: str | None = Field(None, description="`incremental`, the default, or `blocking`.", max_length=50)
    conditions: list[Condition] | None = Field(None, alias="additional-conditions")
    surrogate_key: str | None = Field(None, alias="surrogate-key")


class TablesRequest(BaseModel):
    """Which tables are meant; all of them by default."""

    model_config = ConfigDict(populate_by_name=True)

    tables: list[str] = Field([], alias="data-collections", max_length=5000)
    type: str | None = Field(None, description="`incremental`, the default, or `blocking`.", max_length=50)


class NotificationInfo(BaseModel):
    """A step in the life of a copy."""

    step: CopyStep
    time: datetime
    signal: str | None
    table: str | None
    rows: int
    chunks: int
    text: str | None
    held_seconds: float = Field(description="Of a table: how long its last window held a state of the source.")
    held_seconds_max: float = Field(description="How long the longest of its windows did.")

    @classmethod
    def of(cls, each: Notification) -> NotificationInfo:
        return cls(
            step=each.step,
            time=moment(each.time_us),
            signal=each.signal,
            table=each.table,
            rows=each.rows,
            chunks=each.chunks,
            text=each.text,
            held_seconds=each.held_seconds,
            held_seconds_max=each.held_seconds_max,
        )


class SnapshotsInfo(BaseModel):
    """All copies: those under way, those that were asked for, and what is paused."""

    copying: list[str] = Field(description="Tables that are being copied or wait for it.")
    paused: list[str] = Field(description="Tables whose copy is paused; `*` for all.")
    partial: list[str] = Field(description="Of these, those of which only some rows are read, by a condition.")
    progress: list[CopyProgress]
    asked: list[SignalInfo]
    notifications: list[NotificationInfo] = Field(description="The last hundred.")


class PlannedTable(BaseModel):
    """A table that would be copied."""

    table: str
    state: TableState
    rows_estimated: int | None = Field(description="The source's estimate of all its rows; null where it was not told.")
    condition: str | None = Field(description="Only rows for which this is true; null: all rows.")
    sql: str = Field(description="The query that reading its rows comes to.")
    surrogate_key: str | None
    problem: str | None = Field(description="Why its rows cannot be read so: the signal would be rejected.")
    notes: list[str] = Field(description="What a person may not expect.")

    @classmethod
    def of(cls, each: TablePlan, view: SourceView, codec: type[Codec]) -> PlannedTable:
        return cls(
            table=str(each.table),
            state=each.state,
            rows_estimated=view.rows.get(each.table),
            condition=each.condition,
            sql=codec.rows_query(each.table, each.condition),
            surrogate_key=each.surrogate_key,
            problem=view.problems.get(each.table),
            notes=list(each.notes),
        )


class PlanInfo(BaseModel):
    """What a copy would be, found without asking for it."""

    possible: bool = Field(description="Whether the signal would be carried out, as far as that can be told now.")
    problem: str | None = Field(description="Why it would be rejected.")
    tables: list[PlannedTable] = Field(description="The tables that are meant now.")
    rows_estimated: int | None = Field(description="Of all of them; null where one is not known.")
    missing: str | None = Field(description="Names and expressions that match nothing; the others are copied.")
    source_error: str | None = Field(description="Why the source could not be asked; null where it was.")

    @classmethod
    def of(cls, plan: CopyPlan, view: SourceView, codec: type[Codec]) -> PlanInfo:
        tables = [PlannedTable.of(each, view, codec) for each in plan.tables]
        problems = [f"{each.table}: {each.problem}" for each in tables if each.problem]
        if not tables:
            problems = [f"nothing would be copied: {plan.missing or 'the lake follows no table'}"]
        estimates = [each.rows_estimated for each in tables]
        return cls(
            possible=not problems,
            problem="; ".join(problems) or None,
            tables=tables,
            rows_estimated=None if None in estimates else sum(filter(None, estimates)),
            missing=plan.missing,
            source_error=view.error,
        )


class RunTable(BaseModel):
    """One table of a run."""

    table: str
    step: CopyStep = Field(description="The newest that was told of it.")
    rows: int | None = Field(description="Null where the copy counts none: one that is made at once.")
    chunks: int
    held_seconds_max: float
    text: str | None

    @classmethod
    def of(cls, each: TableRun) -> RunTable:
        return cls(
            table=each.table,
            step=each.last.step,
            rows=each.rows,
            chunks=each.last.chunks,
            held_seconds_max=each.last.held_seconds_max,
            text=each.last.text,
        )


class RunInfo(BaseModel):
    """A copy that was made, or is: of one signal, or all that no signal asked for and that were under way together."""

    signal: str | None = Field(description="The id of the signal; null where no signal asked for it.")
    channel: str | None = Field(description="How the signal came: request, file or table.")
    type: str | None = Field(description="`incremental` or `blocking`; null where that is not known.")
    state: SignalState
    began: datetime
    ended: datetime | None
    seconds: float | None = Field(description="Null while it has not ended.")
    rows: int | None = Field(description="In all; null where none are counted.")
    result: str | None
    tables: list[RunTable] = Field(description=f"At most {RUN_TABLES_MAX}, those that failed first.")
    tables_total: int

    @classmethod
    def of(cls, run: CopyRun) -> RunInfo:
        tables = sorted(run.tables.values(), key=lambda each: (each.last.step is not CopyStep.ABORTED, each.table))
        return cls(
            signal=run.id,
            channel=run.signal.channel if run.signal is not None else None,
            type=run.kind,
            state=run.state,
            began=moment(run.began_us),
            ended=None if run.ended_us is None else moment(run.ended_us),
            seconds=None if run.ended_us is None else round((run.ended_us - run.began_us) / 1e6, 3),
            rows=run.rows,
            result=run.result,
            tables=[RunTable.of(each) for each in tables[:RUN_TABLES_MAX]],
            tables_total=len(tables),
        )
