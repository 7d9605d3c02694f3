"""An event of the binlog: its header, its checksum, and the description at the head of each file.

    timestamp 4  kind 1  server_id 4  size 4  log_pos 4  flags 2  │  body  │  crc32 4, where the file has checksums

All numbers are little endian. Every event says how long it is, and that must be how long it is. What an event of an
unknown kind did cannot be known, so it stops us, unless its writer has marked it as one that may be ignored.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from tailrace.errors import DamageError, DefiniteError

HEADER_BYTES = 19
ARTIFICIAL = 0x20
"""Made for this connection: it is in no file."""
IGNORABLE = 0x80
_HEADER = struct.Struct("<IBIIIH")
_CRC = struct.Struct("<I")
_CRC32, _NO_CHECKSUM = 1, 0
_FORMAT = struct.Struct("<H50sIB")
_FORMAT_VERSION = 4


class EventKind(IntEnum):
    """The kinds that are known, of both makes."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    RAND = 13
    USER_VAR = 14
    FORMAT = 15
    XID = 16
    BEGIN_LOAD = 17
    EXECUTE_LOAD = 18
    TABLE_MAP = 19
    WRITE_ROWS_1 = 23
    UPDATE_ROWS_1 = 24
    DELETE_ROWS_1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_1 = 166
    UPDATE_ROWS_COMPRESSED_1 = 167
    DELETE_ROWS_COMPRESSED_1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


_KINDS = frozenset(EventKind)


class UnreadableEventError(DamageError):
    """An event is not what its kind says, or of a kind that is not known here. What follows it cannot be trusted."""


def unreadable(kind: int, reason: str) -> UnreadableEventError:
    known = EventKind(kind).name if kind in _KINDS else str(kind)
    return UnreadableEventError(
        f"an event of the binlog of kind {known} cannot be read: {reason}",
        "report it, with the version of the server; nothing after it was taken",
    )


@dataclass(frozen=True)
class Event:
    """One event, without its checksum."""

    kind: int
    timestamp: int
    """Seconds since 1970; 0 if the server made the event for this connection."""
    server_id: int
    size: int
    """With header and checksum: how far it reaches in its file."""
    log_pos: int
    """Where it ends in its file, modulo 2^32; 0 where the server does not say."""
    flags: int
    body: memoryview

    @property
    def is_artificial(self) -> bool:
        return bool(self.flags & ARTIFICIAL)

    @property
    def is_known(self) -> bool:
        return self.kind in _KINDS

    @property
    def may_be_ignored(self) -> bool:
        return bool(self.flags & IGNORABLE)


def read_event(data: bytes | memoryview, *, has_checksum: bool) -> Event:
    """The event that these bytes are. `UnreadableEventError` unless they are one, whole and undamaged."""
    view = memoryview(data)
    if len(view) < HEADER_BYTES:
        raise unreadable(0, f"it has {len(view)} bytes")
    timestamp, kind, server_id, size, log_pos, flags = _HEADER.unpack_from(view)
    if size != len(view):
        raise unreadable(kind, f"it says that it has {size} bytes and has {len(view)}")
    end = len(view)
    if kind == EventKind.FORMAT:
        has_checksum = _checksum_of(view) == _CRC32
        # The field is there also where its algorithm is none.
        end -= _CRC.size
    elif has_checksum:
        end -= _CRC.size
    if end < HEADER_BYTES:
        raise unreadable(kind, "it ends before its checksum")
    if has_checksum and not _is_whole(view, end):
        raise unreadable(kind, "its checksum is another one")
    return Event(kind, timestamp, server_id, size, log_pos, flags, view[HEADER_BYTES:end])


def _is_whole(view: memoryview, end: int) -> bool:
    """The server computes the checksum of a file's description without the flag of a file in use."""
    expected = _CRC.unpack_from(view, end)[0]
    if zlib.crc32(view[:end]) == expected:
        return True
    head = bytearray(view[:end])
    head[_HEADER.size - 2] &= ~1 & 0xFF
    return view[4] == EventKind.FORMAT and zlib.crc32(head) == expected


def _checksum_of(view: memoryview) -> int:
    """The algorithm that a file's description names, just before its own checksum."""
    if len(view) < HEADER_BYTES + _FORMAT.size + 1 + _CRC.size:
        raise unreadable(EventKind.FORMAT, "it is too short")
    algorithm = view[-_CRC.size - 1]
    if algorithm not in (_NO_CHECKSUM, _CRC32):
        raise unreadable(EventKind.FORMAT, f"checksums of kind {algorithm} are not known")
    return algorithm


@dataclass(frozen=True)
class BinlogFormat:
    """What a file's description says of the events in it."""

    server_version: str
    has_checksum: bool

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()


def read_format(event: Event) -> BinlogFormat:
    """A definite error for a format in which we would read other bytes than were written."""
    if len(event.body) < _FORMAT.size + 1:
        raise unreadable(event.kind, "it is too short")
    version, server, _, header_bytes = _FORMAT.unpack_from(event.body)
    server_version = server.rstrip(b"\0").decode("ascii", "replace")
    if (version, header_bytes) != (_FORMAT_VERSION, HEADER_BYTES):
        raise DefiniteError(
            f"the binlog of server {server_version} has format {version}, which is not known here",
            "a server of MySQL 8.0 or later, or of MariaDB 10.5 or later, can be read",
        )
    post_headers = event.body[_FORMAT.size : -1]
    _require_post_headers(post_headers, event)
    return BinlogFormat(server_version, event.body[-1] == _CRC32)


def _require_post_headers(lengths: memoryview, event: Event) -> None:
    """The fixed part of each kind that we read must be as long as we think."""
    wanted = {EventKind.QUERY: 13, EventKind.TABLE_MAP: 8, EventKind.ROTATE: 8}
    wanted |= dict.fromkeys((EventKind.WRITE_ROWS_1, EventKind.UPDATE_ROWS_1, EventKind.DELETE_ROWS_1), 8)
    wanted |= dict.fromkeys((EventKind.WRITE_ROWS, EventKind.UPDATE_ROWS, EventKind.DELETE_ROWS), 10)
    for kind, length in wanted.items():
        # A server that does not know a kind any more says 0.
        if kind <= len(lengths) and lengths[kind - 1] not in (0, length):
            raise unreadable(event.kind, f"events of kind {kind.name} have {lengths[kind - 1]} bytes before the body")


class Fields:
    """Reads a body from its beginning. `UnreadableEventError` at its end."""

    def __init__(self, event: Event, data: memoryview | None = None) -> None:
        self._kind = event.kind
        self._data = event.body if data is None else data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def wrong(self, reason: str) -> UnreadableEventError:
        return unreadable(self._kind, reason)

    def bytes(self, count: int) -> memoryview:
        """The next so many."""
        if count < 0 or count > self.left:
            raise self.wrong("it ends too early")
        found = self._data[self.at : self.at + count]
        self.at += count
        return found

    def rest(self) -> memoryview:
        return self.bytes(self.left)

    def number(self, count: int) -> int:
        """An unsigned number of so many bytes."""
        return int.from_bytes(self.bytes(count), "little")

    def packed(self) -> int:
        """A number of one byte, or of two, three or eight after a byte that says so."""
        first = self.number(1)
        if first < 251:
            return first
        sizes = {252: 2, 253: 3, 254: 8}
        if first not in sizes:
            raise self.wrong(f"{first} is no length")
        return self.number(sizes[first])

    def text(self, count: int) -> str:
        """In UTF-8, as all names are."""
        try:
            return bytes(self.bytes(count)).decode()
        except UnicodeDecodeError:
            raise self.wrong("a name is not UTF-8") from None
