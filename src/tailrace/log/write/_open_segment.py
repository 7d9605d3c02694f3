"""The open segment: the one that is being written, with the index files that belong to it.

The sync of the segment's file is the one point at which records become durable. The index follows it and can be derived
again.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

from tailrace.log.files.disk import AppendFile, LogDisk
from tailrace.log.files.frame import Encoder
from tailrace.log.files.layout import segment_path
from tailrace.log.files.segment import SegmentHeader
from tailrace.log.index.index_files import IndexFiles
from tailrace.log.ledger.ledger import Base
from tailrace.log.write._next_segment import NextSegment
from tailrace.log.write._unsynced import Unsynced
from tailrace.log.write.recovery import Recovered


class OpenSegment:
    """A segment that takes records. `durable` is how far the log is durable with it."""

    def __init__(
        self, header: SegmentHeader, durable: Base, file: AppendFile, index: IndexFiles, encoder: Encoder
    ) -> None:
        self.header = header
        self.durable = durable
        self.index = index
        self._file = file
        self._durable_bytes = file.size
        self._encoder = encoder

    @classmethod
    def begin(cls, following: NextSegment, path: Path, disk: LogDisk, compression: str | None) -> OpenSegment:
        encoder = Encoder(following.header.salt, compression)
        file, index = following.make(path, disk, encoder)
        return cls(following.header, following.base_after, file, index, encoder)

    @classmethod
    def continued(cls, recovered: Recovered, path: Path, disk: LogDisk, compression: str | None) -> OpenSegment:
        """The last segment of a log that was recovered, without its torn tail."""
        with ExitStack() as on_error:
            on_error.callback(recovered.index.close)
            file = AppendFile(disk, segment_path(path, recovered.position), recovered.size)
            on_error.callback(file.close)
            file.rewind(recovered.size)
            file.sync()
            on_error.pop_all()
        encoder = Encoder(recovered.header.salt, compression)
        return cls(recovered.header, recovered.ledger.base, file, recovered.index, encoder)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def size(self) -> int:
        """Of the segment's file."""
        return self._file.size

    @property
    def bytes(self) -> int:
        """On disk, index included."""
        return self._file.size + self.index.size

    @property
    def is_empty(self) -> bool:
        """It has nothing but what the segment before it carried over."""
        return self.durable.position <= self.header.base.position + self.header.carried

    def write_ahead(self, unsynced: Unsynced) -> None:
        """Write what waits; where there is no room it waits for the flush, which says why."""
        start = self._file.size
        with suppress(OSError):
            unsynced.write(self._file, self._encoder, self.durable.position)
            self._file.start_write_out(start)

    def take_back(self, unsynced: Unsynced) -> None:
        """Forget the batch that was added last: it must not become durable."""
        unsynced.drop_last(self._file)

    def write_and_sync(self, unsynced: Unsynced, base: Base) -> None:
        """Make all that was appended durable, so that the log is at `base`, or leave the segment as it was."""
        try:
            unsynced.write(self._file, self._encoder, self.durable.position)
            self._file.sync()
        except BaseException:
            unsynced.rewind(self._file, self._durable_bytes)
            raise
        self.durable, self._durable_bytes = base, self._file.size
        for frame in unsynced.frames:
            self.index.add_frame(*frame)
        for derived in unsynced.derived:
            self.index.add(derived)

    def show(self) -> None:
        """Let the index say all that is durable."""
        self._file.mend()
        self.index.drain()

    def seal(self) -> None:
        """Make the index whole and durable. May fail and be tried again."""
        self._file.mend()
        self.index.end()
        self.index.drain()
        self.index.sync()

    def mend(self) -> None:
        self._file.mend()

    def close(self) -> None:
        self._file.close()
        self.index.close()
