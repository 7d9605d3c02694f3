"""What a connector's lake holds: its tables, its cuts, and answers to queries over them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field, field_validator

from tailrace.connector.signals.sender import send_resync
from tailrace.connector.status import lake_status
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.hints import in_properties
from tailrace.server.moments import moment
from tailrace.server.queries.answer import Query as Asked
from tailrace.server.queries.queries import SQL_CHARACTERS_MAX
from tailrace.source.kinds import codec_of

router = APIRouter(tags=["lake"])
Table = Annotated[str, Path(description="A table's name: `namespace.name`, or `name` where only one has it.")]


class TableInfo(BaseModel):
    """A table of the lake, and what becomes of it."""

    table: str
    state: TableState
    reason: str | None
    hint: str | None
    copies: int = Field(description="How many copies of its rows have been started.")
    changes_behind: int | None = Field(None, description="In the log and not published; where it was asked for.")


class ColumnInfo(BaseModel):
    name: str
    source_type: str
    type: str


class SchemaInfo(BaseModel):
    """A shape that the table has had, as long as the log knows of it."""

    position: int = Field(description="The place in the log from which on it counts.")
    columns: list[ColumnInfo]
    key: list[str]


class TableDetail(TableInfo):
    schemas: list[SchemaInfo]
    versions: dict[str, int] = Field(description="The lake's version of it in the newest cut.")


class CutInfo(BaseModel):
    """All tables as of one commit of the source."""

    seq: int
    position: str
    committed: datetime
    published: datetime
    tables: dict[str, int] = Field(description="The version of each table.")


class QueryRequest(BaseModel):
    """SQL over one cut of a connector's lake."""

    connector: str = Field(examples=["shop"])
    sql: str = Field(examples=["select count(*) from orders"], max_length=SQL_CHARACTERS_MAX)
    engine: Literal["duckdb"] = Field("duckdb", description="Spark is not asked over REST.")
    published: bool = Field(False, description="The last published cut, not the newest commit.")
    as_of: str | None = Field(None, description="The state as of a position or a time, UTC.", max_length=100)
    rows_max: int = Field(1000, ge=1, le=100_000)
    seconds_max: float = Field(30.0, gt=0, le=300)

    @field_validator("engine", mode="before")
    @classmethod
    def _no_spark(cls, engine: Any) -> Any:
        if engine == "spark":
            raise ValueError("Spark is not asked over REST\nhint: in a Spark of your own, tailrace.cut(spark, LAKE)")
        return engine


class QueryAnswer(BaseModel):
    columns: list[str]
    rows: list[list[Any]]
    is_cut_short: bool = Field(description="There were more rows, or they were too large.")
    seq: int
    position: str
    committed: datetime


@router.get("/connectors/{name}/tables")
def list_tables(
    supervisor: GetSupervisor,
    name: Name,
    behind: Annotated[bool, Query(description="Count the changes that each table is behind; reads the log.")] = False,
) -> list[TableInfo]:
    """Every table of the lake, its state, and what is wrong with it."""
    home = supervisor.lake_home(name)
    if behind and home.source() is not None:
        return [_table(each.table, each.record, each.changes_behind) for each in lake_status(home).tables]
    return [_table(table, record) for table, record in sorted(home.tables.load().items())]


@router.get("/connectors/{name}/tables/{table:path}")
def get_table(supervisor: GetSupervisor, name: Name, table: Table) -> TableDetail:
    """One table, with the shapes that it has had."""
    home, found = _find(supervisor.lake(name), table)
    record, cut = home.tables.load()[found], home.cuts.newest()
    named = cut.tables.get(str(found)) if cut else None
    return TableDetail(
        **_table(found, record).model_dump(),
        schemas=_schemas(home, record),
        versions={} if named is None else {"version": named.version, "copy": named.copy, "seq": named.seq},
    )


@router.post("/connectors/{name}/tables/{table:path}/resync", status_code=202)
def resync_table(supervisor: GetSupervisor, name: Name, table: Table) -> Response:
    """Copy one table again beside the others, now or when the connector runs again."""
    home, found = _find(supervisor.lake(name), table)
    if home.tables.load()[found].state is TableState.REMOVED:
        raise RequestConflictError(f"{found} is left out of this lake", "choose it in table.include.list")
    send_resync(home.lake, found)
    return Response(status_code=202)


@router.get("/connectors/{name}/cuts")
def list_cuts(
    supervisor: GetSupervisor, name: Name, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> list[CutInfo]:
    """The published cuts that are kept, newest first."""
    home = supervisor.lake(name)
    return [_cut(home, each) for each in home.cuts.all()[-limit:][::-1]]


@router.get("/connectors/{name}/cuts/newest")
def get_newest_cut(supervisor: GetSupervisor, name: Name) -> CutInfo:
    """The newest published cut."""
    home = supervisor.lake(name)
    newest = home.cuts.newest()
    if newest is None:
        raise NotFoundError("nothing has been published yet", "wait until the snapshot is done")
    return _cut(home, newest)


@router.post(
    "/query",
    response_model=QueryAnswer,
    responses={429: {"description": "Too many queries at once."}, 408: {"description": "Too slow."}},
)
def run_query(parts: GetParts, request: QueryRequest) -> Response:
    """Ask one query of all tables of one cut. Reads only."""
    home = parts.supervisor.lake(request.connector)
    asked = Asked(request.sql, request.published, request.as_of, request.rows_max, request.seconds_max)
    return Response(parts.queries.ask(home, asked), media_type="application/json")


def _find(home: LakeHome, name: str) -> tuple[LakeHome, TableId]:
    known = [str(table) for table in home.tables.load()]
    if name not in known and not any(each.endswith(f".{name}") for each in known):
        raise NotFoundError(f"the lake has no table {name[:200]}")
    return home, home.table_named(name)


def _table(table: TableId, record: TableRecord, changes_behind: int | None = None) -> TableInfo:
    return TableInfo(
        table=str(table),
        state=record.state,
        reason=record.reason,
        hint=None if record.hint is None else in_properties(record.hint),
        copies=record.copy,
        changes_behind=changes_behind,
    )


def _schemas(home: LakeHome, record: TableRecord) -> list[SchemaInfo]:
    if not record.relation or not home.has_log:
        return []
    found: list[SchemaInfo] = []
    for each in LogReader(home.log).schemas(record.relation):
        shown = _schema(each.position, each.schema)
        if not found or (found[-1].columns, found[-1].key) != (shown.columns, shown.key):
            found.append(shown)
    return found


def _schema(position: int, schema: TableSchema) -> SchemaInfo:
    columns = [ColumnInfo(name=each.name, source_type=each.source_type, type=each.type) for each in schema.columns]
    return SchemaInfo(position=position, columns=columns, key=list(schema.key))


def _cut(home: LakeHome, cut: PublishedCut) -> CutInfo:
    record = home.source()
    assert record is not None
    return CutInfo(
        seq=cut.seq,
        position=codec_of(record.kind).format(cut.position),
        committed=moment(cut.position.time_us),
        published=moment(cut.published_us),
        tables={name: each.version for name, each in cut.tables.items()},
    )
