"""What the routes of offsets take and give."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tailrace.connector.offsets.editor import Assessment, Direction
from tailrace.connector.offsets.takeover import Takeover
from tailrace.lake.records.offset_history import EditKind, EditState, OffsetEdit
from tailrace.offsets.difference import Change, Difference
from tailrace.offsets.layout import Fault
from tailrace.server.moments import moment

EXAMPLE = {"partition": {"server": "shop"}, "offset": {"lsn": 24023128}}


class OffsetEntry(BaseModel):
    """The position of one partition; null where there is none, or none shall be."""

    partition: dict[str, Any]
    offset: dict[str, Any] | None


class OffsetsInfo(BaseModel):
    """As KIP-875 has them."""

    offsets: list[OffsetEntry]


class Message(BaseModel):
    """What was done, and what follows from it."""

    message: str


class FaultInfo(BaseModel):
    """One thing that is wrong with offsets: where, and which rule it breaks."""

    field: str
    rule: str
    message: str

    @classmethod
    def of(cls, fault: Fault) -> FaultInfo:
        return cls(field=fault.field, rule=fault.rule, message=fault.message)


class DifferenceInfo(BaseModel):
    """One field that changes."""

    field: str
    change: Change
    before: Any
    after: Any

    @classmethod
    def of(cls, found: Difference) -> DifferenceInfo:
        return cls(field=found.field, change=found.change, before=found.before, after=found.after)


class AssessmentInfo(BaseModel):
    """What an edit would do."""

    version: int
    possible: bool
    faults: list[FaultInfo]
    direction: Direction
    differences: list[DifferenceInfo]
    transactions: int | None = Field(description="How many would be skipped, or sent again; null where unknown.")
    transactions_are_all: bool
    tables_to_copy: list[str]
    positions: dict[str, str]
    source: dict[str, str] | None = Field(description="What the source can still send; null where it was not asked.")
    consequence: str
    before: list[OffsetEntry]
    after: list[OffsetEntry]

    @classmethod
    def of(cls, found: Assessment) -> AssessmentInfo:
        return cls.model_validate(found.to_json())


class TakeoverInfo(BaseModel):
    """What taking over from another connector would do."""

    server: str
    offset: dict[str, Any]
    begins: str
    has_lake: bool = Field(description="Whether there is a lake; otherwise every table is copied, by windows.")
    tables_to_copy: list[str]
    notes: list[str]
    consequence: str

    @classmethod
    def of(cls, found: Takeover) -> TakeoverInfo:
        return cls(
            server=found.server,
            offset=dict(found.offset),
            begins=found.begins,
            has_lake=not found.is_new,
            tables_to_copy=list(found.copies),
            notes=list(found.notes),
            consequence=found.says,
        )


class EditInfo(BaseModel):
    """One edit of the offsets."""

    version: int
    kind: EditKind
    state: EditState
    who: str
    time: datetime
    before: list[OffsetEntry]
    after: list[OffsetEntry]
    undoes: int | None
    consequence: str

    @classmethod
    def of(cls, edit: OffsetEdit) -> EditInfo:
        return cls(
            version=edit.version,
            kind=edit.kind,
            state=edit.state,
            who=edit.who,
            time=moment(edit.time_us),
            before=[OffsetEntry.model_validate(each) for each in edit.before],
            after=[OffsetEntry.model_validate(each) for each in edit.after],
            undoes=edit.undoes,
            consequence=edit.says,
        )


class LayoutInfo(BaseModel):
    """A kind of connector whose offsets are known."""

    kind: str
    about: str
    single_partition: bool
    rules: list[str]


class Checked(BaseModel):
    """What is wrong with offsets; and, where nothing is, how the newest version of the connector would write them."""

    valid: bool
    faults: list[FaultInfo]
    upgraded: OffsetsInfo | None


class FieldEditRequest(BaseModel):
    """Fields of one partition to set and to remove."""

    model_config = ConfigDict(extra="forbid")

    offsets: list[Any] = Field(examples=[[EXAMPLE]])
    set: dict[str, Any] = {}
    remove: list[str] = []
    partition: dict[str, Any] | None = Field(None, description="Whose; may be left out where there is only one.")


class FieldEdited(BaseModel):
    """The offsets after that, and what has changed."""

    offsets: list[OffsetEntry]
    differences: list[DifferenceInfo]
