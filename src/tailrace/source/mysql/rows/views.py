"""States of a server under which rows are read, and which logged transactions each of them does not show.

Nothing is written or locked. MySQL sends a transaction to readers of its binlog before it shows it to others, and adds
it to `gtid_executed` only after that. So the set that was read before the state was taken has nothing that the state
does not show, and the end of the binlog after it lies after all that it shows:

    G = gtid_executed        the state is taken        P = end of the binlog
    in G: shown              between: perhaps          after P: not shown

What is not in G is played again over the rows. It may be shown already, which changes nothing, because every change has
the whole row. MariaDB counts the other way round: `gtid_binlog_pos` has transactions that are not shown yet. But a
state there knows the place in the binlog at which it stands, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pymysql.connections import Connection

from tailrace.errors import DefiniteError
from tailrace.source.door.values import View
from tailrace.source.mysql.events.gtids import Gtid, GtidSet
from tailrace.source.mysql.server.address import ServerAddress
from tailrace.source.mysql.server.connection import ask, connected
from tailrace.source.mysql.server.identity import end_of_binlog, identify
from tailrace.source.mysql.stream.places import BinlogPlace, file_of
from tailrace.source.mysql.stream.transactions import of_detail

_BEGIN = "start transaction with consistent snapshot, read only"
_EXECUTED, _UPTO = "executed", "upto"


@dataclass(frozen=True)
class ReadState:
    """One consistent state of all databases of a server."""

    connection: Connection[Any]
    """Reads under it."""
    place: BinlogPlace
    """At or after every transaction that it shows."""
    view: View
    is_exact: bool
    """Whether `unseen` lists exactly what it does not show; else it may list more."""


@contextmanager
def read_state(address: ServerAddress, history: int = 0) -> Iterator[ReadState]:
    """A state, valid inside the `with`. Needs no more rights than reading rows and asking where the binlog ends."""
    with connected(address) as asking, connected(address) as reading:
        identity = identify(asking)
        executed = "" if identity.is_mariadb else str(ask(asking, "select @@global.gtid_executed")[0][0])
        ask(reading, "set transaction isolation level repeatable read")
        ask(reading, _BEGIN)
        if identity.is_mariadb:
            found = {str(name).lower(): value for name, value in ask(reading, "show status like 'binlog_snapshot_%'")}
            place = _place(history, str(found["binlog_snapshot_file"]), int(found["binlog_snapshot_position"]))
            yield ReadState(reading, place, {_UPTO: place.ordinal}, is_exact=True)
        else:
            place = _place(history, *end_of_binlog(asking, is_mariadb=False))
            yield ReadState(reading, place, {_EXECUTED: executed.replace("\n", "")}, is_exact=False)


def _place(history: int, file: str, offset: int) -> BinlogPlace:
    return BinlogPlace(history, file_of(file)[1], offset)


def unseen(view: View, transactions: pa.Table) -> npt.NDArray[np.bool_]:
    """For each of some transactions of the log's index, whether the view does not show it."""
    if _UPTO in view:
        ordinals = transactions.column("commit_ordinal").to_numpy()
        after: npt.NDArray[np.bool_] = ordinals > np.uint64(view[_UPTO])
        return after
    executed = GtidSet.parse(view[_EXECUTED])
    names = [of_detail(detail)[1] for detail in transactions.column("detail").to_pylist()]
    return np.array([_gtid(name) not in executed for name in names], np.bool_)


def _gtid(name: str) -> Gtid:
    """The name of one transaction of MySQL."""
    source, *tag, number = name.split(":")
    try:
        return Gtid(UUID(source), tag[0] if tag else "", int(number))
    except ValueError:
        raise DefiniteError(f"the log has a transaction {name!r}, which is none of MySQL", "report it") from None
