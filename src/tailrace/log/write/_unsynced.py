"""The unsynced end of the log: records that were appended and are not durable yet.

They are written as soon as there are enough of them, so that the disk and the writer work at the same time, and synced
by the flush. They stay in memory until then. What could not be synced may be lost, whatever the file seems to hold: it
is cut off and written again.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from tailrace.log.files.disk import AppendFile
from tailrace.log.files.frame import Encoder, FrameHead
from tailrace.log.files.record import frame_sized, relations_of, weigh
from tailrace.log.index.index import Derived, table_bits

IndexedFrame = tuple[FrameHead, int, int]
"""A frame, its offset in the segment and the tables it may hold."""


class Unsynced:
    """Batches in order: the first of them are in the segment's file already, the others wait."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.frames: list[IndexedFrame] = []
        self.derived: list[Derived] = []
        """What the ledger made of the batches, for the index."""
        self.bytes = 0
        self.bytes_waiting = 0
        self._batches: list[pa.RecordBatch] = []
        self._written = 0
        self._before_last_write = (0, 0, 0)

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def index_bytes(self) -> int:
        return sum(derived.transactions.nbytes + derived.lists.nbytes for derived in self.derived)

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.bytes += weigh(batch)
        self.bytes_waiting += weigh(batch)

    def write(self, segment: AppendFile, encoder: Encoder, position: int) -> None:
        """Write what waits; `position` is that of the first record here. On an error it still waits."""
        self._before_last_write = (segment.size, self._written, len(self.frames))
        after = self.frames[-1][0].position_next if self.frames else position
        try:
            for batch in frame_sized(self._batches[self._written :], self.frame_bytes_max):
                head, content = encoder.encode(batch, after, position)
                self.frames.append((head, segment.size, table_bits(relations_of(batch))))
                segment.append([content])
                after = head.position_next
        except BaseException:
            self._undo_last_write(segment)
            raise
        self._written, self.bytes_waiting = len(self._batches), 0

    def drop_last(self, segment: AppendFile) -> None:
        """Forget the batch that was added last: it must not become durable."""
        if self._written == len(self._batches):
            self._undo_last_write(segment)
        dropped = weigh(self._batches.pop())
        self.bytes -= dropped
        self.bytes_waiting -= dropped

    def rewind(self, segment: AppendFile, size: int) -> None:
        """Cut the file to what is durable. Everything waits again."""
        self._before_last_write = (size, 0, 0)
        self._undo_last_write(segment)

    def _undo_last_write(self, segment: AppendFile) -> None:
        size, self._written, frames = self._before_last_write
        del self.frames[frames:]
        self.bytes_waiting = sum(map(weigh, self._batches[self._written :]))
        # A file that cannot be cut now is cut before it is written next.
        with suppress(OSError):
            segment.rewind(size)
