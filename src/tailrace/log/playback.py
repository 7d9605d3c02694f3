"""Playback: the changes of finished transactions, read piece by piece.

Anyone can read a piece on its own, in any process that sees the files, holding one batch at a time. Records of other
transactions, of aborted sub-transactions and undone ones are left out; what remains is in the order in which it was
logged, and carries the sequence number and the commit of its transaction. Every byte that is used has been checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.log.finished import Finished
from tailrace.log.layout import segment_path
from tailrace.log.ranges import ByteRange, load_batches, needed
from tailrace.log.record import BATCH_BYTES_MAX, Array
from tailrace.log.segment import SegmentReader
from tailrace.log.stretch import Stretch
from tailrace.log.transactions import TransactionIndex
from tailrace.log.undo import Pending, resolve
from tailrace.model.kind import Kind

_SCHEMA = np.uint8(Kind.SCHEMA)

PLAYBACK: pa.Schema = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("lsn", pa.uint64(), nullable=False),
        pa.field("commit_lsn", pa.uint64(), nullable=False),
        pa.field("commit_time_us", pa.int64(), nullable=False),
        pa.field("xid", pa.uint64(), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("relation", pa.uint32(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)


def read(
    path: Path, piece: ByteRange, after: int, upto: int, relations: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Changes in the piece of transactions with after < seq <= upto, of the given tables or of all.

    `after` and `upto` are those the piece was planned for, or lie within them.
    """
    finished = Finished.of_piece(TransactionIndex(path), piece, after, upto)
    with SegmentReader(segment_path(path, piece.segment)) as segment:
        groups = _groups(path, piece, finished.rows, relations)
        undone = undone_rows(segment, groups, finished, dict_of(piece)) if finished.has_undos else None
        for number, offsets in enumerate(groups):
            stretch = Stretch.load(segment, offsets)
            found = _wanted(stretch, finished, relations)
            if undone is not None:
                found[undone[number]] = -1
            rows = np.flatnonzero(found >= 0)
            if len(rows):
                yield _play(stretch, rows, finished, found[rows])


def pending_before(path: Path, piece: ByteRange, after: int, upto: int) -> Pending:
    """The undo counts before a piece, from those behind it."""
    finished = Finished.of_piece(TransactionIndex(path), piece, after, upto)
    pending = dict_of(piece)
    with SegmentReader(segment_path(path, piece.segment)) as segment:
        undone_rows(segment, _groups(path, piece, finished.rows, None), finished, pending)
    return {key: count for key, count in pending.items() if count}


def undone_rows(segment: SegmentReader, groups: list[list[int]], finished: Finished, pending: Pending) -> list[Array]:
    """For each group of frames, which of its rows are undone. Reads backwards, keys only."""
    undone = []
    for offsets in reversed(groups):
        stretch = Stretch.load(segment, offsets)
        found = finished.find(stretch.columns, stretch.position)
        undone.append(resolve(stretch.columns, finished.undo_seq(found), pending))
    return undone[::-1]


def dict_of(piece: ByteRange) -> Pending:
    return {(seq, sub_xid, relation): count for seq, sub_xid, relation, count in piece.undos}


def _groups(path: Path, piece: ByteRange, rows: Array, relations: Collection[int] | None) -> list[list[int]]:
    """Offsets of the piece's frames that may matter, small neighbours together."""
    if len(rows) == 0:
        return []
    batches = load_batches(path, piece.segment, reach=piece.position_stop)
    inside = batches[(batches["offset"] >= piece.start) & (batches["offset"] < piece.stop)]
    chosen = needed(inside, rows, relations)
    group = np.cumsum(chosen["bytes"]) // BATCH_BYTES_MAX
    cuts = np.flatnonzero(np.diff(group)) + 1
    return [part.tolist() for part in np.split(chosen["offset"], cuts) if len(part)]


def _wanted(stretch: Stretch, finished: Finished, relations: Collection[int] | None) -> Array:
    """The transaction of each row that is a change of a finished one and of a table asked for, -1 for others."""
    columns = stretch.columns
    found = finished.find(columns, stretch.position)
    wanted: Array = (columns.kind > _SCHEMA) & (found >= 0)
    if relations is not None:
        wanted &= np.isin(columns.relation, np.array(list(relations), dtype=np.uint32))
    return np.where(wanted & ~finished.is_aborted(columns, found), found, -1)


def _play(stretch: Stretch, rows: Array, finished: Finished, row: Array) -> pa.RecordBatch:
    """These rows with what is known of their transactions. Only now are payloads read."""
    records = stretch.take(rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(finished.seq[row]),
            pa.array(stretch.position[rows]),
            records.column("lsn"),
            pa.array(finished.commit_lsn[row]),
            pa.array(finished.commit_time_us[row]),
            *(records.column(name) for name in ("xid", "kind", "relation", "payload")),
        ],
        schema=PLAYBACK,
    )
