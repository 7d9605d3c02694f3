"""Joined frames: several frames read as one batch, so that many small flushes cost no more than one large one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import Array, Columns
from tailrace.log.files.segment import Frame, SegmentReader


@dataclass(frozen=True)
class JoinedFrames:
    """Frames whose keys have been read and checked; payloads are read when rows are taken."""

    frames: list[Frame]
    columns: Columns
    position: Array
    """Of each row."""

    @classmethod
    def load(cls, segment: SegmentReader, offsets: list[int]) -> JoinedFrames:
        frames = [segment.frame_at(offset) for offset in offsets]
        columns = [Columns.of(frame.keys()) for frame in frames]
        starts = np.array([frame.head.position for frame in frames])
        rows = np.array([frame.head.rows for frame in frames])
        position = np.repeat(starts - (np.cumsum(rows) - rows), rows) + np.arange(rows.sum())
        return cls(frames, columns[0] if len(columns) == 1 else _joined(columns), position)

    def take(self, rows: Array) -> pa.RecordBatch:
        """These rows, ascending, with their payloads. Frames that have none of them are not read."""
        counts = np.array([frame.head.rows for frame in self.frames])
        ends = np.cumsum(counts)
        taken = np.diff(np.searchsorted(rows, np.append(0, ends)))
        used = [frame.whole() for frame, count in zip(self.frames, taken.tolist(), strict=True) if count]
        skipped = np.cumsum(np.where(taken > 0, 0, counts))
        return _pick(used[0] if len(used) == 1 else pa.concat_batches(used), rows - np.repeat(skipped, taken))


def _joined(columns: list[Columns]) -> Columns:
    """All rows one after the other, without payloads."""
    names = ("ordinal", "xid", "sub_xid", "kind", "relation", "size")
    joined = {name: np.concatenate([getattr(part, name) for part in columns]) for name in names}
    return Columns(**joined, payload=columns[0].payload.slice(0, 0))


def _pick(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    first, count = int(rows[0]), len(rows)
    if int(rows[-1]) - first + 1 == count:
        return batch.slice(first, count)
    return batch.take(pa.array(rows))
