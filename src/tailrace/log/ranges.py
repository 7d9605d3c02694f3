"""Ranges: transactions cut into pieces of the log that can be read side by side.

A piece is a stretch of one segment. The pieces of a range together hold every record of its transactions; a large
transaction lies in many of them, and a piece names those that commit behind its end. Pieces are cut between frames.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tailrace.errors import DefiniteError
from tailrace.log.index import BATCH, load_rows, sound_batches, table_bits
from tailrace.log.layout import index_path, segment_path
from tailrace.log.record import Array
from tailrace.log.segment import SegmentGoneError
from tailrace.log.transactions import TransactionIndex, index_damage


@dataclass(frozen=True)
class ByteRange:
    """A piece: frames of one segment, and what one must know besides to play them back."""

    segment: int
    """Position of the segment's first record."""
    start: int
    stop: int
    """Offsets of the first frame and of the end of the last."""
    position: int
    position_stop: int
    """Positions of the records in it."""
    bytes: int
    """How much of it is needed."""
    after: int
    upto: int
    """Transactions of the range that commit in it: after < seq <= upto."""
    spanning: tuple[int, ...] = ()
    """Transactions of the range that commit behind it and begin in or before it."""
    undos: tuple[tuple[int, int, int, int], ...] = ()
    """For a transaction, sub-transaction and table, how many of its changes are undone from behind the piece."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ByteRange:
        fields = json.loads(text)
        undos = tuple((seq, sub_xid, relation, count) for seq, sub_xid, relation, count in fields.pop("undos"))
        return cls(**{**fields, "spanning": tuple(fields["spanning"]), "undos": undos})


def plan(index: TransactionIndex, rows: Array, bytes_max: int, relations: Collection[int] | None) -> list[ByteRange]:
    """Pieces of about equal size, none much above `bytes_max`, for these consecutive transactions."""
    if len(rows) == 0:
        return []
    if rows["first_position"].min() < index.positions[0]:
        raise no_longer(index.path, int(rows["seq"][0]))
    last = int(rows["commit_position"].max())
    found = []
    for position in _segments(index.positions, rows):
        batches = load_batches(index.path, position, reach=min(last + 1, index.position_stop(position)))
        found.append((position, needed(batches, rows, relations)))
    batches = np.concatenate([part for _, part in found])
    segment = np.concatenate([np.full(len(part), position) for position, part in found])
    if len(batches) == 0:
        return []
    total = int(batches["bytes"].sum())
    share = total / -(-total // bytes_max)
    piece = (np.cumsum(batches["bytes"]) - batches["bytes"]) // share
    cuts = np.flatnonzero((np.diff(piece) != 0) | (np.diff(segment) != 0)) + 1
    bounds = zip([0, *cuts.tolist()], [*cuts.tolist(), len(batches)], strict=True)
    return [_piece(int(segment[start]), batches[start:stop], rows) for start, stop in bounds]


def no_longer(path: Path, seq: int) -> DefiniteError:
    """A transaction that was asked for and is not wholly there."""
    message = f"the log in {path} no longer holds all of transaction {seq} and those behind it"
    return DefiniteError(message, "what was acknowledged is deleted; take a new snapshot")


def load_batches(path: Path, segment: int, reach: int) -> Array:
    """The frames of a segment. DefiniteError when they do not go on from its start to position `reach` at least."""
    rows = load_rows(index_path(path, segment, ".batches"), BATCH, 0, 1 << 48)
    rows = rows[: sound_batches(rows)]
    ends = rows["position"] + rows["rows"]
    expected = np.append(segment, ends)[:-1] if len(rows) else ends
    joined = int(np.argmin(np.append(rows["position"] == expected, False)))
    if reach > (int(ends[joined - 1]) if joined else segment):
        if not segment_path(path, segment).exists():
            raise SegmentGoneError(segment_path(path, segment))
        raise index_damage(path, segment, ".batches", joined * BATCH.itemsize)
    return rows[:joined]


def needed(batches: Array, rows: Array, relations: Collection[int] | None) -> Array:
    """The frames that may hold records of these transactions and tables."""
    starts, ends = _merged(rows)
    at = np.searchsorted(ends, batches["position"])
    overlaps = (at < len(ends)) & (starts[np.minimum(at, len(ends) - 1)] < batches["position"] + batches["rows"])
    if relations is not None:
        overlaps &= batches["tables"] & np.uint64(table_bits(np.array(list(relations), dtype=np.uint64))) != 0
    found: Array = batches[overlaps]
    return found


def _segments(positions: list[int], rows: Array) -> list[int]:
    first, last = int(rows["first_position"].min()), int(rows["commit_position"].max())
    following = [*positions[1:], 1 << 62]
    return [p for p, stop in zip(positions, following, strict=True) if stop > first and p <= last]


def _merged(rows: Array) -> tuple[Array, Array]:
    """The positions that the transactions span: disjoint stretches, both ends included."""
    order = np.argsort(rows["first_position"], kind="stable")
    first = rows["first_position"][order]
    last = np.maximum.accumulate(rows["commit_position"][order])
    fresh = np.append(True, first[1:] > last[:-1])
    return first[fresh], last[np.append(np.flatnonzero(fresh)[1:] - 1, len(last) - 1)]


def _piece(segment: int, batches: Array, rows: Array) -> ByteRange:
    last = batches[-1]
    position, position_stop = int(batches["position"][0]), int(last["position"] + last["rows"])
    low, high = np.searchsorted(rows["commit_position"], [position, position_stop]).tolist()
    later = rows[high:]
    before = int(rows["seq"][0]) - 1
    return ByteRange(
        segment=segment,
        start=int(batches["offset"][0]),
        stop=int(last["offset"] + last["bytes"]),
        position=position,
        position_stop=position_stop,
        bytes=int(batches["bytes"].sum()),
        after=before + low,
        upto=before + high,
        spanning=tuple(later["seq"][later["first_position"] < position_stop].tolist()),
    )
