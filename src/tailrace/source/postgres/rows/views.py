"""States of the database for some seconds that chunks are read under, and what they show (`visibility`).

Nothing is left at the server after a crash: the state ends with its connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

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
