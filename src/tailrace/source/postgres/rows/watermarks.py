"""Watermarks: what a window writes to the source before and after its rows are read, or that it writes nothing.

    read_only       nothing: the default
    insert_insert   a row of type snapshot-window-open in the signal table, then one of type snapshot-window-close
    insert_delete   the same first row, which is then deleted

The two bound the window in the log: all that its state shows was committed before the second, so a log that has the
second has all of it, also if nothing else is ever committed. What the state does not show is never told by them, but by
the state itself: a commit that waits for a standby is in the log before the first and in no state yet.

They are committed at once, and do not wait for a standby. What a crash leaves is a first row without a second. It does
no harm, and `insert_delete` removes it before the next window.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError, TransientError
from tailrace.failpoint import failpoint
from tailrace.settings import Watermarking
from tailrace.source.door.values import Problem
from tailrace.source.postgres.catalog.signal_table import SignalTable
from tailrace.source.postgres.catalog.tables import quoted
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import one_line

QUERIES = load("rows/watermarks.sql")
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"
OURS = "tailrace session "
LOCK_SECONDS = 5


class Watermarks(Protocol):
    """How a window is marked at the source."""

    def around(self, conn: psycopg.Connection) -> AbstractContextManager[None]:
        """Marks what is done inside the `with`. The connection is in no transaction at its beginning, nor at its end
        unless it ends with an error."""
        ...

    def problem(self, conn: psycopg.Connection) -> Problem | None:
        """Why windows cannot be marked so; None if they can. Leaves nothing."""
        ...


class ReadOnly:
    """Writes nothing."""

    def around(self, conn: psycopg.Connection) -> AbstractContextManager[None]:
        return nullcontext()

    def problem(self, conn: psycopg.Connection) -> Problem | None:
        return None


READ_ONLY = ReadOnly()


@dataclass(frozen=True)
class SignalWatermarks:
    """Rows of the signal table."""

    signals: SignalTable
    how: Watermarking
    lock_seconds: int = LOCK_SECONDS

    @contextmanager
    def around(self, conn: psycopg.Connection) -> Iterator[None]:
        # No one needs these rows on a standby, and one that is away must not hold up a window.
        conn.execute(sql.SQL("set synchronous_commit = local; set lock_timeout = {}").format(f"{self.lock_seconds}s"))
        with self._explained(conn):
            rows = _Rows.find(conn, self.signals)
            if self.deletes:
                rows.delete_stale(conn)
            window = rows.open(conn)
        failpoint("watermarks.opened")
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):
                conn.execute("rollback")
                self._close(conn, rows, window)
            raise
        with self._explained(conn):
            self._close(conn, rows, window)
        failpoint("watermarks.closed")

    def problem(self, conn: psycopg.Connection) -> Problem | None:
        """Found by writing both rows and taking them back."""
        found = self.signals.found(conn)
        if self.deletes and found and found[0].by_inserts:
            message = f"signal table {self.signals.table} has no primary key: its deletes are not sent"
            add = f"alter table {quoted(self.signals.table)} add primary key (…)"
            return Problem(message, f"{add}, or --watermarks {Watermarking.INSERT_INSERT}")
        try:
            with conn.transaction(force_rollback=True):
                conn.execute(sql.SQL("set local lock_timeout = {}").format(f"{self.lock_seconds}s"))
                rows = _Rows.find(conn, self.signals)
                if self.deletes:
                    rows.delete_stale(conn)
                self._close(conn, rows, rows.open(conn))
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            return self._refused(conn, error)
        return None

    @property
    def deletes(self) -> bool:
        return self.how is Watermarking.INSERT_DELETE

    def _close(self, conn: psycopg.Connection, rows: _Rows, window: str) -> None:
        (rows.delete_open if self.deletes else rows.close)(conn, window)

    @contextmanager
    def _explained(self, conn: psycopg.Connection) -> Iterator[None]:
        """A right that is taken away while we run may be given again: the copy waits for that, the stream does not."""
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            raise TransientError(f"signal table {self.signals.table} is locked by another session") from None
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            refused = self._refused(conn, error)
            raise TransientError(refused.message, refused.hint) from None

    def _refused(self, conn: psycopg.Connection, error: psycopg.Error) -> Problem:
        table = quoted(self.signals.table)
        message = f"signal table {self.signals.table} takes no watermarks: {one_line(error)}"
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            user = sql.Identifier(conn.info.user).as_string(None)
            rights = "select, insert, delete" if self.deletes else "insert"
            return Problem(message, f"grant {rights} on {table} to {user};")
        return Problem(message, f"--watermarks {Watermarking.READ_ONLY} writes nothing")


@dataclass(frozen=True)
class _Rows:
    """The signal table as it is now, for one session."""

    names: dict[str, sql.Composable]
    session: str

    @classmethod
    def find(cls, conn: psycopg.Connection, signals: SignalTable) -> _Rows:
        (session,) = conn.execute(QUERIES["session"]).fetchone() or ("",)
        columns = [name for (name,) in conn.execute(QUERIES["columns"], {"table": quoted(signals.table)})]
        names: dict[str, sql.Composable] = {"table": sql.Identifier(signals.table.namespace, signals.table.name)}
        names |= {what: sql.Identifier(name) for what, name in zip(("id", "type", "data"), columns, strict=False)}
        return cls(names, session)

    def open(self, conn: psycopg.Connection) -> str:
        """The window's own name."""
        window = str(uuid.uuid4())
        data = {"openWindowTimestamp": _now(), "by": f"{OURS}{self.session}"}
        self._run(conn, "insert", id=f"{window}-open", type=OPEN, text=json.dumps(data))
        return window

    def close(self, conn: psycopg.Connection, window: str) -> None:
        data = {"closeWindowTimestamp": _now(), "by": f"{OURS}{self.session}"}
        self._run(conn, "insert", id=f"{window}-close", type=CLOSE, text=json.dumps(data))

    def delete_open(self, conn: psycopg.Connection, window: str) -> None:
        self._run(conn, "delete", id=f"{window}-open")

    def delete_stale(self, conn: psycopg.Connection) -> None:
        self._run(conn, "delete_stale", type=OPEN, ours=OURS)

    def _run(self, conn: psycopg.Connection, query: str, **values: str) -> None:
        conn.execute(sql.SQL(QUERIES[query]).format(**self.names), values)


def watermarks_of(how: Watermarking, signals: SignalTable | None) -> Watermarks:
    """A definite error where there is no table for them."""
    if how is Watermarking.READ_ONLY:
        return READ_ONLY
    if signals is None:
        hint = (
            f"name one: --signal-table public.tailrace_signal, or write nothing: --watermarks {Watermarking.READ_ONLY}"
        )
        raise DefiniteError(f"--watermarks {how} needs a signal table to write to", hint)
    return SignalWatermarks(signals, how)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
