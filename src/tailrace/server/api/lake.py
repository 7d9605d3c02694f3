"""What a connector's lake holds: its cuts, and answers to queries over them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, field_validator

from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.errors import NotFoundError
from tailrace.server.moments import moment
from tailrace.server.queries.answer import Query as Asked
from tailrace.server.queries.queries import SQL_CHARACTERS_MAX
from tailrace.source.kinds import codec_of

router = APIRouter(tags=["lake"])


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
