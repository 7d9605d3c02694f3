"""A connector's log: what it takes, who needs it, and which transactions it holds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from tailrace.changes.shown import page_of, with_values, without_values
from tailrace.errors import DefiniteError
from tailrace.log import survey
from tailrace.model.position import SourcePosition
from tailrace.server.api.log.models import (
    ChangeInfo,
    HolderInfo,
    LogInfo,
    SegmentInfo,
    SegmentsInfo,
    TotalsInfo,
    TransactionDetail,
    TransactionsInfo,
)
from tailrace.server.api.log.transactions import LoggedTransactions
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.errors import NotFoundError
from tailrace.server.moments import microseconds, moment

CHANGES_WITH_VALUES_MAX = 100
SEQ_MAX = (1 << 63) - 1

router = APIRouter(prefix="/connectors/{name}/log", tags=["log"])
Seq = Annotated[int, Path(description="The transaction's place in the order of commits.", ge=1, le=SEQ_MAX)]
Table = Annotated[str | None, Query(description="Only what touched this table.", max_length=300)]


def _logged(supervisor: GetSupervisor, name: Name) -> LoggedTransactions:
    return LoggedTransactions(supervisor.lake(name))


Logged = Annotated[LoggedTransactions, Depends(_logged)]


@router.get("")
def get_log(
    parts: GetParts,
    logged: Logged,
    totals: Annotated[bool, Query(description="Sum up all transactions: reads the whole index.")] = False,
) -> LogInfo:
    """How large the log is, what it holds, and who needs it."""
    reader, head = logged.reader, logged.reader.head
    return LogInfo(
        bytes=parts.numbers.log_bytes(logged.home),
        segments=len(survey.positions_of_segments(reader)),
        oldest=logged.oldest,
        newest=logged.newest,
        position=head.position,
        source_position=logged.formatted(SourcePosition(head.ordinal)),
        written=moment(head.written_us) if head.written_us else None,
        holders=[HolderInfo.of(each) for each in survey.holders(reader)],
        totals=TotalsInfo.of(survey.totals(reader)) if totals else None,
    )


@router.get("/segments")
def list_segments(
    logged: Logged,
    before: Annotated[int | None, Query(description="Only those that begin before this.", ge=0, le=SEQ_MAX)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> SegmentsInfo:
    """The files of the log, the newest first, and who needs each."""
    reader = logged.reader
    holders, found = survey.holders(reader), survey.segments(reader, before, limit)
    newest = survey.positions_of_segments(reader)[-1:]
    shown = [SegmentInfo.of(each, holders, is_written=[each.position] == newest) for each in reversed(found)]
    oldest, _ = survey.positions(reader)
    return SegmentsInfo(segments=shown, next=found[0].position if found and found[0].position > oldest else None)


@router.get("/transactions")
def list_transactions(
    logged: Logged,
    table: Table = None,
    after: Annotated[int, Query(description="Only those after this one.", ge=0, le=SEQ_MAX)] = 0,
    before: Annotated[int | None, Query(description="Only those before this one.", ge=0, le=SEQ_MAX)] = None,
    until: Annotated[datetime | None, Query(description="Only those that had committed by then.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> TransactionsInfo:
    """Finished transactions that the log holds, the newest first."""
    if until is not None:
        last = logged.reader.seq_at_time(microseconds(until, "until")) + 1
        before = last if before is None else min(before, last)
    relations = None if table is None else logged.relations_of(table)
    found = logged.page(after, before, limit, relations)
    return TransactionsInfo(
        transactions=found.transactions, oldest=logged.oldest, newest=logged.newest, next=found.next
    )


@router.get("/transactions/{seq}")
def get_transaction(
    logged: Logged,
    seq: Seq,
    table: Table = None,
    after: Annotated[int, Query(description="Only changes after this position.", ge=-1, le=SEQ_MAX)] = -1,
    limit: Annotated[int, Query(ge=1, le=1000, description="With values, 100 at most are sent.")] = 100,
    values: Annotated[bool, Query(description="With the values of rows, as far as there is room.")] = False,
) -> TransactionDetail:
    """One transaction and its changes, without the values of rows unless they are asked for."""
    found = logged.one(seq)
    relations = None if table is None else logged.relations_of(table)
    limit = min(limit, CHANGES_WITH_VALUES_MAX) if values else limit
    try:
        page = page_of(logged.reader, seq, after, limit + 1, relations)
    except DefiniteError as error:
        # Retention has removed it meanwhile.
        raise NotFoundError(error.message, error.hint) from None
    shown = page.slice(0, limit)
    changes = with_values(logged.reader, shown, logged.decode) if values else without_values(shown)
    return TransactionDetail(
        transaction=found,
        changes=[ChangeInfo.of(each, logged.name_of(each.relation)) for each in changes],
        next=changes[-1].position if page.num_rows > limit else None,
    )
