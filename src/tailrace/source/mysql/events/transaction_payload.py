"""The event in which MySQL puts a whole transaction, compressed (`binlog_transaction_compression`).

{ field, length, value } …   0   │  the events, one after another, without checksums
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tailrace.source.mysql.events.event import HEADER_BYTES, Event, Fields, read_event, unreadable

_END, _SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_SIZE_AT = 9


def events_inside(event: Event) -> Iterator[Event]:
    """The events of a payload, in order. `UnreadableEventError` for one that cannot be opened."""
    fields = Fields(event)
    told = dict[int, int]()
    while (field := fields.packed()) != _END:
        value = Fields(event, fields.bytes(fields.packed()))
        if field not in (_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE):
            raise fields.wrong(f"its field {field} is not known here")
        told[field] = value.packed()
    compressed = bytes(fields.rest())
    if told.get(_SIZE, len(compressed)) != len(compressed):
        raise fields.wrong("it says another length than it has")
    data = memoryview(_opened(event, told, compressed))
    at = 0
    while at < len(data):
        if len(data) - at < HEADER_BYTES:
            raise fields.wrong("it ends inside an event")
        size = int.from_bytes(data[at + _SIZE_AT : at + _SIZE_AT + 4], "little")
        if not HEADER_BYTES <= size <= len(data) - at:
            raise fields.wrong("it ends inside an event")
        yield read_event(data[at : at + size], has_checksum=False)
        at += size


def _opened(event: Event, told: dict[int, int], compressed: bytes) -> bytes:
    compression = told.get(_COMPRESSION, _NONE)
    if compression == _NONE:
        return compressed
    if compression != _ZSTD or _UNCOMPRESSED_SIZE not in told:
        raise unreadable(event.kind, f"it is compressed in a way ({compression}) that is not known here")
    try:
        found: bytes = pa.input_stream(pa.py_buffer(compressed), compression="zstd").read()
    except OSError:
        raise unreadable(event.kind, "what is compressed in it is damaged") from None
    if len(found) != told[_UNCOMPRESSED_SIZE]:
        raise unreadable(event.kind, "what is compressed in it has another length")
    return found
