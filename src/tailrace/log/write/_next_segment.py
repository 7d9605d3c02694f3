"""The next segment: what it starts with, decided when the one before it is full, made when the disk has room for it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailrace.log.files.disk import AppendFile, LogDisk
from tailrace.log.files.frame import Encoder
from tailrace.log.files.layout import segment_path
from tailrace.log.files.record import relations_of
from tailrace.log.files.segment import SegmentHeader
from tailrace.log.index.index import Derived, table_bits
from tailrace.log.index.index_files import IndexFiles
from tailrace.log.ledger.ledger import Base, Ledger
from tailrace.log.write._added_records import schemas


@dataclass(frozen=True)
class NextSegment:
    """A header and the schemas that are carried over; `base_after` is how far the log has got with them."""

    header: SegmentHeader
    carried: pa.RecordBatch | None
    derived: Derived | None
    base_after: Base

    @classmethod
    def first(cls, base: Base, created_us: int) -> NextSegment:
        return cls(SegmentHeader(base, created_us), None, None, base)

    @classmethod
    def following(cls, ledger: Ledger, created_us: int) -> NextSegment:
        """Takes the positions of what it carries over from the ledger."""
        base, marks = ledger.base, ledger.carried()
        carried = schemas(marks, base.received.ordinal) if marks else None
        derived = ledger.observe(carried) if carried is not None else None
        return cls(SegmentHeader(base, created_us, len(marks)), carried, derived, ledger.base)

    def make(self, path: Path, disk: LogDisk, encoder: Encoder) -> tuple[AppendFile, IndexFiles]:
        """Make it under another name, then give it its own: it is there whole or not at all. May be tried again."""
        position = self.header.base.position
        target = segment_path(path, position)
        with ExitStack() as on_error:
            segment = AppendFile(disk, target.with_name(target.name + ".tmp"))
            on_error.callback(segment.close)
            index = IndexFiles(disk, path, position)
            on_error.callback(index.close)
            segment.rewind(0)
            segment.append([self.header.to_bytes()])
            if self.carried is not None and self.derived is not None:
                head, content = encoder.encode(self.carried, position, position)
                index.add_frame(head, segment.size, table_bits(relations_of(self.carried)))
                index.add(self.derived)
                segment.append([content])
            segment.sync()
            disk.replace(segment.path, target)
            disk.sync_directory(path)
            on_error.pop_all()
        segment.path = target
        return segment, index
