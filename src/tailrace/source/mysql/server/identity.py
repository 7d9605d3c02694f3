"""Which server this is, whether its changes can be copied exactly, and where its binlog ends."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from tailrace.errors import DefiniteError, MovedError
from tailrace.source.mysql.events.gtids import Gtid, GtidSet, MariaDbGtid, MariaDbPosition
from tailrace.source.mysql.server.connection import ask

_WANTED = {
    "log_bin": ("ON", "1"),
    "binlog_format": ("ROW",),
    "binlog_row_image": ("FULL",),
    "binlog_row_metadata": ("FULL",),
    "binlog_row_value_options": ("",),
    "gtid_mode": ("ON",),
}
"""Each as the server prints it. A server that does not know one of them has nothing to set."""
_HINTS = {
    "log_bin": "start the server with --log-bin and a --server-id",
    "gtid_mode": "set global gtid_mode = ON, step by step, as the manual says",
}


@dataclass(frozen=True)
class ServerIdentity:
    """A server is known by the name that it gave itself, not by its address."""

    uuid: str
    is_mariadb: bool
    version: str
    base: str
    """What its files are called, without their numbers."""

    @property
    def log_identity(self) -> dict[str, str]:
        """What a log and a lake must agree on."""
        make = "mariadb" if self.is_mariadb else "mysql"
        return {"source": "mysql", "database": make, "server": self.uuid}


@dataclass(frozen=True)
class BinlogFile:
    """One file that the server has."""

    name: str
    size: int


def identify(connection: Connection[Any]) -> ServerIdentity:
    """A definite error, with what to set, unless the server logs whole rows that can be read."""
    found = variables(connection, *_WANTED, "version", "server_uuid", "server_uid", "server_id", "log_bin_basename")
    for name, wanted in _WANTED.items():
        if name in found and found[name].upper() not in wanted:
            hint = _HINTS.get(name, f"set global {name} = '{wanted[0]}'")
            raise DefiniteError(f"the server has {name} = '{found[name]}', which loses changes", hint)
    uuid = found.get("server_uuid") or f"{found.get('server_uid', '')}/{found['server_id']}"
    base = os.path.basename(found["log_bin_basename"].replace("\\", "/"))
    return ServerIdentity(uuid, "mariadb" in found["version"].lower(), found["version"], base)


def require_identity(known: Mapping[str, str], found: ServerIdentity) -> None:
    """A server at the same address may be another one than the log was written from."""
    if dict(known) != found.log_identity:
        raise MovedError(
            f"the server is {found.uuid}; the log is of {known.get('server')}",
            "connect to the server that the log was written from",
        )


def variables(connection: Connection[Any], *names: str) -> dict[str, str]:
    """Of these the ones that the server knows."""
    listed = ", ".join(f"'{name}'" for name in names)
    rows = ask(connection, f"show global variables where variable_name in ({listed})")
    return {str(name): str(value) for name, value in rows}


def end_of_binlog(connection: Connection[Any], is_mariadb: bool) -> tuple[str, int]:
    """The file and the offset after the last whole transaction."""
    name = "master" if is_mariadb or _version(connection) < (8, 2) else "binary log"
    rows = ask(connection, f"show {name} status")
    if not rows:
        raise DefiniteError("the server writes no binlog", _HINTS["log_bin"])
    return str(rows[0][0]), int(rows[0][1])


def _version(connection: Connection[Any]) -> tuple[int, ...]:
    text = str(ask(connection, "select version()")[0][0])
    return tuple(int(part) for part in text.split("-", maxsplit=1)[0].split(".")[:2])


def binlog_files(connection: Connection[Any]) -> list[BinlogFile]:
    """Oldest first."""
    return [BinlogFile(str(row[0]), int(row[1])) for row in ask(connection, "show binary logs")]


def has_committed(connection: Connection[Any], is_mariadb: bool, name: str) -> bool:
    """Whether the server has the transaction of this name."""
    if is_mariadb:
        text = str(ask(connection, "select @@global.gtid_binlog_pos")[0][0])
        return MariaDbGtid(*map(int, name.split("-"))) in MariaDbPosition.parse(text)
    text = str(ask(connection, "select @@global.gtid_executed")[0][0])
    wanted = GtidSet.parse(name)
    ((source, tag), intervals) = next(iter(wanted.members.items()))
    return Gtid(source, tag, intervals[0][0]) in GtidSet.parse(text)
