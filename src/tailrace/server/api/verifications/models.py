"""Verifications as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from tailrace.server.api.tables.models import Word
from tailrace.server.hints import in_properties
from tailrace.server.moments import moment
from tailrace.server.verifications.records import VerificationRecord, VerificationState
from tailrace.server.verifications.verifications import Underway
from tailrace.verify.report import RowDifference, TableVerdict

WORST_FIRST = [
    TableVerdict.DIFFERENT,
    TableVerdict.SHAPE_DIFFERS,
    TableVerdict.NOT_COMPARED,
    TableVerdict.EQUAL,
    TableVerdict.LEFT_OUT,
]


class VerificationRequest(BaseModel):
    """What is to be compared."""

    tables: list[Word] = Field([], description="Patterns such as `public.*`; none for all.", max_length=1000)
    keys_max: int = Field(20, ge=0, le=100, description="How many keys that differ are named for each table.")

    @classmethod
    def default(cls) -> VerificationRequest:
        return cls.model_validate({})


class VerificationProgress(BaseModel):
    """Of one that runs."""

    doing: str
    tasks_done: int
    tasks: int = Field(description="0 as long as that is not known.")


class VerificationOutcome(BaseModel):
    """What was found."""

    equal: bool = Field(description="Every table that the lake follows was compared and is equal.")
    position: str | None = Field(description="The point of the source at which both sides were compared.")
    transaction: int | None = Field(description="The last one of the log that the source shows there.")
    verdicts: dict[TableVerdict, int] = Field(description="How many tables have each verdict.")


class VerificationInfo(BaseModel):
    """One verification."""

    id: int
    state: VerificationState
    who: str
    began: datetime
    ended: datetime | None
    patterns: list[str] = Field(description="Of the tables that were asked for; none for all.")
    progress: VerificationProgress | None
    outcome: VerificationOutcome | None
    error: str | None
    hint: str | None

    @classmethod
    def fields_of(cls, record: VerificationRecord, underway: Underway | None) -> dict[str, Any]:
        is_underway = underway is not None and underway.record.id == record.id
        return {
            "id": record.id,
            "state": record.state,
            "who": record.who,
            "began": moment(record.began_us),
            "ended": None if record.ended_us is None else moment(record.ended_us),
            "patterns": list(record.tables),
            "progress": _progress(underway) if is_underway and underway is not None else None,
            "outcome": None if record.report is None else _outcome(dict(record.report)),
            "error": record.error,
            "hint": None if record.hint is None else in_properties(record.hint),
        }


class DifferingKey(BaseModel):
    """A key whose rows differ."""

    key: dict[str, str | None] = Field(description="Its columns, as text; long values are cut.")
    difference: RowDifference
    rows_in_source: int
    rows_in_lake: int
    columns: list[str] = Field(description="Those with other values, where both sides have the row.")


class ComparedTable(BaseModel):
    """What was found of one table."""

    table: str
    verdict: TableVerdict
    rows_in_source: int | None
    rows_in_lake: int | None
    differing: dict[RowDifference, int] = Field(description="How many keys, in each way.")
    keys: list[DifferingKey] = Field(description="The first of them.")
    reason: str | None
    hint: str | None


class VerificationDetail(VerificationInfo):
    """One verification, table by table, what is worst first."""

    tables: list[ComparedTable] = Field(description="While it runs, those that are compared already.")
    tables_total: int

    @classmethod
    def of(cls, record: VerificationRecord, underway: Underway | None, offset: int, limit: int) -> VerificationDetail:
        if record.report is not None:
            tables = list(record.report["tables"])
        else:
            tables = list(underway.judged.copy().values()) if underway and underway.record.id == record.id else []
        tables.sort(key=lambda each: (WORST_FIRST.index(each["verdict"]), each["table"]))
        shown = [ComparedTable.model_validate(each) for each in tables[offset : offset + limit]]
        for each in shown:
            each.hint = None if each.hint is None else in_properties(each.hint)
        return cls(**cls.fields_of(record, underway), tables=shown, tables_total=len(tables))


def _progress(underway: Underway) -> VerificationProgress:
    return VerificationProgress(
        doing=in_properties(underway.doing), tasks_done=underway.tasks_done, tasks=underway.tasks
    )


def _outcome(report: dict[str, Any]) -> VerificationOutcome:
    verdicts = [TableVerdict(each["verdict"]) for each in report["tables"]]
    counts = {each: verdicts.count(each) for each in WORST_FIRST if each in verdicts}
    return VerificationOutcome(
        equal=report["equal"], position=report["position"], transaction=report["transaction"], verdicts=counts
    )
