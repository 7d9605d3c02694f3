"""Ranges: the parts of the log that hold some transactions, to be read side by side.

A range is a row of neighbouring frames in one segment. The ranges that are planned together hold every record of their
transactions. A large transaction lies in many ranges; each range names the transactions that commit after its end.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import index_path, segment_path
from tailrace.log.files.record import Array
from tailrace.log.files.segment import SegmentGoneError
from tailrace.log.index.index import FRAME, load_rows, sound_frames, table_bits
from tailrace.log.index.transactions import TransactionIndex, index_damage


@dataclass(frozen=True)
class ByteRange:
    """Neighbouring frames of one segment, and what a reader must know besides to play them back."""

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
    """The planned transactions that commit in it: after < seq <= upto."""
    spanning: tuple[int, ...] = ()
    """The planned transactions that commit after it and begin in it or before it."""
    undos: tuple[tuple[int, int, int, int], ...] = ()
    """Transaction, sub-transaction, table, and how many UNDOs after the range take back changes in it or before it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ByteRange:
        fields = json.loads(text)
        undos = tuple((seq, sub_xid, relation, count) for seq, sub_xid, relation, count in fields.pop("undos"))
        return cls(**{**fields, "spanning": tuple(fields["spanning"]), "undos": undos})


def plan(index: TransactionIndex, rows: Array, bytes_max: int, relations: Collection[int] | None) -> list[ByteRange]:
    """Ranges of about equal size, none much above `bytes_max`, for these consecutive transactions."""
    if len(rows) == 0:
        return []
    if rows["first_position"].min() < index.positions[0]:
        raise no_longer(index.path, int(rows["seq"][0]))
    last = int(rows["commit_position"].max())
    found = []
    for position in _segments(index.positions, rows):
        frames = load_frames(index.path, position, reaching=min(last + 1, index.position_stop(position)))
        found.append((position, needed(frames, rows, relations)))
    frames = np.concatenate([part for _, part in found])
    segment = np.concatenate([np.full(len(part), position) for position, part in found])
    if len(frames) == 0:
        return []
    total = int(frames["bytes"].sum())
    share = total / -(-total // bytes_max)
    number = (np.cumsum(frames["bytes"]) - frames["bytes"]) // share
    cuts = np.flatnonzero((np.diff(number) != 0) | (np.diff(segment) != 0)) + 1
    bounds = zip([0, *cuts.tolist()], [*cuts.tolist(), len(frames)], strict=True)
    return [_byte_range(int(segment[start]), frames[start:stop], rows) for start, stop in bounds]


def no_longer(path: Path, seq: int) -> DefiniteError:
    """A transaction that was asked for and is not wholly there."""
    message = f"the log in {path} no longer holds all of transaction {seq} and those after it"
    return DefiniteError(message, "what was acknowledged is deleted; take a new snapshot")


def load_frames(path: Path, segment: int, reaching: int) -> Array:
    """The index rows of a segment's frames. DefiniteError where they have a gap or end before position `reaching`."""
    rows = load_rows(index_path(path, segment, ".frames"), FRAME, 0, 1 << 48)
    rows = rows[: sound_frames(rows)]
    ends = rows["position"] + rows["rows"]
    expected = np.append(segment, ends)[:-1] if len(rows) else ends
    joined = int(np.argmin(np.append(rows["position"] == expected, False)))
    if reaching > (int(ends[joined - 1]) if joined else segment):
        if not segment_path(path, segment).exists():
            raise SegmentGoneError(segment_path(path, segment))
        raise index_damage(path, segment, ".frames", joined * FRAME.itemsize)
    return rows[:joined]


def needed(frames: Array, rows: Array, relations: Collection[int] | None) -> Array:
    """The frames that may hold records of these transactions and tables."""
    starts, ends = _merged(rows)
    at = np.searchsorted(ends, frames["position"])
    overlaps = (at < len(ends)) & (starts[np.minimum(at, len(ends) - 1)] < frames["position"] + frames["rows"])
    if relations is not None:
        overlaps &= frames["tables"] & np.uint64(table_bits(np.array(list(relations), dtype=np.uint64))) != 0
    found: Array = frames[overlaps]
    return found


def _segments(positions: list[int], rows: Array) -> list[int]:
    first, last = int(rows["first_position"].min()), int(rows["commit_position"].max())
    following = [*positions[1:], 1 << 62]
    return [p for p, stop in zip(positions, following, strict=True) if stop > first and p <= last]


def _merged(rows: Array) -> tuple[Array, Array]:
    """The positions that the transactions span: disjoint intervals, both ends included."""
    order = np.argsort(rows["first_position"], kind="stable")
    first = rows["first_position"][order]
    last = np.maximum.accumulate(rows["commit_position"][order])
    fresh = np.append(True, first[1:] > last[:-1])
    return first[fresh], last[np.append(np.flatnonzero(fresh)[1:] - 1, len(last) - 1)]


def _byte_range(segment: int, frames: Array, rows: Array) -> ByteRange:
    last = frames[-1]
    position, position_stop = int(frames["position"][0]), int(last["position"] + last["rows"])
    low, high = np.searchsorted(rows["commit_position"], [position, position_stop]).tolist()
    later = rows[high:]
    before = int(rows["seq"][0]) - 1
    return ByteRange(
        segment=segment,
        start=int(frames["offset"][0]),
        stop=int(last["offset"] + last["bytes"]),
        position=position,
        position_stop=position_stop,
        bytes=int(frames["bytes"].sum()),
        after=before + low,
        upto=before + high,
        spanning=tuple(later["seq"][later["first_position"] < position_stop].tolist()),
    )
