"""Survey: what a log holds, for people. Reads headers and indexes, and segments only where records are shown."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import INDEX_SUFFIXES, index_path, segment_path, segment_positions
from tailrace.log.files.segment import SegmentReader
from tailrace.log.index.index import list_owners
from tailrace.log.index.transactions import TransactionIndex, steady
from tailrace.log.playback.ranges import load_frames
from tailrace.log.reader import LogReader
from tailrace.log.schema_versions import SchemaVersion
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition


@dataclass(frozen=True)
class SegmentSummary:
    """One segment."""

    path: Path
    position: int
    position_stop: int
    after: int
    upto: int
    """Transactions that committed in it: after < seq <= upto."""
    bytes: int
    index_bytes: int
    created_us: int


@dataclass(frozen=True)
class LogHolder:
    """A consumer or a pin, and what it keeps from being deleted."""

    name: str
    is_pin: bool
    seq: int
    transactions: int
    """Between it and the head; negative for one that is ahead of the log."""
    bytes: int | None
    """About what those weigh that are in the log; None when the index cannot say."""
    gone: int = 0
    """How many of those are not in the log any more."""


@dataclass
class Totals:
    """The finished transactions that are wholly in the log, summed up."""

    transactions: int = 0
    changes: int = 0
    first_us: int = 0
    last_us: int = 0
    relations: set[int] = field(default_factory=set)


def segments(reader: LogReader, before: int | None = None, limit: int | None = None) -> list[SegmentSummary]:
    """All segments, from the oldest; or the last ones whose first position is below `before`."""
    return steady(TransactionIndex(reader.path), lambda index: _segments(reader, index, before, limit))[1]


def _segments(
    reader: LogReader, index: TransactionIndex, before: int | None, limit: int | None
) -> list[SegmentSummary]:
    found = []
    upto = len(index.positions) if before is None else bisect.bisect_left(index.positions, before)
    for number in range(0 if limit is None else max(0, upto - limit), upto):
        position = index.positions[number]
        header = index.header(position)
        following = index.positions[number + 1] if number + 1 < len(index.positions) else None
        path = segment_path(reader.path, position)
        found.append(
            SegmentSummary(
                path=path,
                position=position,
                position_stop=max(position, reader.head.position) if following is None else following,
                after=header.base.seq,
                upto=max(header.base.seq, reader.head.seq) if following is None else index.header(following).base.seq,
                bytes=_size(path),
                index_bytes=sum(_size(index_path(reader.path, position, suffix)) for suffix in INDEX_SUFFIXES),
                created_us=header.created_us,
            )
        )
    return found


def _size(path: Path) -> int:
    """0 for a file that is not there, or not any more."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def holders(reader: LogReader) -> list[LogHolder]:
    """The consumers, then the pins, each by name."""
    found = Consumers(reader.path)
    return [
        *(_holder(reader, name, seq, is_pin=False) for name, seq in found.acknowledged().items()),
        *(_holder(reader, name, seq, is_pin=True) for name, seq in found.pins().items()),
    ]


def _holder(reader: LogReader, name: str, seq: int, *, is_pin: bool) -> LogHolder:
    head = reader.head.seq
    try:
        oldest = reader.oldest_seq
        size = reader.bytes_between(min(max(seq, oldest - 1), head), head)
    except DefiniteError:
        return LogHolder(name, is_pin, seq, head - seq, None)
    return LogHolder(name, is_pin, seq, head - seq, size, gone=max(0, min(oldest - 1, head) - max(seq, 0)))


def totals(reader: LogReader) -> Totals:
    """Sums over all finished transactions, a portion at a time."""
    found = Totals()
    first, head = reader.oldest_seq, reader.head.seq
    for rows, lists in reader.portions(first - 1, head):
        found.transactions += len(rows)
        found.changes += int(rows["changes"].sum())
        found.relations.update(np.unique(lists[~list_owners(rows)[1]]).tolist())
        found.first_us = found.first_us or int(rows["commit_time_us"][0])
        found.last_us = int(rows["commit_time_us"][-1])
    return found


def table_names(reader: LogReader) -> dict[int, str]:
    """What each table is called in the newest schema that the log has of it."""
    return {version.relation: str(version.schema.table) for version in reader.schemas()}


def records(path: Path, start: int, stop: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Records with start <= position < stop as they were logged, finished or not, each with its position."""
    index = TransactionIndex(path)
    for position in index.positions:
        if index.position_stop(position) <= start or position >= stop:
            continue
        frames = load_frames(path, position, reaching=min(stop, index.position_stop(position)))
        wanted = frames[(frames["position"] < stop) & (frames["position"] + frames["rows"] > start)]
        with SegmentReader(segment_path(path, position)) as segment:
            for offset, length in zip(wanted["offset"].tolist(), wanted["bytes"].tolist(), strict=True):
                for frame in segment.frames(offset, offset + length):
                    yield from _rows(frame.whole(), frame.head.position, start, stop)


def _rows(batch: pa.RecordBatch, position: int, start: int, stop: int) -> Iterator[tuple[int, dict[str, object]]]:
    low, high = max(0, start - position), min(batch.num_rows, stop - position)
    yield from enumerate(batch.slice(low, high - low).to_pylist(), position + low)


def kind_name(kind: int) -> str:
    try:
        return Kind(kind).name
    except ValueError:
        return str(kind)


def positions_of_segments(reader: LogReader) -> list[int]:
    """Where each segment begins, from the oldest."""
    return segment_positions(reader.path)


def positions(reader: LogReader) -> tuple[int, int]:
    """The log holds records at start <= position < stop."""
    oldest = next(iter(segment_positions(reader.path)), 0)
    return oldest, max(oldest, reader.head.position)


def require_position(reader: LogReader, position: int) -> None:
    start, stop = positions(reader)
    if start <= position < stop:
        return
    if start == stop:
        raise DefiniteError(f"the log in {reader.path} holds no records yet", "let its source send a change first")
    raise DefiniteError(
        f"there is no record at position {position:,}: the log holds positions {start:,} to {stop - 1:,}",
        f"tailrace log show {quote(str(reader.path))} --position {min(max(position, start), stop - 1)}",
    )


def positions_of(reader: LogReader, seq: int) -> tuple[int, int]:
    """Where a transaction's records lie: start <= position < stop."""
    oldest, newest = reader.oldest_seq, reader.head.seq
    if oldest > newest:
        hint = f"tailrace log show {quote(str(reader.path))} shows what there is"
        raise DefiniteError(f"the log in {reader.path} holds no finished transaction", hint)
    if not oldest <= seq <= newest:
        raise DefiniteError(
            f"there is no transaction {seq:,}: the log holds transactions {oldest:,} to {newest:,}",
            f"tailrace log show {quote(str(reader.path))} --seq {min(max(seq, oldest), newest)}",
        )
    (row,) = reader.transactions(seq - 1, seq).to_pylist()
    return row["first_position"], row["commit_position"] + 1


def shape_commit(reader: LogReader, version: SchemaVersion) -> SourcePosition | None:
    """The commit whose changes had the shape first. None where the log does not say: the shape was in force where its
    oldest segment starts, or what announced it has not committed."""
    head = reader.head.seq

    def committed_there(index: TransactionIndex) -> int | None:
        if not index.positions or not version.xid or version.since > reader.head.position:
            return None
        seq = index.newest_at("commit_position", version.since, head)
        if seq <= index.header(index.positions[0]).base.seq:
            return None
        row = index.row(seq)[0]
        return seq if (row["commit_position"], row["xid"]) == (version.since, version.xid) else None

    seq = steady(TransactionIndex(reader.path), committed_there)[1]
    return None if seq is None else reader.position_of(seq)
