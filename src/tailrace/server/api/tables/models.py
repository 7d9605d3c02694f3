"""Tables of a lake, as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.server.hints import in_properties
from tailrace.server.lakes.table_figures import TableFigures
from tailrace.server.moments import moment

PAGE_MAX = 10_000
FIGURES_MAX = 200
"""How many tables' figures one request may ask for: each costs a look into the table's own log."""

Word = Annotated[str, StringConstraints(max_length=1000)]
"""A name or a pattern. A longer one means nothing, and some take long to understand."""


class TablesQuery(BaseModel):
    """Which tables are listed, and how much of each."""

    behind: bool = Field(False, description="Count the changes that each table is behind; reads the log.")
    figures: bool = Field(False, description=f"Rows, bytes, last change; pages have at most {FIGURES_MAX} tables then.")
    state: list[TableState] = Field([], description="Only tables in one of these states.")
    search: str = Field("", max_length=500, description="Only names that contain this, in any case.")
    limit: int | None = Field(None, ge=1, le=PAGE_MAX, description="At most so many; all by default.")
    after: str | None = Field(None, max_length=1000, description="Only tables after this one, in the order of names.")

    @property
    def page(self) -> int | None:
        """How many tables an answer has at most."""
        return min(self.limit or FIGURES_MAX, FIGURES_MAX) if self.figures else self.limit


class TableInfo(BaseModel):
    """A table of the lake, and what becomes of it."""

    table: str
    state: TableState
    reason: str | None
    hint: str | None
    copies: int = Field(description="How many copies of its rows have been started.")
    changes_behind: int | None = Field(
        None, description="In the log and not published; null where it was not asked for, or cannot be counted soon."
    )
    rows: int | None = Field(None, description="About. Null where it was not asked for, or is not known.")
    bytes: int | None = Field(None, description="What its newest version takes in the lake.")
    last_changed: datetime | None = Field(
        None,
        description="When the source committed the last batch that changed the table; null if nothing has since its "
        "copy.",
    )

    @classmethod
    def of(
        cls, table: TableId, record: TableRecord, behind: int | None = None, figures: TableFigures | None = None
    ) -> TableInfo:
        return cls(
            table=str(table),
            state=record.state,
            reason=record.reason,
            hint=None if record.hint is None else in_properties(record.hint),
            copies=record.copy,
            changes_behind=behind,
            rows=figures.rows if figures else None,
            bytes=figures.bytes if figures else None,
            last_changed=moment(figures.changed_us) if figures and figures.changed_us else None,
        )


class ColumnInfo(BaseModel):
    name: str
    source_type: str
    type: str


class SchemaInfo(BaseModel):
    """A shape that the table has had, as long as the log knows of it."""

    position: int = Field(description="The place in the log from which on it counts.")
    commit: str | None = Field(
        description="The commit whose changes had it first, as the source writes positions. Null where the log begins "
        "after it."
    )
    committed: datetime | None = Field(description="When that was.")
    columns: list[ColumnInfo]
    key: list[str]


class GoodState(BaseModel):
    """The newest cut that has the table."""

    position: str = Field(description="To be asked for with `as_of`.")
    committed: datetime
    is_newest: bool = Field(description="Whether it is the newest cut of the lake.")


class TableDetail(TableInfo):
    schemas: list[SchemaInfo]
    versions: dict[str, int] = Field(description="The lake's version of it in the newest cut.")
    last_good: GoodState | None = Field(description="Null where no cut that is kept has it.")


class ChoiceRequest(BaseModel):
    """Which tables are meant: by name, by pattern, or both."""

    tables: list[Word] = Field([], max_length=5000, examples=[["public.orders"]], description="Whole names.")
    patterns: list[Word] = Field(
        [], max_length=100, examples=[["sales.*"]], description="As for `tailrace tables include`."
    )


class MeantTable(BaseModel):
    table: str
    state: TableState


class ChoiceAnswer(BaseModel):
    """What was chosen, or would be."""

    tables: list[MeantTable] = Field(description="Tables that the lake knows and that are meant.")
    patterns: list[str] = Field(description="What is stored, one for each name and pattern.")
    consequence: str
    applied: bool = Field(description="False for a dry run.")
