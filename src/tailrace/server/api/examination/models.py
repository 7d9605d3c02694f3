"""What an examination of a database is asked, and what it answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from tailrace.hidden import masked
from tailrace.server.hints import in_properties
from tailrace.server.supervisor.store import NAME_CHARACTERS_MAX
from tailrace.source.door.tables import Check

TABLES_MAX = 10_000


class ExamineRequest(BaseModel):
    """A database that no connector need have: an address, properties of a connector, or both."""

    address: str | None = Field(
        None,
        description="A host, `host:port`, or a whole connection string.",
        examples=["postgresql://ann@127.0.0.1:5432/shop"],
        max_length=4096,
    )
    config: dict[str, Any] = Field({}, examples=[{"database.hostname": "127.0.0.1", "database.user": "ann"}])
    connector: str | None = Field(
        None,
        description="Whose stored secrets are meant where the configuration has `********`.",
        max_length=NAME_CHARACTERS_MAX,
    )
    limit: int = Field(1000, ge=1, le=TABLES_MAX, description="How many tables are listed.")
    after: str | None = Field(None, description="List only tables after this one.", max_length=1000)
    seconds_max: float = Field(30.0, gt=0, le=120)

    @model_validator(mode="after")
    def _something(self) -> ExamineRequest:
        if not self.config and not (self.address or "").strip():
            raise ValueError("nothing to examine: give an address or a config")
        return self


class CheckInfo(BaseModel):
    """One finding."""

    name: str
    ok: bool | None = Field(description="Null: worth knowing, and keeps nothing from being copied.")
    found: str
    hint: str | None = Field(description="What helps; SQL can be pasted.")
    is_sql: bool = Field(description="Whether the hint is SQL, as it is.")
    leaves_out: bool = Field(description="It concerns some tables, which are left out while the others are copied.")

    @classmethod
    def of(cls, check: Check) -> CheckInfo:
        hint = None if check.fix is None else said(check.fix)
        return cls(
            name=check.name,
            ok=check.ok,
            found=said(check.found),
            hint=hint,
            is_sql=hint is not None and hint.rstrip().endswith(";"),
            leaves_out=check.leaves_out,
        )


class FoundTable(BaseModel):
    """A table that could be copied."""

    table: str
    rows: int = Field(description="About, as the database estimates it.")
    bytes: int | None = Field(description="About; null where that is not known.")
    key: list[str] = Field(description="The columns that tell its rows apart; none where nothing does.")
    problem: str | None = Field(description="Why it cannot be copied exactly.")
    hint: str | None
    is_chosen: bool = Field(description="By the lists of tables in the configuration; all, where it has none.")
    expression: str = Field(description="What names it in `table.include.list`.")


class SourceExamination(BaseModel):
    """What stands between a database and its copy. Nothing was changed or stored."""

    ready: bool = Field(description="Whether a connector can start.")
    config: dict[str, str] = Field(description="The properties that were meant, without secrets.")
    sql: str = Field(description="The statement that makes a source with these properties.")
    checks: list[CheckInfo]
    tables: list[FoundTable]
    tables_total: int
    has_more: bool = Field(description="There are tables after the last one here.")


def said(text: str) -> str:
    """In the words of a configuration, and without what a reference led to, such as the name of the user."""
    return masked(in_properties(text))
