"""The frame: one record batch as it lies in a segment, with checksums over every byte of it.

A frame is an ordinary Arrow IPC message. Its custom metadata carry one line of fixed width, the *tag*:

    position=… rows=… flush=… bytes=… keys=… xxh3=… payload_xxh3=…

`bytes` is the frame's whole length, so a scan hops from frame to frame without reading bodies.
`keys` is the length of all that precedes the payload's data: the message's metadata and the fixed columns.
`xxh3` covers those (with both digests written as zeros), `payload_xxh3` covers the rest, so a reader that
finds none of its rows in the keys never reads the payload. `flush` is the position at which the flush began
that wrote the frame: what lies in one flush may be torn together, what precedes a later flush was durable.

The digest is salted with a number that each segment has for itself. A payload may contain a frame of another segment,
for example when such files are kept in a table. The salt tells it from a frame of this segment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import xxhash

from tailrace.log.files.record import RECORD, offsets

_TAG = re.compile(
    rb"position=(\d{20}) rows=(\d{10}) flush=(\d{20}) bytes=(\d{12}) keys=(\d{12})"
    rb" xxh3=([0-9a-f]{16}) payload_xxh3=([0-9a-f]{16})"
)
_CONTINUATION = b"\xff\xff\xff\xff"
_NO_DIGEST = b"0" * 16
_SCHEMA_BYTES = RECORD.serialize().size
_METADATA_ROOM = 4096

HEAD_BYTES_MAX = 4096
"""A frame's prefix and metadata are shorter than this."""


@dataclass(frozen=True)
class FrameHead:
    """What a frame says of itself. Trustworthy only once its keys have been checked."""

    position: int
    rows: int
    flush: int
    bytes: int
    keys: int
    metadata: int
    """Length of the prefix and the metadata."""
    digest: int
    payload_digest: int

    @property
    def position_next(self) -> int:
        return self.position + self.rows


class Encoder:
    """Makes frames of one segment, in one buffer that it keeps: a frame is valid until the next one is made."""

    def __init__(self, salt: int, compression: str | None = None) -> None:
        self._salt = salt
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self._is_compressed = compression is not None
        self._buffer = pa.allocate_buffer(0)

    def encode(self, batch: pa.RecordBatch, position: int, flush: int) -> tuple[FrameHead, memoryview]:
        """The frame's head and its bytes."""
        room = pa.ipc.get_record_batch_size(batch) + _SCHEMA_BYTES + _METADATA_ROOM
        if self._buffer.size < room:
            self._buffer = pa.allocate_buffer(room)
        sink = pa.FixedSizeBufferWriter(self._buffer)
        stream = pa.ipc.new_stream(sink, RECORD, options=self._options)
        stream.write_batch(batch, custom_metadata={"tailrace": _tag(position, batch.num_rows, flush)})
        frame = memoryview(self._buffer).cast("B")[_SCHEMA_BYTES : sink.tell()]
        where = offsets(batch.column(5))
        payload = 0 if self._is_compressed else _padded(int(where[-1] - where[0]))
        return _seal(frame, len(frame) - payload, self._salt)


def _seal(frame: memoryview, keys: int, salt: int) -> tuple[FrameHead, memoryview]:
    """Fill in the lengths and the digests that can only be known now."""
    metadata = 8 + int.from_bytes(frame[4:8], "little")
    match = _TAG.search(frame[:metadata])
    if match is None:
        raise AssertionError("Arrow wrote no custom metadata")
    start, tag = match.start(), match.re
    position, rows, flush = (int(group) for group in match.groups()[:3])
    frame[start : match.end()] = _tag(position, rows, flush, len(frame), keys)
    digest = xxhash.xxh3_64_intdigest(frame[:keys], salt)
    payload_digest = xxhash.xxh3_64_intdigest(frame[keys:])
    frame[start : match.end()] = _tag(position, rows, flush, len(frame), keys, digest, payload_digest)
    if tag.search(frame[:metadata]) is None:
        raise AssertionError("the tag changed its length")
    return FrameHead(position, rows, flush, len(frame), keys, metadata, digest, payload_digest), frame


def parse_head(start: memoryview) -> FrameHead | None:
    """The head of the frame that begins with these bytes, or None when no whole head is there."""
    if len(start) < 8 or start[:4] != _CONTINUATION:
        return None
    metadata = 8 + int.from_bytes(start[4:8], "little")
    match = _TAG.search(start[:metadata]) if 8 < metadata <= min(len(start), HEAD_BYTES_MAX) else None
    if match is None:
        return None
    position, rows, flush, length, keys = (int(group) for group in match.groups()[:5])
    if not metadata <= keys <= length:
        return None
    return FrameHead(position, rows, flush, length, keys, metadata, int(match[6], 16), int(match[7], 16))


def keys_intact(head: FrameHead, frame: memoryview, salt: int) -> bool:
    """Whether the metadata and the fixed columns are as they were written, in the segment with this salt."""
    metadata = bytes(frame[: head.metadata])
    match = _TAG.search(metadata)
    if match is None:
        return False
    zeroed = b"".join((metadata[: match.start(6)], _NO_DIGEST, metadata[match.end(6) : match.start(7)], _NO_DIGEST))
    digest = xxhash.xxh3_64(zeroed, salt)
    digest.update(metadata[match.end(7) :])
    digest.update(frame[head.metadata : head.keys])
    return digest.intdigest() == head.digest


def payload_intact(head: FrameHead, frame: memoryview) -> bool:
    """Whether the payload's data are as they were written."""
    return xxhash.xxh3_64_intdigest(frame[head.keys : head.bytes]) == head.payload_digest


def decode(frame: pa.Buffer) -> pa.RecordBatch:
    """The batch of a frame whose keys are intact, without copying."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(frame), RECORD)


def _tag(position: int, rows: int, flush: int, length: int = 0, keys: int = 0, *digests: int) -> bytes:
    digest, payload_digest = digests or (0, 0)
    return (
        f"position={position:020d} rows={rows:010d} flush={flush:020d} bytes={length:012d} keys={keys:012d}"
        f" xxh3={digest:016x} payload_xxh3={payload_digest:016x}"
    ).encode()


def _padded(length: int) -> int:
    return (length + 7) // 8 * 8
