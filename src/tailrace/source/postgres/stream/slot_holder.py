"""The server's process that reads from a slot: whether it is ours and at work, or another's and in the way.

After a cut network the server keeps a slot for the connection that was lost until it notices, which ends by itself. A
holder that keeps answering is another reader. What it confirms is lost to us, so that is for a person.
"""

from __future__ import annotations

from contextlib import closing
from datetime import datetime

import psycopg

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import connect_for_names
from tailrace.source.postgres.stream.protocol import DEFAULTS

QUERIES = load("stream/slot.sql")


class SlotHolder:
    """Who was found to hold a slot, from one attempt to the next."""

    def __init__(self, alive_seconds: float = DEFAULTS.alive_seconds) -> None:
        self._alive_seconds = alive_seconds
        self._first: tuple[int, datetime] | None = None

    def problem(self, conn: psycopg.Connection, slot: str) -> TailraceError:
        """The slot is in use: definite where another process is sure to read from it."""
        row = conn.execute(QUERIES["slot_holder"], {"slot": slot}).fetchone()
        if row is None:
            return TransientError(f"slot {slot} is held by another process", "stop it, or wait until it ends")
        pid, name, address, now, answered = row
        who = f"process {pid} of the server ({name} from {address})"
        if self._first is None or self._first[0] != pid:
            self._first = pid, now
        if answered is not None and (answered - self._first[1]).total_seconds() > self._alive_seconds:
            return DefiniteError(
                f"slot {slot} is held by {who}, which is alive: another reader of the slot takes changes away from us",
                f"stop that reader, or: select pg_terminate_backend({pid}); then run the same command again",
            )
        return TransientError(f"slot {slot} is held by {who}", "stop it, or wait until it ends")


def is_at_work(dsn: str, pid: int) -> bool:
    """Whether the server's process that sends to us is there and waits for no one: neither for us nor for WAL. Not
    where the server cannot be asked."""
    try:
        with closing(connect_for_names(dsn)) as conn:
            row = conn.execute(QUERIES["is_at_work"], {"pid": pid}).fetchone()
    except (TailraceError, psycopg.Error):
        return False
    return row is not None and bool(row[0])
