"""Events with rows, cut into the rows that the log keeps.

    table 6  flags 2  [more]  columns  │  which columns are there, for each image  │  image [image]  image [image] …

One record of the log is one row (`values.images`), so each has a place of its own. The bytes of a row are copied as
they are; what they mean is found out when they are decoded.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailrace.model.kind import Kind
from tailrace.source.mysql.events.event import Event, EventKind, Fields, unreadable
from tailrace.source.mysql.events.table_map import AnnouncedTable
from tailrace.source.mysql.values import row_kernel as kernel

_KINDS = {
    **dict.fromkeys((23, 30, 166, 169), Kind.INSERT),
    **dict.fromkeys((24, 31, 39, 167, 170), Kind.UPDATE),
    **dict.fromkeys((25, 32, 168, 171), Kind.DELETE),
}
_SECOND_VERSION = (30, 31, 32, 39, 169, 170, 171)
_COMPRESSED = range(166, 172)
_STATEMENT_ENDS = 1
_TABLE_ID_DUMMY = 0xFFFFFF
"""An event without rows that only ends a statement."""
_ROWS_FIRST = 64


@dataclass(frozen=True)
class RowsEvent:
    """An event with rows of one table, all of one kind of change."""

    kind: Kind
    table_id: int
    ends_statement: bool
    is_partial_json: bool
    """Its documents are differences to the old ones."""
    widths: int
    """How many columns the table has."""
    presents: Any
    """For each image of a row, a flag for each column: whether it is there."""
    bits: bytes
    """The same as the event has it."""
    data: Any
    """The images."""

    @property
    def is_empty(self) -> bool:
        """It changes nothing."""
        return self.table_id == _TABLE_ID_DUMMY or len(self.data) == 0


@dataclass(frozen=True)
class CutRows:
    """The payloads of the log's records, one after another."""

    data: Any
    ends: Any
    """Where each of them ends."""

    def __len__(self) -> int:
        return len(self.ends)

    def payloads(self) -> list[bytes]:
        """Each by itself."""
        starts = [0, *self.ends[:-1].tolist()] if len(self.ends) else []
        return [self.data[start:end].tobytes() for start, end in zip(starts, self.ends.tolist(), strict=True)]


def is_rows(kind: int) -> bool:
    return kind in _KINDS


def read_rows(event: Event) -> RowsEvent:
    """`UnreadableEventError` for anything else."""
    kind = _KINDS[event.kind]
    fields = Fields(event)
    table_id, flags = fields.number(6), fields.number(2)
    if event.kind in _SECOND_VERSION:
        fields.bytes(fields.number(2) - 2)
    width = fields.packed()
    images = 2 if kind == Kind.UPDATE else 1
    bits = bytes(fields.bytes(images * ((width + 7) // 8)))
    each = np.frombuffer(bits, np.uint8).reshape(images, -1)
    presents = np.unpackbits(each, axis=1, count=width, bitorder="little").astype(np.bool_)
    rest = bytes(fields.rest())
    data = np.frombuffer(inflated(event, rest) if event.kind in _COMPRESSED else rest, np.uint8)
    is_partial_json = event.kind == EventKind.PARTIAL_UPDATE_ROWS
    return RowsEvent(kind, table_id, bool(flags & _STATEMENT_ENDS), is_partial_json, width, presents, bits, data)


def cut(event: Event, rows: RowsEvent, table: AnnouncedTable) -> CutRows:
    """The rows, as payloads. The table has no problem, and the event no partial documents."""
    if rows.widths != len(table.columns):
        raise unreadable(event.kind, f"it has {rows.widths} columns, and its table has {len(table.columns)}")
    if not rows.presents.any(axis=1).all():
        raise unreadable(event.kind, "it has rows without columns")
    widths = np.array([type_.width for type_ in table.types], np.int64)
    span = np.array((0, len(rows.data)), np.int64)
    bounds = np.empty(_ROWS_FIRST, np.int64)
    while (count := kernel.cut(rows.data, span, widths, rows.presents, bounds)) == -2:
        bounds = np.empty(len(bounds) * 8, np.int64)
    if count < 0:
        raise unreadable(event.kind, "it does not end with a row")
    ends = bounds[:count]
    is_whole = bool(rows.presents.all())
    head = np.frombuffer(b"\0" if is_whole else b"\1" + rows.bits, np.uint8)
    out = np.empty(len(rows.data) + count * len(head), np.uint8)
    kernel.joined(rows.data, 0, ends, head, out)
    return CutRows(out, ends + len(head) * np.arange(1, count + 1))


def inflated(event: Event, data: bytes) -> bytes:
    """A part of an event that MariaDB has compressed: three bits of its first byte say how many bytes its length has,
    big endian."""
    if not data:
        raise unreadable(event.kind, "it ends before what is compressed")
    size = data[0] & 0x07
    length = int.from_bytes(data[1 : 1 + size], "big")
    if data[0] & 0xF8 != 0x80 or not size:
        raise unreadable(event.kind, "it is compressed in a way that is not known here")
    try:
        found = zlib.decompress(data[1 + size :])
    except zlib.error:
        raise unreadable(event.kind, "what is compressed in it is damaged") from None
    if len(found) != length:
        raise unreadable(event.kind, "what is compressed in it has another length")
    return found
