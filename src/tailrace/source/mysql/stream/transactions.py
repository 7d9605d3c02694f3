"""A transaction of the binlog as the log has it: its number, its name, and what ends it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import xxhash

from tailrace.source.mysql.events.event import Event, Fields
from tailrace.source.mysql.events.gtids import Gtid, MariaDbGtid
from tailrace.source.mysql.events.table_map import AnnouncedTable

_PREPARED_BIT = 1 << 62
"""Ordinals are smaller."""
_NAME = re.compile(r"x'([0-9a-f]*)'\s*,\s*x'([0-9a-f]*)'\s*,\s*(\d+)", re.IGNORECASE)


@dataclass
class OpenTransaction:
    """One whose beginning has been read, and not its end."""

    xid: int
    begin: int
    """The ordinal of its first event."""
    gtid: Gtid | MariaDbGtid | None
    time_us: int
    xa: str = ""
    """Its name, if it will be prepared."""
    touched: dict[int, AnnouncedTable] = field(default_factory=dict)
    """Tables of which rows have come, by the server's number."""
    unsent: set[int] = field(default_factory=set)
    """Tables of which the log has been told that something could not be read."""


def prepared_xid(name: str) -> int:
    """The number of a transaction that is prepared: the same from its name at its end, days later."""
    return _PREPARED_BIT | xxhash.xxh64_intdigest(name.encode()) >> 2


def name_in_statement(text: str) -> str:
    """The name that follows `XA COMMIT`, in one form. ValueError for anything else."""
    found = _NAME.match(text.strip())
    if found is None:
        raise ValueError(f"{text!r} names no prepared transaction")
    return f"{found[1].lower()},{found[2].lower()},{int(found[3])}"


def name_in_event(event: Event) -> tuple[str, bool]:
    """The name of what was prepared, and whether it was committed at once."""
    fields = Fields(event)
    is_one_phase, kind, first, second = fields.number(1), fields.number(4), fields.number(4), fields.number(4)
    name = f"{fields.bytes(first).hex()},{fields.bytes(second).hex()},{kind}"
    return name, bool(is_one_phase)


def name_in_beginning(data: bytes) -> str:
    """As MariaDB writes it into a transaction's beginning."""
    kind, first = int.from_bytes(data[:4], "little"), data[4]
    return f"{data[6 : 6 + first].hex()},{data[6 + first :].hex()},{kind}"


def commit_detail(transaction: OpenTransaction) -> bytes:
    """What the log keeps of a commit beside its place: where the transaction began, and its name."""
    return transaction.begin.to_bytes(8, "big") + str(transaction.gtid or "").encode()


def of_detail(detail: bytes) -> tuple[int, str]:
    """The ordinal of the beginning, and the name; (0, "") for what is no commit."""
    return (int.from_bytes(detail[:8], "big"), detail[8:].decode()) if len(detail) >= 8 else (0, "")
