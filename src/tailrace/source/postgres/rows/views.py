"""Which transactions a state of the database shows, and states for some seconds that chunks are read under.

A transaction is in the server's log before others see it: its commit record is written first, and it may then wait for
a standby for as long as that is away. So a state is no place in the log. A *view* says what it shows:

    primary   {"xmin": 740, "xmax": 745, "xip": [741, 743]}   all before 745, but for those two that were open
    standby   {"replayed": 50331648}                          all whose commit ends at or before this ordinal

The server's own list of open transactions is always empty on a standby. But there a transaction is seen when its commit
is replayed, and commits are replayed in the order of the log. So the view of a standby is what it had replayed before
its state was taken. Some more may be shown: what was replayed until it was taken.

After a gap, a view has `gap_from` too, where the log ended: the server that follows may have begun again to count its
transactions, so of those before none is unseen for its number alone, and none at all if they are void (`history`).

Nothing is left at the server after a crash: the state ends with its connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from tailrace.errors import TransientError
from tailrace.source.door.rows import WindowPoint
from tailrace.source.door.values import View, Waiting
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.rows.watermarks import READ_ONLY, Watermarks
from tailrace.source.postgres.server.connection import connect, explained
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.server.identity import flush_soon, is_flushed, wal_position
from tailrace.source.postgres.server.lsn import Lsn

QUERIES = load("rows/views.sql")
TURN_SECONDS = 0.05


def read_view(conn: psycopg.Connection) -> View:
    """What the transaction shows, or, outside of one, what the server shows now."""
    snapshot, replayed = conn.execute(QUERIES["view"]).fetchone() or ("", None)
    if replayed is not None:
        return {"replayed": int(Lsn.parse(replayed))}
    xmin, xmax, xip = snapshot.split(":")
    return {"xmin": int(xmin), "xmax": int(xmax), "xip": [int(xid) for xid in xip.split(",") if xid]}


def unseen(view: View, transactions: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each of some logged transactions, whether the view does not show it."""
    is_old = np.zeros(len(transactions), np.bool_)
    if "gap_from" in view:
        is_old = transactions.column("commit_ordinal").to_numpy() <= np.uint64(view["gap_from"])
    is_void = is_old & view.get("is_void", False)
    if "replayed" in view:
        ends = transactions.column("end_ordinal").to_numpy()
        return np.asarray((ends > np.uint64(view["replayed"])) & ~is_void)
    xids = widened(transactions.column("xid").to_numpy(), view["xmax"])
    is_open = np.isin(xids, np.array(view["xip"], np.int64))
    return np.asarray(((xids >= view["xmax"]) & ~is_old) | (is_open & ~is_void))


def widened(xids: np.ndarray[Any, Any], near: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The stream has the last 32 bits of a transaction's number alone: the whole number that is nearest to `near`."""
    distance = (xids.astype(np.uint32) - np.uint32(near & 0xFFFFFFFF)).view(np.int32)
    return distance.astype(np.int64) + near


@contextmanager
def window(
    dsn: str, waiting: Waiting, watermarks: Watermarks = READ_ONLY, history: History = FIRST
) -> Iterator[WindowPoint]:
    """See `Rows.window`."""
    with explained(dsn), closing(connect(dsn)) as conn:
        with watermarks.around(conn):
            before = read_view(conn)
            conn.execute("begin isolation level repeatable read read only")
            (token,) = conn.execute(QUERIES["export"]).fetchone() or ("",)
            view = read_view(conn)
            if view.keys() != before.keys():
                raise TransientError("the standby became a primary")
            if "replayed" in view:
                position = _received(conn)
                is_exact = position == before["replayed"]
                yield WindowPoint(history.position(position), token, history.dated(before), is_exact)
                return
            position = wal_position(conn)
            yield WindowPoint(history.position(position), token, history.dated(view), is_exact=True)
            conn.execute("commit")
        _wait_until_flushed(conn, position, waiting)


def _received(conn: psycopg.Connection) -> Lsn:
    """A position at or after every commit that a standby shows. One may be shown a moment before it counts as replayed,
    but not before it was received."""
    replayed, received = (lsn and Lsn.parse(lsn) for lsn in conn.execute(QUERIES["received"]).fetchone() or ("", None))
    if received is None or received < replayed:
        raise TransientError(
            "the standby does not stream from its primary at present, so how far it has replayed is not known",
            "see the standby's primary_conninfo, and whether the primary runs",
        )
    return Lsn(received)


def _wait_until_flushed(conn: psycopg.Connection, position: Lsn, waiting: Waiting) -> None:
    """A commit that did not wait for the disk (`synchronous_commit = off`) is seen before it is safe. If the server
    crashes meanwhile, this connection breaks."""
    flush_soon(conn, position)
    while not is_flushed(conn, position):
        waiting(None)
        time.sleep(TURN_SECONDS)
