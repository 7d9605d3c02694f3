"""The tables of a connector's lake: what each is, copying one again, taking tables in and leaving them out."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from tailrace.connector.signals.sender import send_resync
from tailrace.connector.status import changes_behind
from tailrace.lake.home import LakeHome
from tailrace.lake.records.choices import Choice
from tailrace.model.table import TableId
from tailrace.model.table_pattern import TablePattern, exact_pattern
from tailrace.model.table_state import TableRecord, TableState
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.api.tables.models import (
    ChoiceAnswer,
    ChoiceRequest,
    GoodState,
    MeantTable,
    TableDetail,
    TableInfo,
    TablesQuery,
)
from tailrace.server.api.tables.shapes import shapes_of
from tailrace.server.errors import NotFoundError, RequestConflictError, RequestError
from tailrace.server.moments import moment
from tailrace.source.kinds import codec_of

router = APIRouter(prefix="/connectors/{name}/tables", tags=["tables"])
Table = Annotated[str, Path(description="A table's name: `namespace.name`, or `name` where only one has it.")]
DryRun = Annotated[bool, Query(description="Change nothing; say which tables are meant.")]

BEHIND_BYTES_MAX = 256 << 20
"""How much of the log is read to count the changes that tables lack."""
HEADERS: dict[str, Any] = {
    "Tailrace-States": {
        "description": "How many tables are in each state, of those that `search` leaves: `live=3, errored=1`.",
        "schema": {"type": "string"},
    },
    "Tailrace-Count": {"description": "How many tables fit `state` and `search`.", "schema": {"type": "integer"}},
    "Link": {"description": 'The next page, with `rel="next"`.', "schema": {"type": "string"}},
}
_choosing = threading.Lock()
"""Choices are read, then written."""


@router.get("", responses={200: {"headers": HEADERS}})
def list_tables(
    parts: GetParts, name: Name, request: Request, response: Response, asked: Annotated[TablesQuery, Query()]
) -> list[TableInfo]:
    """Every table of the lake by name, its state, and what is wrong with it. Headers count them and name the next
    page."""
    home = parts.supervisor.lake_home(name)
    text = asked.search.lower()
    all_ = {table: each for table, each in sorted(home.tables.load().items()) if text in str(table).lower()}
    fitting = {table: each for table, each in all_.items() if not asked.state or each.state in asked.state}
    counts = Counter(each.state for each in all_.values())
    response.headers["tailrace-states"] = ", ".join(f"{each}={counts[each]}" for each in TableState if counts[each])
    response.headers["tailrace-count"] = str(len(fitting))
    left = [table for table in fitting if asked.after is None or table > _table(asked.after)]
    page = {table: fitting[table] for table in left[: asked.page]}
    if len(page) < len(left):
        response.headers["link"] = _next_page(request, str(list(page)[-1]), len(page))
    has_lake = home.source() is not None
    counted = changes_behind(home, page, BEHIND_BYTES_MAX) if asked.behind and has_lake else {}
    known = parts.numbers.figures(home, list(page)) if asked.figures else {}
    return [TableInfo.of(table, each, counted.get(table), known.get(table)) for table, each in page.items()]


@router.get("/{table:path}")
def get_table(parts: GetParts, name: Name, table: Table) -> TableDetail:
    """One table, with the shapes that it has had."""
    home = parts.supervisor.lake(name)
    found, record = _find(home, table)
    newest, good = home.cuts.newest(), home.cuts.newest_with(str(found))
    named = newest.tables.get(str(found)) if newest else None
    source = home.source()
    shown = TableInfo.of(
        found,
        record,
        changes_behind(home, {found: record}, BEHIND_BYTES_MAX)[found],
        parts.numbers.figures(home, [found])[found],
    )
    return TableDetail(
        **shown.model_dump(),
        schemas=shapes_of(home, record),
        versions={} if named is None else {"version": named.version, "copy": named.copy, "seq": named.seq},
        last_good=None
        if good is None or source is None
        else GoodState(
            position=codec_of(source.kind).format(good.position),
            committed=moment(good.position.time_us),
            is_newest=named is not None,
        ),
    )


@router.post("/{table:path}/resync", status_code=202)
def resync_table(supervisor: GetSupervisor, name: Name, table: Table) -> Response:
    """Copy one table again beside the others, now or when the connector runs again."""
    home = supervisor.lake(name)
    found, record = _find(home, table)
    if record.state is TableState.REMOVED:
        raise RequestConflictError(
            f"{found} is left out of this lake", "take it in again, or choose it in table.include.list"
        )
    send_resync(home.lake, found)
    return Response(status_code=202)


@router.post("/include")
def include_tables(
    supervisor: GetSupervisor, name: Name, request: ChoiceRequest, dry_run: DryRun = False
) -> ChoiceAnswer:
    """Copy more tables, beside what runs and from now on. The last choice that names a table decides, whatever the
    configuration says; it holds for every later run."""
    return _choose(supervisor.lake(name), request, is_taken=True, dry_run=dry_run)


@router.post("/exclude")
def exclude_tables(
    supervisor: GetSupervisor, name: Name, request: ChoiceRequest, dry_run: DryRun = False
) -> ChoiceAnswer:
    """Leave tables out from now on. What has been copied stays on disk, and is no longer part of new cuts."""
    return _choose(supervisor.lake(name), request, is_taken=False, dry_run=dry_run)


def _choose(home: LakeHome, request: ChoiceRequest, *, is_taken: bool, dry_run: bool) -> ChoiceAnswer:
    patterns = list(dict.fromkeys([*(exact_pattern(str(_table(each))) for each in request.tables), *request.patterns]))
    if not patterns:
        raise RequestError("no table is named", 'send {"tables": ["public.orders"]}')
    for each in patterns:
        TablePattern.of(each)
    records = sorted(home.tables.load().items())
    meant = [(table, each) for table, each in records if any(table.matches(pattern) for pattern in patterns)]
    if not dry_run:
        if not home.folder.is_dir():
            message = f"the home of {home.lake} is not on this machine"
            raise RequestConflictError(message, "choose where its connector runs")
        with _choosing:
            home.choices.add(*(Choice(each, is_taken) for each in patterns))
    return ChoiceAnswer(
        tables=[MeantTable(table=str(table), state=each.state) for table, each in meant],
        patterns=patterns,
        consequence=_consequence(home, len(meant), is_taken=is_taken),
        applied=not dry_run,
    )


def _consequence(home: LakeHome, count: int, *, is_taken: bool) -> str:
    who = "the running connector" if home.holder() else "the next run"
    tables = {0: "what the source has of that name", 1: "1 table"}.get(count, f"{count:,} tables")
    if is_taken:
        return f"{tables} will be copied by {who}, beside the others"
    return f"{tables} will be left out by {who}: rows that were copied stay on disk, and new cuts do not have them"


def _next_page(request: Request, after: str, limit: int) -> str:
    kept = [(key, value) for key, value in request.query_params.multi_items() if key not in ("after", "limit")]
    asked = urlencode([*kept, ("limit", limit), ("after", after)], errors="replace")
    return f'<{request.url.path}?{asked}>; rel="next"'


def _table(text: str) -> TableId:
    try:
        return TableId.parse(text)
    except ValueError:
        raise RequestError(f"{text[:200]} is not a table's name", "it looks like public.orders") from None


def _find(home: LakeHome, name: str) -> tuple[TableId, TableRecord]:
    records = home.tables.load()
    known = [str(table) for table in records]
    if name not in known and not any(each.endswith(f".{name}") for each in known):
        raise NotFoundError(f"the lake has no table {name[:200]}")
    found = home.table_named(name)
    return found, records[found]
