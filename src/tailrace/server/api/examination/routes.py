"""`tailrace doctor` over REST, for a database that no connector need have.

It is looked at in a thread of its own, for no longer than was asked."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError
from contextlib import ExitStack
from dataclasses import dataclass

from fastapi import APIRouter

from tailrace.configuration.reading import Configuration, normalised, read, redacted
from tailrace.configuration.revisions import with_stored_secrets
from tailrace.errors import DefiniteError, TailraceError
from tailrace.server.api.examination.models import CheckInfo, ExamineRequest, FoundTable, SourceExamination, said
from tailrace.server.api.parts import GetSupervisor
from tailrace.server.errors import RequestError, TimedOutError
from tailrace.server.sql.language.printing import printed
from tailrace.server.sql.language.statements import TableName
from tailrace.server.sql.properties import CLASS, statement_of
from tailrace.server.sql.tables import expression
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.source.door.source import Source
from tailrace.source.door.tables import Check
from tailrace.source.door.values import SourceTable
from tailrace.source.kinds import source_of, words_for

NAME, LAKE = "name", "lake.path"
UNNAMED = {NAME: "new", LAKE: "/lake"}
"""Neither is looked at; a configuration needs both."""

router = APIRouter(prefix="/source", tags=["source"])


@dataclass(frozen=True)
class DatabaseFindings:
    """What was found in a database."""

    checks: list[Check]
    tables: list[SourceTable]
    """All that there are, by name."""


@router.post(
    "/examine",
    responses={
        408: {"description": "The database has not answered in time."},
        429: {"description": "Too many requests wait for sources."},
    },
)
def examine_source(supervisor: GetSupervisor, request: ExamineRequest) -> SourceExamination:
    """What stands between a database and its copy, with the SQL that helps, and which tables there are. One that cannot
    be reached is a finding too. Nothing is changed or stored."""
    given = _given(supervisor, request)
    configuration = read(UNNAMED | given)
    source = source_of(configuration.dsn, **configuration.source_options)
    settings = configuration.settings
    found = _in_time(supervisor, source.watermarked(settings.watermarking), configuration, request.seconds_max)
    after = [each for each in found.tables if request.after is None or str(each.table) > request.after]
    return SourceExamination(
        ready=not any(each.ok is False and not each.leaves_out for each in found.checks),
        config=redacted(given),
        sql=f"{printed(statement_of(given.get(NAME, UNNAMED[NAME]), redacted(given)))};",
        checks=[CheckInfo.of(each) for each in found.checks],
        tables=[_table(each, configuration) for each in after[: request.limit]],
        tables_total=len(found.tables),
        has_more=len(after) > request.limit,
    )


def _given(host: ConnectorHost, request: ExamineRequest) -> dict[str, str]:
    """The properties, with stored secrets only where an edit of that connector could use them."""
    given = normalised(request.config)
    address = (request.address or "").strip()
    if address:
        words = words_for(address)
        clashes = sorted(words.address(address).keys() & given.keys())
        if clashes:
            raise RequestError(f"{', '.join(clashes)}: the address says that already", "leave one out")
        given = {CLASS: words.classes[-1]} | given | words.address(address)
    if request.connector is not None:
        given, problems = with_stored_secrets(given, host.view(request.connector).config)
        for key, problem in problems.items():
            raise RequestError(f"{key}: {problem}")
    return given


def _in_time(host: ConnectorHost, source: Source, configuration: Configuration, seconds_max: float) -> DatabaseFindings:
    """A database may take for ever: the thread that asks it then ends by itself, and counts until it does as one that
    waits for a source."""
    future: Future[DatabaseFindings] = Future()
    with ExitStack() as held:
        held.enter_context(host.asking_source())
        release = held.pop_all()

    def run() -> None:
        with release:
            try:
                future.set_result(_look(source, configuration))
            except BaseException as error:
                future.set_exception(error)

    threading.Thread(target=run, name="examination", daemon=True).start()
    try:
        return future.result(seconds_max)
    except NotInTimeError:
        message = f"the database has not answered within {seconds_max:g} s"
        raise TimedOutError(message, "see whether something is locked there, or ask with more seconds_max") from None


def _look(source: Source, configuration: Configuration) -> DatabaseFindings:
    settings = configuration.settings
    try:
        checks = source.examine(settings.tables, settings.exclude)
    except TailraceError as error:
        return DatabaseFindings([Check("connection", False, error.message, error.hint)], [])
    try:
        tables = source.tables((), ())
    except DefiniteError:
        # There is none to copy: a check says so.
        tables = []
    return DatabaseFindings([Check("connection", True, "reached"), *checks], tables)


def _table(found: SourceTable, configuration: Configuration) -> FoundTable:
    table, settings = found.table, configuration.settings
    row_bytes, problem = found.row_bytes_estimated, found.problem
    is_included = not settings.tables or any(table.matches(each) for each in settings.tables)
    return FoundTable(
        table=str(table),
        rows=found.rows_estimated,
        bytes=None if row_bytes is None else row_bytes * found.rows_estimated,
        key=list(found.schema.key),
        problem=None if problem is None else said(problem.message),
        hint=None if problem is None else said(problem.hint),
        is_chosen=is_included and not any(table.matches(each) for each in settings.exclude),
        expression=expression(TableName(table.namespace, table.name)),
    )
