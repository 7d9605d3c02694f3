"""Survey: what a log holds, for people. Reads headers and indexes, and segments only where records are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log.layout import INDEX_SUFFIXES, index_path, segment_path
from tailrace.log.ranges import load_batches
from tailrace.log.reader import LogReader
from tailrace.log.segment import SegmentReader
from tailrace.log.transactions import TransactionIndex
from tailrace.model.commit import CommitPayload
from tailrace.model.kind import Kind
from tailrace.model.lsn import Lsn


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


def segments(reader: LogReader) -> list[SegmentSummary]:
    """All segments, from the oldest."""
    index = TransactionIndex(reader.path)
    found = []
    for number, position in enumerate(index.positions):
        header = index.header(position)
        following = index.positions[number + 1] if number + 1 < len(index.positions) else None
        path = segment_path(reader.path, position)
        found.append(
            SegmentSummary(
                path=path,
                position=position,
                position_stop=reader.head.position if following is None else following,
                after=header.base.seq,
                upto=reader.head.seq if following is None else index.header(following).base.seq,
                bytes=path.stat().st_size,
                index_bytes=sum(index_path(reader.path, position, s).stat().st_size for s in INDEX_SUFFIXES),
                created_us=header.created_us,
            )
        )
    return found


def records(path: Path, start: int, stop: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Records with start <= position < stop as they were logged, finished or not, each with its position."""
    index = TransactionIndex(path)
    for position in index.positions:
        batches = load_batches(path, position)
        wanted = batches[(batches["position"] < stop) & (batches["position"] + batches["rows"] > start)]
        with SegmentReader(segment_path(path, position)) as segment:
            for offset, length in zip(wanted["offset"].tolist(), wanted["bytes"].tolist(), strict=True):
                for frame in segment.frames(offset, offset + length):
                    yield from _rows(frame.whole(), frame.head.position, start, stop)


def _rows(batch: pa.RecordBatch, position: int, start: int, stop: int) -> Iterator[tuple[int, dict[str, object]]]:
    low, high = max(0, start - position), min(batch.num_rows, stop - position)
    yield from enumerate(batch.slice(low, high - low).to_pylist(), position + low)


def describe(kind: int, payload: bytes) -> str:
    """A payload in words: the log's own are read, the source's are shown as text where they are text."""
    if kind == Kind.COMMIT:
        commit = CommitPayload.from_bytes(payload)
        return f"commit {commit.commit_lsn} end {commit.end_lsn} time_us {commit.time_us}"
    text = payload.decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def kind_name(kind: int) -> str:
    try:
        return Kind(kind).name
    except ValueError:
        return str(kind)


def position_of(reader: LogReader, seq: int) -> tuple[int, int]:
    """Where a transaction's records lie: its first position, and the one behind its commit."""
    if not reader.oldest_seq <= seq <= reader.head.seq:
        raise DefiniteError(f"the log in {reader.path} holds transactions {reader.oldest_seq} to {reader.head.seq}")
    (row,) = reader.transactions(seq - 1, seq).to_pylist()
    return row["first_position"], row["commit_position"] + 1


def lag(reader: LogReader, seq: int) -> str:
    """How far behind the head a consumer is, in words."""
    behind = reader.head.seq - seq
    if behind == 0:
        return "up to date"
    after = max(seq, reader.oldest_seq - 1)
    return f"{behind} transactions, {reader.bytes_between(after, reader.head.seq)} bytes behind"


def lsn_text(value: int) -> str:
    return str(Lsn(value))
