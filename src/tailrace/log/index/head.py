"""The head: how far the durable log goes.

The writer overwrites one small file after each flush, once the flush is durable and indexed. Readers follow it.
It is never synced: after a power cut it may be old or torn, and readers then look at the index themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tailrace.log.files.disk import AppendFile, LogDisk

_LAYOUT = struct.Struct("<qQqqqQQ")


@dataclass(frozen=True)
class Head:
    """The end of the durable log."""

    seq: int
    """Newest finished transaction; 0 when there is none."""
    ordinal: int
    """Everything the source sent before this is durable here."""
    position: int
    """The next record's."""
    written_us: int


@dataclass(frozen=True)
class HeadFile:
    """A head and the segment it lies in, as they are on disk."""

    head: Head
    segment: int
    log: int
    """Which log it is the head of: a wiped one leaves no head that another could be taken for."""

    def to_bytes(self) -> bytes:
        head = self.head
        fields = (head.seq, head.ordinal, head.position, head.written_us, self.segment, self.log)
        return _LAYOUT.pack(*fields, xxhash.xxh3_64_intdigest(_LAYOUT.pack(*fields, 0)))

    @classmethod
    def load(cls, path: Path) -> HeadFile | None:
        """None when there is none, or when it is torn."""
        try:
            content = (path / "head").read_bytes()
            seq, ordinal, position, written_us, segment, log, _ = _LAYOUT.unpack(content)
        except (FileNotFoundError, struct.error):
            return None
        loaded = cls(Head(seq, ordinal, position, written_us), segment, log)
        return loaded if loaded.to_bytes() == content else None


class HeadWriter:
    """The head's file on the writer's side."""

    def __init__(self, disk: LogDisk, path: Path, log: int, clock: Callable[[], int]) -> None:
        self.head = Head(0, 0, 0, 0)
        self._log = log
        self._clock = clock
        self._file = AppendFile(disk, path / "head")
        self._shown_position = -1

    def is_shown(self, position: int) -> bool:
        """Readers can see the log up to this position."""
        return position == self._shown_position

    def show(self, seq: int, ordinal: int, position: int, segment: int) -> None:
        """Let readers see the log up to here. Where that cannot be written, it is not shown yet."""
        self.head = Head(seq, ordinal, position, self._clock())
        self._file.overwrite(HeadFile(self.head, segment, self._log).to_bytes())
        self._shown_position = position

    def close(self) -> None:
        self._file.close()
