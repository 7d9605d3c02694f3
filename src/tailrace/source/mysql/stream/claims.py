"""What a lake's connector keeps of its place at a server: nothing is made there, so the claim is all there is.

No slot keeps the binlog for us. It is read at once and kept in our log, and at each connection the server has to show
that it still has what follows the log's end, and that the log's last transaction is its own.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection
from pymysql.err import MySQLError

from tailrace.errors import GapError, TransientError
from tailrace.model.position import SourcePosition
from tailrace.source.mysql.server.connection import ask
from tailrace.source.mysql.server.identity import (
    BinlogFile,
    ServerIdentity,
    binlog_files,
    end_of_binlog,
    has_committed,
)
from tailrace.source.mysql.stream.places import FIRST_OFFSET, BinlogPlace, file_name, file_of
from tailrace.source.mysql.stream.reading import AGAIN
from tailrace.source.mysql.stream.transactions import of_detail

_SERVER_IDS = 1 << 31
"""Servers have small numbers, so readers have large ones."""
_OFFSETS = 1 << 32
_ROTATE_BYTES_MAX = 19 + 8 + 512 + 4
_NO_EVENT_THERE = 1220


@dataclass(frozen=True)
class BinlogClaim:
    """Chosen once, and stored before anything is read."""

    server_id: int
    """Under which the server knows this reader; each of its readers needs another one."""
    uuid: str
    base: str
    """What the server's files are called, without their numbers."""
    begin: int
    """The ordinal at which the log begins."""

    @classmethod
    def made(cls, connection: Connection[Any], identity: ServerIdentity, history: int = 0) -> BinlogClaim:
        """A claim to what follows now."""
        name, offset = end_of_binlog(connection, identity.is_mariadb)
        base, number = file_of(name)
        begin = BinlogPlace(history, number, offset).ordinal
        return cls(_SERVER_IDS + secrets.randbelow(_SERVER_IDS - 1), str(uuid4()), base, begin)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> BinlogClaim:
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def restarted(self, connection: Connection[Any], identity: ServerIdentity, end: SourcePosition) -> BinlogClaim:
        """After a gap: a claim to what follows now, in a log that ends at `end`."""
        now = BinlogClaim.made(connection, identity, BinlogPlace.of(max(end.ordinal, self.begin)).history + 1)
        return replace(self, base=now.base, begin=now.begin)


def require_continuity(
    connection: Connection[Any], identity: ServerIdentity, place: BinlogPlace, last_commit: SourcePosition
) -> None:
    """A `GapError` unless the server has what follows `place`, and the last transaction of the log is one of its own.

    The event at the place where that one began must still have its name. So a server whose binlog begins again is told
    from the one that was read, also where its files are called the same and are long enough."""
    files = {each.name: each for each in binlog_files(connection)}
    found = files.get(file_name(identity.base, place.file))
    if found is None:
        raise GapError(f"the server has no file {place.file:06} of its binlog any more, where the log ends", AGAIN)
    if place.offset > found.size:
        raise GapError(f"the server's binlog is shorter than what was read of it, up to {place}", AGAIN)
    begin, name = of_detail(last_commit.detail)
    if not name or BinlogPlace.of(begin).history != place.history:
        return
    if not has_committed(connection, identity.is_mariadb, name):
        raise GapError(f"the server does not have transaction {name}, which the log has", AGAIN)
    began = BinlogPlace.of(begin)
    file = files.get(file_name(identity.base, began.file))
    if file is not None and not _is_there(connection, file, began.offset, name):
        raise GapError(f"the server has another transaction than {name} at {began}", AGAIN)


def _is_there(connection: Connection[Any], file: BinlogFile, offset: int, name: str) -> bool:
    """Whether the transaction of this name begins there."""
    if offset >= _OFFSETS:
        return True
    try:
        rows = ask(connection, f"show binlog events in %s from {offset} limit 1", file.name)
    except MySQLError as error:
        if error.args[0] == _NO_EVENT_THERE:
            return False
        raise
    return bool(rows) and re.search(rf"(?<![\w:-]){re.escape(name)}(?![\w:-])", str(rows[0][5])) is not None


def begin_of_dump(connection: Connection[Any], identity: ServerIdentity, place: BinlogPlace) -> BinlogPlace:
    """Where to ask the server to begin. Its command has 32 bits for an offset. Where a file is longer, because of one
    large transaction, the server begins the next file right after that."""
    if place.offset < _OFFSETS:
        return place
    sizes = {each.name: each.size for each in binlog_files(connection)}
    size = sizes[file_name(identity.base, place.file)]
    if file_name(identity.base, place.file + 1) in sizes and size - place.offset <= _ROTATE_BYTES_MAX:
        return BinlogPlace(place.history, place.file + 1, FIRST_OFFSET)
    raise TransientError(f"the server has not begun the next file of its binlog after {place} yet")
