"""The segment: one file of the log, a plain Arrow IPC stream.

Its schema's metadata say how far the log had got where it starts, and its first frame repeats the schemas in force
there. So a segment can be read without the ones before it. It is made under another name and renamed when it is
durable: a segment that can be seen has a whole header.

    header, carried schemas | flush | flush | flush ...

Each flush is one or more frames followed by a sync. Only the last flush of the last segment can be torn.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import xxhash

from tailrace.errors import DamageError, DefiniteError
from tailrace.log.files.frame import HEAD_BYTES_MAX, FrameHead, decode, keys_intact, parse_head, payload_intact
from tailrace.log.files.layout import put_aside
from tailrace.log.files.record import RECORD
from tailrace.log.ledger.ledger import Base


@dataclass(frozen=True)
class SegmentHeader:
    """Where the segment starts and when it was made."""

    base: Base
    created_us: int
    carried: int = 0
    """How many schema records it starts with."""
    salt: int = field(default_factory=lambda: secrets.randbits(63))
    """Makes its frames' digests its own."""

    def to_bytes(self) -> bytes:
        fields = {"base": self.base.to_fields(), "created_us": self.created_us}
        text = json.dumps({**fields, "carried": self.carried, "salt": self.salt})
        return bytes(RECORD.with_metadata({"tailrace": text, "tailrace.xxh3": _digest(text)}).serialize())

    @classmethod
    def from_bytes(cls, content: bytes) -> SegmentHeader | None:
        """None when these bytes are not a header, or not as they were written."""
        try:
            metadata = pa.ipc.read_schema(pa.py_buffer(content)).metadata
            text = metadata[b"tailrace"].decode()
            if metadata[b"tailrace.xxh3"].decode() != _digest(text):
                return None
            fields = json.loads(text)
            return cls(**{**fields, "base": Base.from_fields(fields["base"])})
        except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError, KeyError):
            return None


def _digest(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())


class SegmentGoneError(DefiniteError):
    """A segment that was there before is not: retention has removed it, or a person has."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"segment {path} is gone", "what it held was acknowledged and deleted; take a new snapshot")


class SegmentReader:
    """Reads frames of one segment and checks each. Never changes the file; a live one is read as far as it is durable.

    Damage is a DefiniteError that names the file and the byte.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise SegmentGoneError(path) from None

    def __enter__(self) -> SegmentReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def header(self) -> tuple[SegmentHeader, int]:
        """The header and the offset of the first frame."""
        start = os.pread(self._descriptor, 8, 0)
        length = 8 + int.from_bytes(start[4:8], "little")
        header = SegmentHeader.from_bytes(os.pread(self._descriptor, min(length, self.size), 0))
        if header is None:
            raise self.damage(0, "its header cannot be read")
        return header, length

    @cached_property
    def _salt(self) -> int:
        return self.header()[0].salt

    def peek(self, offset: int, length: int) -> bytes:
        """Bytes as they are, unchecked."""
        return os.pread(self._descriptor, length, offset)

    def head_at(self, offset: int) -> FrameHead | None:
        """The head of the frame that starts here; None when none does, or not a whole one."""
        return parse_head(memoryview(os.pread(self._descriptor, HEAD_BYTES_MAX, offset)))

    def frame_at(self, offset: int) -> Frame:
        """The frame that is known to start here."""
        head = self.head_at(offset)
        if head is None:
            raise self.damage(offset, "no frame starts there")
        return self.load(head, offset)

    def load(self, head: FrameHead, offset: int) -> Frame:
        """The frame's keys, checked. Its payload is read when it is asked for."""
        buffer = pa.allocate_buffer(head.bytes)
        view = memoryview(buffer).cast("B")
        if self._fill(view[: head.keys], offset) < head.keys or not keys_intact(head, view, self._salt):
            raise self.damage(offset, "its checksum does not agree")
        return Frame(self, head, offset, buffer)

    def load_payload(self, head: FrameHead, offset: int, view: memoryview) -> None:
        rest = view[head.keys :]
        if self._fill(rest, offset + head.keys) < len(rest) or not payload_intact(head, view):
            raise self.damage(offset, "its payload's checksum does not agree")

    def frames(self, start: int, stop: int) -> Iterator[Frame]:
        """All frames between two offsets that are known to be frame boundaries."""
        while start < stop:
            head = self.head_at(start)
            if head is None or start + head.bytes > stop:
                raise self.damage(start, "no whole frame starts there")
            yield self.load(head, start)
            start += head.bytes

    def damage(self, offset: int, what: str) -> DefiniteError:
        return DamageError(f"segment {self.path} is damaged at byte {offset}: {what}", put_aside(self.path.parent))

    def _fill(self, view: memoryview, offset: int) -> int:
        done = 0
        while done < len(view):
            count = os.preadv(self._descriptor, [view[done:]], offset + done)
            if count == 0:
                break
            done += count
        return done


class Frame:
    """One batch of records in a segment."""

    def __init__(self, segment: SegmentReader, head: FrameHead, offset: int, buffer: pa.Buffer) -> None:
        self.head = head
        self.offset = offset
        self._segment = segment
        self._buffer = buffer
        self._whole = head.keys == head.bytes

    def keys(self) -> pa.RecordBatch:
        """The batch; its payload's data are undefined until `whole` was called."""
        return decode(self._buffer)

    def whole(self) -> pa.RecordBatch:
        """The batch with its payload, checked."""
        if not self._whole:
            self._segment.load_payload(self.head, self.offset, memoryview(self._buffer).cast("B"))
            self._whole = True
        return decode(self._buffer)
