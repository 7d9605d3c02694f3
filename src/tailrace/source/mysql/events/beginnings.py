"""The event with which a transaction begins: its name, when it committed, and what kind it is.

MySQL      33 with a GTID, 34 without, 42 with a tag, which describes its own fields
MariaDB    162: the server is in the header, and flags say whether an end follows
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tailrace.source.mysql.events.event import Event, EventKind, Fields
from tailrace.source.mysql.events.gtids import Gtid, MariaDbGtid

_COMMIT_TIME_BIT = 1 << 55
_LOGICAL_CLOCK = 2
_SECOND_US = 1_000_000
_STANDALONE, _GROUP, _DDL, _PREPARED, _COMPLETED = 1, 2, 32, 64, 128
_START_ALTER, _ROLLBACK_ALTER = 2, 8
"""Extra flags: an ALTER in two phases has only begun, or is taken back."""
_FIELDS = ("flags", "uuid", "number", "tag", "last_committed", "sequence_number", "commit_time", "original_time")
_UUID_FIELD, _TAG_FIELD = 1, 3


@dataclass(frozen=True)
class Beginning:
    """How a transaction begins."""

    gtid: Gtid | MariaDbGtid | None
    """None without one."""
    time_us: int
    """When it committed at this server; 0 if the event does not say, and then its header's second counts."""
    is_standalone: bool = False
    """One statement, without an end of its own."""
    is_ddl: bool = False
    prepared: bytes = b""
    """The transaction of this XA name is prepared."""
    completed: bytes = b""
    """The prepared transaction of this XA name is committed or taken back."""
    is_provisional: bool = False
    """An ALTER that has only begun, or was taken back: nothing of it counts."""


def read_beginning(event: Event) -> Beginning:
    """`UnreadableEventError` for anything else."""
    if event.kind in (EventKind.GTID, EventKind.ANONYMOUS_GTID):
        return _mysql(event)
    if event.kind == EventKind.GTID_TAGGED:
        return _tagged(event)
    if event.kind == EventKind.MARIADB_GTID:
        return _mariadb(event)
    raise Fields(event).wrong("it begins no transaction")


def _mysql(event: Event) -> Beginning:
    fields = Fields(event)
    fields.number(1)
    source, number = UUID(bytes=bytes(fields.bytes(16))), fields.number(8)
    time_us = 0
    if fields.left and fields.number(1) == _LOGICAL_CLOCK:
        fields.bytes(16)
        if fields.left >= 7:
            time_us = fields.number(7) & ~_COMMIT_TIME_BIT
    gtid = Gtid(source, "", number) if event.kind == EventKind.GTID else None
    return Beginning(gtid, time_us)


def _tagged(event: Event) -> Beginning:
    """The fields have numbers and come in order; their writer says up to which one a reader must know them."""
    fields = Fields(event)
    version = _varlen(fields)
    size, last = _varlen(fields), _varlen(fields)
    if version != 1 or size != len(event.body) or last >= len(_FIELDS) + 4:
        raise fields.wrong("its fields are not known")
    uuid, tag, numbers = b"", "", dict[str, int]()
    while fields.left:
        place = _varlen(fields)
        if place >= len(_FIELDS):
            # What follows is not needed.
            break
        if place == _UUID_FIELD:
            uuid = bytes(_varlen(fields) & 0xFF for _ in range(16))
        elif place == _TAG_FIELD:
            tag = fields.text(_varlen(fields))
        elif place == _FIELDS.index("number"):
            numbers["number"] = _signed(fields)
        else:
            numbers[_FIELDS[place]] = _varlen(fields)
    if not uuid or "number" not in numbers:
        raise fields.wrong("it has no name")
    return Beginning(Gtid(UUID(bytes=uuid), tag, numbers["number"]), numbers.get("commit_time", 0))


def _varlen(fields: Fields) -> int:
    """The ones at the end of the first byte say how many bytes follow."""
    first = fields.number(1)
    more = (~first & (first + 1)).bit_length() - 1
    if more >= 8:
        return fields.number(8)
    return first >> (more + 1) | fields.number(more) << (7 - more)


def _signed(fields: Fields) -> int:
    """The lowest bit is the sign."""
    found = _varlen(fields)
    return -(found >> 1) - 1 if found & 1 else found >> 1


def _mariadb(event: Event) -> Beginning:
    fields = Fields(event)
    number, domain, flags = fields.number(8), fields.number(4), fields.number(1)
    xa = b""
    if flags & _GROUP:
        fields.bytes(8)
    if flags & (_PREPARED | _COMPLETED):
        head = bytes(fields.bytes(6))
        xa = head[:4] + bytes((head[4], head[5])) + bytes(fields.bytes(head[4] + head[5]))
    is_provisional = False
    if fields.left:
        extra = fields.number(1)
        is_provisional = bool(extra & (_START_ALTER | _ROLLBACK_ALTER))
    return Beginning(
        MariaDbGtid(domain, event.server_id, number),
        0,
        is_standalone=bool(flags & _STANDALONE),
        is_ddl=bool(flags & _DDL),
        prepared=xa if flags & _PREPARED else b"",
        completed=xa if flags & _COMPLETED else b"",
        is_provisional=is_provisional,
    )
