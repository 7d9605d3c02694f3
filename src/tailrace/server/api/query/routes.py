"""`POST /query`: one select over all tables of one cut, which whoever asked it can stop."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, field_validator

from tailrace.server.api.parts import GetParts
from tailrace.server.queries.answer import Query as Asked
from tailrace.server.queries.queries import SQL_CHARACTERS_MAX

ID_PATTERN = r"^[A-Za-z0-9._-]{1,100}$"

router = APIRouter(tags=["query"])


class QueryRequest(BaseModel):
    """SQL over one cut of a connector's lake."""

    connector: str = Field(examples=["shop"])
    sql: str = Field(examples=["select count(*) from orders"], max_length=SQL_CHARACTERS_MAX)
    engine: Literal["duckdb"] = Field("duckdb", description="Spark is not asked over REST.")
    published: bool = Field(False, description="The last published cut, not the newest commit.")
    as_of: str | None = Field(None, description="The state as of a position or a time, UTC.", max_length=100)
    rows_max: int = Field(1000, ge=1, le=100_000)
    seconds_max: float = Field(30.0, gt=0, le=300)
    id: str | None = Field(
        None, description="Yours, to stop it by: `DELETE /query/ID`.", pattern=ID_PATTERN, examples=["console-7"]
    )

    @field_validator("engine", mode="before")
    @classmethod
    def _no_spark(cls, engine: Any) -> Any:
        if engine == "spark":
            raise ValueError("Spark is not asked over REST\nhint: in a Spark of your own, tailrace.cut(spark, LAKE)")
        return engine


class QueryAnswer(BaseModel):
    columns: list[str]
    types: list[str] = Field(description="DuckDB's, one for each column.")
    rows: list[list[Any]]
    is_cut_short: bool = Field(description="There were more rows, or they were too large.")
    seq: int
    position: str
    committed: datetime
    elapsed_seconds: float = Field(description="What the query took, without the sending.")


@router.post(
    "/query",
    response_model=QueryAnswer,
    responses={429: {"description": "Too many queries at once."}, 408: {"description": "Too slow."}},
)
def run_query(parts: GetParts, request: QueryRequest) -> Response:
    """Ask one query of all tables of one cut. Reads only."""
    home = parts.supervisor.lake(request.connector)
    asked = Asked(request.sql, request.published, request.as_of, request.rows_max, request.seconds_max)
    return Response(parts.queries.ask(home, asked, request.id), media_type="application/json")


@router.delete("/query/{id}", status_code=204)
def stop_query(parts: GetParts, id: Annotated[str, Path(pattern=ID_PATTERN)]) -> Response:
    """Stop a query that runs, by the id that it was asked with. Whoever waits for it gets a 409."""
    parts.queries.stop(id)
    return Response(status_code=204)
