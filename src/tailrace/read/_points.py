"""Which commit is meant, and from which published cut it is read. The same for every engine."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.source.door.codec import Codec

Point = SourcePosition | datetime
VOUCH_SECONDS_MAX = 5.0
VOUCH_TURN_SECONDS = 0.05


def parse_point(text: str, codec: type[Codec]) -> Point:
    """A source position (`0/16B3748`) or a time (ISO, UTC unless it says otherwise)."""
    try:
        return codec.parse(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        example = codec.format(SourcePosition(0x16B3748))
        raise DefiniteError(
            f"{text!r} is neither a position nor a time", f"write {example} or '2026-01-31 12:00:00'"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def wanted_seq(home: LakeHome, reader: LogReader, point: Point | None, codec: type[Codec]) -> int:
    """The last transaction that is meant; without a point, the newest that a look at the source has vouched for."""
    if point is None:
        return _vouched_seq(home, reader)
    if isinstance(point, datetime):
        seq = reader.seq_at_time(int(point.timestamp() * 1_000_000))
    elif point.ordinal > reader.head.ordinal:
        end = codec.format(SourcePosition(reader.head.ordinal))
        raise DefiniteError(f"the log ends at {end}, before {codec.format(point)}", "wait, or ask for an earlier point")
    else:
        seq = reader.seq_at(point.ordinal)
    _require_no_gap(home, reader, seq, point, codec)
    _require_vouched(home, reader, seq, codec)
    return seq


def _require_no_gap(home: LakeHome, reader: LogReader, seq: int, point: Point, codec: type[Codec]) -> None:
    """A definite error for a point at which something may have been committed that was never logged."""
    if not reader.oldest_seq <= seq < reader.head.seq or not codec.is_gap(reader.position_of(seq + 1)):
        return
    before = reader.transactions(seq - 1, seq)
    last = "commit_time_us" if isinstance(point, datetime) else "end_ordinal"
    asked = int(point.timestamp() * 1_000_000) if isinstance(point, datetime) else point.ordinal
    if asked > before.column(last)[0].as_py():
        start, end = (codec.format(reader.position_of(each)) for each in (seq, seq + 1))
        repaired = next((cut for cut in home.cuts.all() if cut.seq > seq), None)
        later = codec.format(repaired.position) if repaired is not None else end
        message = f"what was committed between {start} and {end} is lost: no log has it"
        raise DefiniteError(message, f"ask for {start}, or for {later} or later")


def _vouched_seq(home: LakeHome, reader: LogReader) -> int:
    """A cut vouches for itself."""
    upto, newest = home.runs.vouched.load(), home.cuts.newest()
    reader.refresh()
    return max(reader.seq_at(upto), min(newest.seq, reader.head.seq) if newest is not None else 0)


def _require_vouched(home: LakeHome, reader: LogReader, seq: int, codec: type[Codec]) -> None:
    """A definite error for a commit that no look has been taken after. A running connector looks many times a second:
    it is given a moment."""
    until = time.monotonic() + VOUCH_SECONDS_MAX
    while (last := _vouched_seq(home, reader)) < seq:
        if any(cut.seq == seq for cut in home.cuts.all()):
            return
        if home.holder() is None or time.monotonic() > until:
            wanted, found = (codec.format(reader.position_of(each)) for each in (seq, last))
            message = f"the source's tables have been looked at up to {found} only, not yet up to {wanted}"
            raise DefiniteError(message, f"let tailrace sync run, or ask for {found} or earlier")
        time.sleep(VOUCH_TURN_SECONDS)


def newest_base(home: LakeHome, seq: int | None, point: Point | None) -> PublishedCut | None:
    """The newest published cut that contains nothing after `seq` and is no newer than the point."""
    return home.cuts.newest(lambda cut: (seq is None or cut.seq <= seq) and _is_at_or_before(cut, point))


def _is_at_or_before(cut: PublishedCut, point: Point | None) -> bool:
    """A snapshot's cut contains transactions the log never saw: it is no older than itself."""
    if isinstance(point, datetime):
        return cut.position.time_us <= point.timestamp() * 1_000_000
    return point is None or cut.position <= point


def require_published(home: LakeHome, base: PublishedCut, point: Point, codec: type[Codec]) -> None:
    """A definite error for a point at which no cut was published, where the lake is all that there is to read: what was
    committed since the cut before it is in the log."""
    if isinstance(point, datetime) or base.position.ordinal != point.ordinal:
        shown = codec.format(base.position)
        message = f"the home of {home.lake} is not on this machine: only published cuts can be read"
        raise DefiniteError(message, f"ask for {shown}, the last one before")


def with_tables_that_left(home: LakeHome, base: PublishedCut) -> PublishedCut:
    """With the tables of earlier cuts at the same point: one that left there had its last good state there."""
    tables = dict(base.tables)

    def collect(cut: PublishedCut) -> bool:
        if cut.seq == base.seq and cut.position == base.position:
            for name, table in cut.tables.items():
                tables.setdefault(name, table)
        return cut.seq < base.seq

    home.cuts.newest(collect)
    return replace(base, tables=tables)


def last_move(home: LakeHome, base: PublishedCut) -> int:
    """The ordinal after which every table of a cut has had the shape that it has there."""
    ended = (each for record in home.tables.load().values() for each in record.ended)
    return max((each.upto for each in ended if each.upto <= base.position.ordinal), default=-1)
