"""The log of a connector, as the API shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from tailrace.changes.shown import ShownChange
from tailrace.log.survey import LogHolder, SegmentSummary, Totals
from tailrace.server.moments import moment

TABLES_SHOWN_MAX = 20
"""Of a transaction in a list."""


class HolderInfo(BaseModel):
    """Who keeps a part of the log from being deleted."""

    name: str
    kind: Literal["consumer", "pin"] = Field(description="A pin is there for as long as one read takes.")
    seq: int = Field(description="It needs every transaction after this one.")
    transactions: int = Field(description="How many those are; negative for one that is ahead of the log.")
    bytes: int | None = Field(description="About what they weigh; None where the index cannot tell.")

    @classmethod
    def of(cls, holder: LogHolder) -> HolderInfo:
        return cls(
            name=holder.name,
            kind="pin" if holder.is_pin else "consumer",
            seq=holder.seq,
            transactions=holder.transactions,
            bytes=holder.bytes,
        )


class TotalsInfo(BaseModel):
    """All finished transactions of the log together."""

    changes: int
    tables: int
    first_commit: datetime | None
    last_commit: datetime | None

    @classmethod
    def of(cls, totals: Totals) -> TotalsInfo:
        first, last = (moment(each) if totals.transactions else None for each in (totals.first_us, totals.last_us))
        return cls(changes=totals.changes, tables=len(totals.relations), first_commit=first, last_commit=last)


class LogInfo(BaseModel):
    """What a log holds, and who needs it."""

    bytes: int = Field(description="On disk, with its index.")
    segments: int
    oldest: int = Field(description="The first transaction that is wholly there.")
    newest: int
    position: int = Field(description="Where the next record will lie.")
    source_position: str = Field(description="How far the source had got there, as it writes it.")
    written: datetime | None
    holders: list[HolderInfo]
    totals: TotalsInfo | None = Field(None, description="Where they were asked for.")


class SegmentInfo(BaseModel):
    """One file of the log."""

    name: str
    position: int = Field(description="Of its first record.")
    records: int
    after: int
    upto: int = Field(description="Transactions that committed in it: after < seq <= upto.")
    bytes: int = Field(description="With its index.")
    created: datetime
    is_written: bool = Field(description="It is the last one; records are added to it.")
    needed_by: list[str] = Field(description="Consumers and pins that have not got past its last transaction.")

    @classmethod
    def of(cls, segment: SegmentSummary, holders: list[LogHolder], *, is_written: bool) -> SegmentInfo:
        return cls(
            name=segment.path.name,
            position=segment.position,
            records=segment.position_stop - segment.position,
            after=segment.after,
            upto=segment.upto,
            bytes=segment.bytes + segment.index_bytes,
            created=moment(segment.created_us),
            is_written=is_written,
            needed_by=[each.name for each in holders if each.seq < segment.upto],
        )


class SegmentsInfo(BaseModel):
    """Segments, the newest first."""

    segments: list[SegmentInfo]
    next: int | None = Field(description="`before` for older ones; None where there are none.")


class TransactionInfo(BaseModel):
    """One finished transaction. It counts what was logged, before what was rolled back is taken off."""

    seq: int = Field(description="Its place in the order of commits.")
    position: str = Field(description="Of its commit, as the source writes it.")
    committed: datetime
    xid: int
    changes: int
    bytes: int
    tables: list[str] = Field(description=f"Those that it touched; in a list of transactions {TABLES_SHOWN_MAX}.")
    tables_total: int
    is_streamed: bool = Field(description="It was logged before it had committed.")
    is_published: bool = Field(description="A published cut of the lake shows it.")


class TransactionsInfo(BaseModel):
    """Transactions, the newest first."""

    transactions: list[TransactionInfo]
    oldest: int
    newest: int = Field(description="The log holds transactions from `oldest` to `newest`.")
    next: int | None = Field(description="`before` for older ones; None where there are none.")


class ChangeInfo(BaseModel):
    """One change of a transaction. Values are texts, cut at 1,000 characters; null is null."""

    position: int
    kind: str = Field(description="`insert`, `update`, `delete`, `truncate`, or `unsent` where the source failed.")
    table: str
    bytes: int
    before: dict[str, str | None] | None = Field(description="The old row or its key, as far as the source sent it.")
    after: dict[str, str | None] | None
    unchanged: list[str] = Field(description="Columns that the source left out because they had not changed.")
    cut_short: list[str] = Field(description="Columns of which not everything is shown.")
    problem: str | None = Field(description="Why values that were asked for are not there.")

    @classmethod
    def of(cls, change: ShownChange, table: str) -> ChangeInfo:
        return cls(
            position=change.position,
            kind=change.kind.name.lower(),
            table=table,
            bytes=change.bytes,
            before=None if change.before is None else dict(change.before),
            after=None if change.after is None else dict(change.after),
            unchanged=list(change.unchanged),
            cut_short=list(change.cut_short),
            problem=change.problem,
        )


class TransactionDetail(BaseModel):
    """One transaction and a page of its changes, in the order in which they were logged."""

    transaction: TransactionInfo
    changes: list[ChangeInfo]
    next: int | None = Field(description="`after` for further changes; None where there are none.")
