"""The record: one row of the log, and how rows travel in batches.

A record is what the source sent at one point: a change, a control message, a schema. Records are
columns from the start, so that whoever wants one table's records finds them with a vector filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RECORD: pa.Schema = pa.schema(
    [
        pa.field("ordinal", pa.uint64(), nullable=False),
        pa.field("xid", pa.uint64(), nullable=False),
        pa.field("sub_xid", pa.uint64(), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("relation", pa.uint32(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""`xid` 0 is outside every transaction; `relation` 0 is no table."""

RECORD_BYTES_FIXED = 33
"""What a record weighs besides its payload: five columns and one offset."""

FRAME_BYTES_MAX = 8 << 20
"""The size at which a flush is cut into several frames, so that a reader, which holds one, stays small."""

COUNTED_MAX = 1 << 22
"""Up to this many counters are filled rather than values sorted."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Columns:
    """The columns of a batch as arrays, without copying; `size` is the payload's length in bytes."""

    ordinal: Array
    xid: Array
    sub_xid: Array
    kind: Array
    relation: Array
    size: Array
    payload: pa.BinaryArray

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Columns:
        ordinal, xid, sub_xid, kind, relation = (batch.column(i).to_numpy(zero_copy_only=True) for i in range(5))
        payload = batch.column(5)
        return cls(ordinal, xid, sub_xid, kind, relation, np.diff(offsets(payload)), payload)


def offsets(payload: pa.BinaryArray) -> Array:
    """Where each value starts in the payload's data, and where the last one ends."""
    if len(payload) == 0:
        return np.zeros(1, dtype=np.int32)
    raw = np.frombuffer(payload.buffers()[1], dtype=np.int32)
    return raw[payload.offset : payload.offset + len(payload) + 1]


def relations_of(batch: pa.RecordBatch) -> Array:
    """The table of each row, without copying."""
    return cast(Array, batch.column(4).to_numpy(zero_copy_only=True))


def distinct(values: Array) -> Array:
    """The distinct values, sorted. Small ones are counted, which is several times faster than sorting them."""
    if values.max(initial=0) < COUNTED_MAX:
        return np.flatnonzero(np.bincount(values.astype(np.int64)))
    return np.unique(values)


def conform(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with exactly the schema RECORD; ValueError for anything that is not records."""
    if batch.schema.names != RECORD.names:
        raise ValueError(f"not records: columns {batch.schema.names}, not {RECORD.names}")
    if any(column.null_count for column in batch.columns):
        raise ValueError("not records: a record has no null")
    if batch.schema.equals(RECORD):
        return batch
    return pa.RecordBatch.from_arrays(
        [c.cast(f.type) for c, f in zip(batch.columns, RECORD, strict=True)], schema=RECORD
    )


def frame_sized(batches: list[pa.RecordBatch], frame_bytes_max: int) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, in batches of about this size at most (one row may be larger)."""
    group: list[pa.RecordBatch] = []
    room = frame_bytes_max
    for batch in (part for whole in batches for part in _cut(whole, frame_bytes_max)):
        weight = weigh(batch)
        if group and weight > room:
            yield _join(group)
            group, room = [], frame_bytes_max
        group.append(batch)
        room -= weight
    if group:
        yield _join(group)


def weigh(batch: pa.RecordBatch) -> int:
    """Bytes that the batch's records take in a segment, about."""
    where = offsets(batch.column(5))
    rows: int = batch.num_rows
    return int(where[-1] - where[0]) + RECORD_BYTES_FIXED * rows


def _cut(batch: pa.RecordBatch, frame_bytes_max: int) -> Iterator[pa.RecordBatch]:
    if weigh(batch) <= frame_bytes_max:
        yield batch
        return
    ends = np.cumsum(Columns.of(batch).size.astype(np.int64) + RECORD_BYTES_FIXED)
    cuts = np.flatnonzero(np.diff(ends // frame_bytes_max)) + 1
    for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), batch.num_rows], strict=True):
        yield batch.slice(start, stop - start)


def _join(group: list[pa.RecordBatch]) -> pa.RecordBatch:
    return group[0] if len(group) == 1 else pa.concat_batches(group)
