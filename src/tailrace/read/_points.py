"""Which commit is meant, and from which published cut it is read. The same for every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.source.door import Source

Point = SourcePosition | datetime


def parse_point(text: str, source: type[Source]) -> Point:
    """A source position (`0/16B3748`) or a time (ISO, UTC unless it says otherwise)."""
    try:
        return source.parse(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        example = source.format(SourcePosition(0x16B3748))
        raise DefiniteError(
            f"{text!r} is neither a position nor a time", f"write {example} or '2026-01-31 12:00:00'"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def wanted_seq(reader: LogReader, point: Point | None, source: type[Source]) -> int:
    """The last transaction that is meant; without a point, the newest."""
    if point is None:
        return reader.head.seq
    if isinstance(point, datetime):
        return reader.seq_at_time(int(point.timestamp() * 1_000_000))
    if point.ordinal > reader.head.ordinal:
        end = source.format(SourcePosition(reader.head.ordinal))
        raise DefiniteError(
            f"the log ends at {end}, before {source.format(point)}", "wait, or ask for an earlier point"
        )
    return reader.seq_at(point.ordinal)


def newest_base(home: LakeHome, seq: int | None, point: Point | None) -> PublishedCut | None:
    """The newest published cut that contains nothing after `seq` and is no newer than the point."""
    return home.cuts.newest(lambda cut: (seq is None or cut.seq <= seq) and _is_at_or_before(cut, point))


def _is_at_or_before(cut: PublishedCut, point: Point | None) -> bool:
    """A snapshot's cut contains transactions the log never saw: it is no older than itself."""
    if isinstance(point, datetime):
        return cut.position.time_us <= point.timestamp() * 1_000_000
    return point is None or cut.position <= point


def with_tables_that_left(home: LakeHome, base: PublishedCut) -> PublishedCut:
    """With the tables of earlier cuts at the same commit: one that left there had its last good state there."""
    tables = dict(base.tables)

    def collect(cut: PublishedCut) -> bool:
        if cut.seq == base.seq and cut.position <= base.position:
            for name, table in cut.tables.items():
                tables.setdefault(name, table)
        return cut.seq < base.seq

    home.cuts.newest(collect)
    return replace(base, tables=tables)
