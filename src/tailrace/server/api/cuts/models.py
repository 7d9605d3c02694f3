"""Cuts of a lake, as the API shows them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, Field

from tailrace.model.cut import CutOutline, PublishedCut
from tailrace.server.moments import moment
from tailrace.source.door.codec import Codec


class CutInfo(BaseModel):
    """All tables as of one commit of the source."""

    seq: int
    position: str
    committed: datetime
    published: datetime
    tables: dict[str, int] | None = Field(description="The version of each table; null if they were left out.")


class HowCounted(StrEnum):
    """How the changes of tables were counted."""

    LOG = "log"
    """One by one, from the log's records."""
    INDEX = "index"
    """From the log's index alone, which counts a transaction's changes, not a table's."""
    GONE = "gone"
    """Not at all: the log does not have all of these transactions any more."""


class TableChanges(BaseModel):
    """What transactions have done to one table."""

    table: str
    transactions: int = Field(description="How many of the transactions changed it.")
    changes: int | None = Field(description="Null where the index alone cannot tell them from those of other tables.")
    inserts: int | None = Field(description="Null unless every change was counted.")
    updates: int | None
    deletes: int | None
    truncates: int | None


class ChangesInfo(BaseModel):
    """What the source committed between two cuts."""

    after: int = Field(description="The transaction before the first of these; 0 before the first of all.")
    upto: int
    transactions: int
    changes: int | None = Field(description="As they were logged, rolled back ones included; null where that is gone.")
    bytes: int | None = Field(description="What they weigh in the log.")
    tables: list[TableChanges] = Field(description="Those that were changed most, first.")
    counted: HowCounted
    note: str | None = Field(description="What is not known, and why.")


class CutTableInfo(BaseModel):
    """A table in a cut."""

    table: str
    version: int
    copy_number: int = Field(description="Which copy of the table it is: one that was copied again is another table.")
    seq: int = Field(description="The last transaction that is in it; 0 for one that has only its copy.")


class CutDetail(BaseModel):
    """One cut, and what has happened since the cut before it."""

    seq: int
    position: str
    committed: datetime
    published: datetime
    tables: list[CutTableInfo]
    before: int | None = Field(description="The transaction of the kept cut before it; null for the oldest.")
    since: ChangesInfo | None = Field(description="What came since then; null for the oldest.")


class HowDifferent(StrEnum):
    """How a table differs between two cuts."""

    CHANGED = "changed"
    """Its rows were changed by transactions."""
    COPIED = "copied again"
    """All its rows were copied again: it may differ anywhere."""
    CAME = "came"
    """It is in the newer cut only."""
    WENT = "went"
    """It is in the older cut only."""


class TableDifference(BaseModel):
    """A table that is not the same in two cuts."""

    table: str
    how: HowDifferent
    from_version: int | None
    to_version: int | None


class CutDifference(BaseModel):
    """How two cuts differ."""

    older: CutInfo
    newer: CutInfo
    tables: list[TableDifference] = Field(description="Those that differ.")
    same: int = Field(description="How many tables are the same in both.")
    between: ChangesInfo


def info_of(codec: type[Codec], cut: PublishedCut | CutOutline) -> CutInfo:
    tables = {name: each.version for name, each in cut.tables.items()} if isinstance(cut, PublishedCut) else None
    return CutInfo(
        seq=cut.seq,
        position=codec.format(cut.position),
        committed=moment(cut.position.time_us),
        published=moment(cut.published_us),
        tables=tables,
    )
