"""`POST /sql`: statements about sources, carried out one after another."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from tailrace.errors import TailraceError
from tailrace.server.api.errors import status_of, text_of
from tailrace.server.api.models import ErrorMessage
from tailrace.server.api.parts import GetSupervisor
from tailrace.server.api.who import Who
from tailrace.server.sql.execution import Result, ResultRows, execute
from tailrace.server.sql.hosted_sources import HostedSources
from tailrace.server.sql.language.problems import SqlError

router = APIRouter(tags=["sql"])


class SqlRequest(BaseModel):
    """What is asked."""

    sql: str = Field(description="Statements, separated by `;`.", examples=["SHOW SOURCES"])


class SqlResult(BaseModel):
    """What one statement came to: rows, or a message."""

    columns: list[str] | None = None
    rows: list[list[str | None]] | None = None
    message: str | None = None
    notes: list[str] | None = Field(default=None, description="Such as: properties that mean nothing here.")


class SqlResults(BaseModel):
    """One result a statement."""

    results: list[SqlResult]


class SqlErrorMessage(ErrorMessage):
    """The first error. What was done before it stays done."""

    hint: str | None = None
    line: int | None = Field(default=None, description="Where it is in the text, from 1.")
    column: int | None = None
    expected: list[str] | None = Field(default=None, description="What could have stood there instead.")
    excerpt: str | None = Field(default=None, description="That line of the text, and a caret below the place.")
    results: list[SqlResult] = Field([], description="Of the statements before it; left out for what is no request.")


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": SqlErrorMessage, "description": "A statement cannot be understood, or makes no sense."},
    404: {"model": SqlErrorMessage, "description": "There is no such source."},
    409: {
        "model": SqlErrorMessage,
        "description": "A source has this name, this lake or this part of the database already.",
    },
    503: {"model": SqlErrorMessage, "description": "It may be done when it is asked again."},
}


@router.post("/sql", response_model=SqlResults, response_model_exclude_none=True, responses=_ERRORS)
def run_sql(supervisor: GetSupervisor, request: SqlRequest, who: Who) -> SqlResults | JSONResponse:
    """Create, alter, drop and show sources. All of the text is read before the first statement is carried out."""
    results: list[SqlResult] = []
    try:
        for result in execute(request.sql, HostedSources(supervisor, who)):
            results.append(_body(result))
    except TailraceError as error:
        body = _error(error, results)
        return JSONResponse(body.model_dump(exclude_none=True), body.error_code)
    return SqlResults(results=results)


def _body(result: Result) -> SqlResult:
    if isinstance(result, ResultRows):
        return SqlResult(columns=list(result.columns), rows=[list(row) for row in result.rows])
    return SqlResult(message=result.text, notes=list(result.notes) or None)


def _error(error: TailraceError, results: list[SqlResult]) -> SqlErrorMessage:
    if not isinstance(error, SqlError):
        return SqlErrorMessage(error_code=status_of(error), message=text_of(error), hint=error.hint, results=results)
    return SqlErrorMessage(
        error_code=error.status,
        message=text_of(error),
        hint=error.hint,
        line=error.place.line,
        column=error.place.column,
        expected=list(error.expected) or None,
        excerpt=error.excerpt,
        results=results,
    )
