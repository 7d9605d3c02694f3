"""The cuts of a lake: which are kept, what is in one, how two differ, and waiting for a commit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query

from tailrace.lake.home import LakeHome
from tailrace.model.cut import CutOutline, CutTable, PublishedCut
from tailrace.server.api.cuts.changes import changes_between
from tailrace.server.api.cuts.models import (
    CutDetail,
    CutDifference,
    CutInfo,
    CutTableInfo,
    HowDifferent,
    TableDifference,
    info_of,
)
from tailrace.server.api.cuts.waiting import AtLeast, Wait, cut_with
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.errors import NotFoundError, RequestError
from tailrace.server.moments import microseconds, moment
from tailrace.source.door.codec import Codec
from tailrace.source.kinds import codec_of

CUTS_MAX = 10_000
SEQ_MAX = (1 << 63) - 1
Bound = int | float
"""An ordinal; or a time, in seconds since 1970."""

router = APIRouter(tags=["cuts"])
From = Annotated[
    str | None, Query(alias="from", description="Not what committed before this position or time.", max_length=100)
]
To = Annotated[str | None, Query(description="Nothing that committed after this position or time.", max_length=100)]
Seq = Annotated[int, Path(description="The last transaction of the cut.", ge=0, le=SEQ_MAX)]
SeqFrom = Annotated[int, Query(alias="from", description="The last transaction of a kept cut.", ge=0, le=SEQ_MAX)]
SeqTo = Annotated[int, Query(description="The same of another one.", ge=0, le=SEQ_MAX)]


@router.get("/connectors/{name}/cuts")
def list_cuts(
    supervisor: GetSupervisor,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=CUTS_MAX)] = 100,
    begin: From = None,
    to: To = None,
    tables: Annotated[
        bool, Query(description="With each table's version; they are large where tables are many.")
    ] = True,
) -> list[CutInfo]:
    """The published cuts that are kept, newest first."""
    home = supervisor.lake(name)
    codec = _codec(home)
    first, last = _bound(begin, "from", codec), _bound(to, "to", codec)

    def is_wanted(cut: CutOutline) -> bool:
        return (first is None or _place(cut, first) >= first) and (last is None or _place(cut, last) <= last)

    if tables:
        return [info_of(codec, each) for each in reversed(home.cuts.last(limit, is_wanted))]
    found = [each for each in home.cuts.outlines() if is_wanted(each)]
    return [info_of(codec, each) for each in reversed(found[-limit:])]


@router.get(
    "/connectors/{name}/cuts/newest",
    responses={408: {"description": "Not reached in time."}, 429: {"description": "Too many wait or listen."}},
)
async def get_newest_cut(parts: GetParts, name: Name, at_least: AtLeast = None, wait: Wait = 0.0) -> CutInfo:
    """The newest published cut; with `at_least`, once everything that committed up to there is in it."""
    return await cut_with(parts, name, at_least, wait)


@router.get("/connectors/{name}/cuts/difference")
def compare_cuts(supervisor: GetSupervisor, name: Name, begin: SeqFrom, to: SeqTo) -> CutDifference:
    """Which tables differ between two kept cuts, and what the source did to them in between."""
    home = supervisor.lake(name)
    codec = _codec(home)
    older, newer = (_kept(home, seq)[1] for seq in sorted((begin, to)))
    tables = [
        found
        for each in sorted({*older.tables, *newer.tables})
        if (found := _difference(each, older.tables.get(each), newer.tables.get(each))) is not None
    ]
    return CutDifference(
        older=info_of(codec, older).model_copy(update={"tables": None}),
        newer=info_of(codec, newer).model_copy(update={"tables": None}),
        tables=tables,
        same=len({*older.tables, *newer.tables}) - len(tables),
        between=changes_between(home, older.seq, newer.seq),
    )


@router.get("/connectors/{name}/cuts/{seq}")
def get_cut(supervisor: GetSupervisor, name: Name, seq: Seq) -> CutDetail:
    """One cut that is kept, and what the source did since the cut before it."""
    home = supervisor.lake(name)
    before, cut = _kept(home, seq)
    return CutDetail(
        seq=cut.seq,
        position=_codec(home).format(cut.position),
        committed=moment(cut.position.time_us),
        published=moment(cut.published_us),
        tables=[
            CutTableInfo(table=table, version=each.version, copy_number=each.copy, seq=each.seq)
            for table, each in sorted(cut.tables.items())
        ],
        before=before,
        since=None if before is None else changes_between(home, before, cut.seq),
    )


def _codec(home: LakeHome) -> type[Codec]:
    record = home.source()
    assert record is not None
    return codec_of(record.kind)


def _bound(text: str | None, name: str, codec: type[Codec]) -> Bound | None:
    if text is None:
        return None
    try:
        return codec.parse(text).ordinal
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(f"{name} is neither a position nor a time", "write it as 2026-11-19T06:20:00Z") from None
    return microseconds(time, name) / 1e6


def _place(cut: CutOutline, like: Bound) -> Bound:
    """Where a cut is, to be compared with a bound."""
    return cut.position.ordinal if isinstance(like, int) else cut.position.time_us / 1e6


def _kept(home: LakeHome, seq: int) -> tuple[int | None, PublishedCut]:
    """The newest cut with this last transaction, and the transaction of the cut before it."""
    before: int | None = None

    def is_it(cut: CutOutline) -> bool:
        nonlocal before
        if cut.seq < seq:
            before = cut.seq
        return cut.seq == seq

    found = home.cuts.last(1, is_it)
    if not found:
        hint = "GET …/cuts lists those that are kept" if before is None else f"the one before it is of {before}"
        raise NotFoundError(f"no cut is kept whose last transaction is {seq}", hint)
    return before, found[0]


def _difference(table: str, older: CutTable | None, newer: CutTable | None) -> TableDifference | None:
    """None for a table that has the same rows in both; its version may be another, after upkeep."""
    if older is not None and newer is not None and (older.copy, older.seq) == (newer.copy, newer.seq):
        return None
    if newer is None:
        how = HowDifferent.WENT
    elif older is None:
        how = HowDifferent.CAME
    else:
        how = HowDifferent.CHANGED if older.copy == newer.copy else HowDifferent.COPIED
    versions = [None if each is None else each.version for each in (older, newer)]
    return TableDifference(table=table, how=how, from_version=versions[0], to_version=versions[1])
