"""Where in the server's files the stream is, and what is there.

Every event that lies in a file is counted, and where its header says where it ends, it must end there. Events that the
server makes for the connection lie in none: they say which file comes, and that nothing more has happened.
"""

from __future__ import annotations

import zlib
from enum import Enum, auto

from tailrace.errors import GapError
from tailrace.source.mysql.events.event import (
    BinlogFormat,
    Event,
    EventKind,
    Fields,
    read_event,
    read_format,
    unreadable,
)
from tailrace.source.mysql.stream.places import FIRST_OFFSET, BinlogPlace, file_of

AGAIN = "run the same command again: it copies every table again"
_OFFSETS = 1 << 32
_CHECKSUM_BYTES = 4


class Met(Enum):
    """What an event means for the place."""

    EVENT = auto()
    """It lies in the file."""
    FILE = auto()
    """The events of a file are described. Its numbers of tables are its own."""
    NEXT_FILE = auto()
    """The file has ended, with or without an end of its own."""
    NOTHING_MORE = auto()
    """All that was committed before this place has been sent."""


class BinlogReading:
    """Counts. For one thread."""

    def __init__(self, begin: BinlogPlace, base: str) -> None:
        self.at = begin
        """Everything before has been read."""
        self._base = base
        self._format: BinlogFormat | None = None

    @property
    def is_mariadb(self) -> bool:
        return self._format is not None and self._format.is_mariadb

    def read(self, data: bytes) -> tuple[Met, Event]:
        """One event, as it was sent, and what it means."""
        event = read_event(data, has_checksum=self._has_checksum(data))
        if event.kind == EventKind.ROTATE:
            return self._rotate(event), event
        if event.kind in (EventKind.HEARTBEAT, EventKind.HEARTBEAT_2) or event.is_artificial:
            return Met.NOTHING_MORE, event
        if event.kind == EventKind.FORMAT:
            self._format = read_format(event)
            if event.log_pos:
                self._advance(event)
            return Met.FILE, event
        self._advance(event)
        return Met.EVENT, event

    def _has_checksum(self, data: bytes) -> bool:
        """Before the file's description has come, a checksum is there if it is right."""
        if self._format is not None:
            return self._format.has_checksum
        body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        return zlib.crc32(body) == int.from_bytes(checksum, "little")

    def _advance(self, event: Event) -> None:
        self.at = self.at.after(event.size)
        if event.log_pos and event.log_pos != self.at.offset % _OFFSETS:
            raise unreadable(event.kind, f"it ends at {event.log_pos}, and {self.at.offset} bytes were read")

    def _rotate(self, event: Event) -> Met:
        """The next file, at a file's end; the present one, when the stream begins. Made for the connection, it also
        comes where a file has no end, because the server had none either."""
        fields = Fields(event)
        offset, name = fields.number(8), fields.text(fields.left)
        base, number = file_of(name)
        if base != self._base:
            raise GapError(f"the server's binlog is called {base} now, and was {self._base}", AGAIN)
        if number == self.at.file:
            if self.at.offset % _OFFSETS != offset:
                raise unreadable(event.kind, f"the stream begins at {offset}, and not at {self.at.offset}")
            return Met.NOTHING_MORE
        if number != self.at.file + 1 or offset != FIRST_OFFSET:
            raise GapError(f"after file {self.at.file:06} of the binlog the server sends {name}", AGAIN)
        self.at = BinlogPlace(self.at.history, number, FIRST_OFFSET)
        return Met.NEXT_FILE
