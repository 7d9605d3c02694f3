"""Playback: the changes of finished transactions, read range by range.

A range can be read on its own, in any process that sees the files, with one batch in memory at a time. Left out are
records of other transactions, of aborted sub-transactions, and undone changes. What remains is in the order in which
it was logged, with the sequence number and the commit of its transaction. Every byte that is used has been checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.log.files.layout import segment_path
from tailrace.log.files.record import FRAME_BYTES_MAX, Array
from tailrace.log.files.segment import SegmentReader
from tailrace.log.index.transactions import TransactionIndex
from tailrace.log.playback._finished_transactions import Finished
from tailrace.log.playback._joined_frames import JoinedFrames
from tailrace.log.playback._undo import Pending, resolve
from tailrace.log.playback.ranges import ByteRange, load_frames, needed
from tailrace.model.kind import Kind

_SCHEMA = np.uint8(Kind.SCHEMA)

PLAYBACK: pa.Schema = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("ordinal", pa.uint64(), nullable=False),
        pa.field("commit_ordinal", pa.uint64(), nullable=False),
        pa.field("commit_time_us", pa.int64(), nullable=False),
        pa.field("xid", pa.uint64(), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("relation", pa.uint32(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)


def read(
    path: Path,
    byte_range: ByteRange,
    after: int,
    upto: int,
    relations: Collection[int] | None = None,
    kinds: Collection[Kind] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Changes in the range of transactions with after < seq <= upto, of the given tables and kinds or of all.

    `after` and `upto` are those the range was planned for, or lie within them. Payloads of others are not read.
    """
    finished = Finished.of_range(TransactionIndex(path), byte_range, after, upto)
    with SegmentReader(segment_path(path, byte_range.segment)) as segment:
        groups = _groups(path, byte_range, finished.rows, relations)
        undone = undone_rows(segment, groups, finished, undo_counts(byte_range)) if finished.has_undos else None
        for number, offsets in enumerate(groups):
            joined = JoinedFrames.load(segment, offsets)
            found = _wanted(joined, finished, relations)
            if kinds is not None:
                found[~np.isin(joined.columns.kind, list(kinds))] = -1
            if undone is not None:
                found[undone[number]] = -1
            rows = np.flatnonzero(found >= 0)
            if len(rows):
                yield _play(joined, rows, finished, found[rows])


def _pending_before(path: Path, byte_range: ByteRange, after: int, upto: int) -> Pending:
    """The undo counts at the start of a range, from those at its end."""
    finished = Finished.of_range(TransactionIndex(path), byte_range, after, upto)
    pending = undo_counts(byte_range)
    with SegmentReader(segment_path(path, byte_range.segment)) as segment:
        undone_rows(segment, _groups(path, byte_range, finished.rows, None), finished, pending)
    return {key: count for key, count in pending.items() if count}


def with_undos(path: Path, ranges: list[ByteRange], rows: Array) -> list[ByteRange]:
    """Ranges of these transactions, with what is undone from after their ends.

    Reads the keys, from the last range to the first, of those that a transaction with undone changes crosses.
    """
    undoing = rows[rows["undos"] > 0]
    if len(undoing) == 0:
        return ranges
    after, upto = int(rows["seq"][0]) - 1, int(rows["seq"][-1])
    done: list[ByteRange] = []
    pending: Pending = {}
    for byte_range in reversed(ranges):
        known = replace(byte_range, undos=tuple((*key, count) for key, count in pending.items()))
        done.append(known)
        start = byte_range.position
        crosses = (undoing["first_position"] < start) & (undoing["commit_position"] >= start)
        pending = _pending_before(path, known, after, upto) if crosses.any() else {}
    return done[::-1]


def undone_rows(segment: SegmentReader, groups: list[list[int]], finished: Finished, pending: Pending) -> list[Array]:
    """For each group of frames, which of its rows are undone. Reads backwards, keys only."""
    undone = []
    for offsets in reversed(groups):
        joined = JoinedFrames.load(segment, offsets)
        found = finished.find(joined.columns, joined.position)
        undone.append(resolve(joined.columns, finished.undo_seq(found), pending))
    return undone[::-1]


def undo_counts(byte_range: ByteRange) -> Pending:
    return {(seq, sub_xid, relation): count for seq, sub_xid, relation, count in byte_range.undos}


def _groups(path: Path, byte_range: ByteRange, rows: Array, relations: Collection[int] | None) -> list[list[int]]:
    """Offsets of the range's frames that may matter, small neighbours together."""
    if len(rows) == 0:
        return []
    frames = load_frames(path, byte_range.segment, reaching=byte_range.position_stop)
    inside = frames[(frames["offset"] >= byte_range.start) & (frames["offset"] < byte_range.stop)]
    chosen = needed(inside, rows, relations)
    group = np.cumsum(chosen["bytes"]) // FRAME_BYTES_MAX
    cuts = np.flatnonzero(np.diff(group)) + 1
    return [part.tolist() for part in np.split(chosen["offset"], cuts) if len(part)]


def _wanted(joined: JoinedFrames, finished: Finished, relations: Collection[int] | None) -> Array:
    """The transaction of each row that is a change of a finished one and of a table asked for, -1 for others."""
    columns = joined.columns
    found = finished.find(columns, joined.position)
    wanted: Array = (columns.kind > _SCHEMA) & (found >= 0)
    if relations is not None:
        wanted &= np.isin(columns.relation, np.array(list(relations), dtype=np.uint32))
    return np.where(wanted & ~finished.is_aborted(columns, found), found, -1)


def _play(joined: JoinedFrames, rows: Array, finished: Finished, row: Array) -> pa.RecordBatch:
    """These rows with what is known of their transactions. Only now are payloads read."""
    records = joined.take(rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(finished.seq[row]),
            pa.array(joined.position[rows]),
            records.column("ordinal"),
            pa.array(finished.commit_ordinal[row]),
            pa.array(finished.commit_time_us[row]),
            *(records.column(name) for name in ("xid", "kind", "relation", "payload")),
        ],
        schema=PLAYBACK,
    )
