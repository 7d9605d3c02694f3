"""Commands that other sessions may hold up: who does is told meanwhile, and the wait can be ended.

A blocking call of libpq hears nothing until the server answers, Ctrl-C included. So the command is sent, its answer is
waited for in short turns, and in between another connection asks the server who is in the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from select import select

import psycopg
from psycopg import pq, sql

from tailrace.errors import TailraceError, TransientError
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem, Waiting
from tailrace.source.postgres.catalog.tables import quoted
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import KeptConnection

QUERIES = load("server/lock_waits.sql")

TURN_SECONDS = 0.5
WAIT_SECONDS_MAX = 3600.0
"""Beginning again would begin the wait again, so give up late."""
CANCEL_SECONDS = 5.0

Find = Callable[[psycopg.Connection, int], Problem | None]
"""Who holds up the command of the backend with this pid, and what ends that."""


class Waiter:
    """Runs commands on one connection and asks about them on another."""

    def __init__(self, asking: KeptConnection, waiting: Waiting, seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self.asking = asking
        self._seconds_max = seconds_max
        self._waiting = waiting

    def run(
        self, conn: psycopg.Connection, command: sql.Composed, find: Find, undo: sql.Composed | None = None
    ) -> pq.abc.PGresult:
        """The server's answer, when it comes; its error is raised. What `waiting` raises cancels the command, or has
        it undone where the server was quicker."""
        pgconn = conn.pgconn
        try:
            pgconn.send_query(command.as_bytes(conn))
            deadline = time.monotonic() + self._seconds_max
            while not _has_answered(pgconn, TURN_SECONDS):
                problem = self._ask(conn, find)
                self._waiting(problem)
                if time.monotonic() > deadline:
                    message = problem.message if problem else "the server does not answer"
                    raise TransientError(f"{message}; gave up", problem.hint if problem else None)
        except psycopg.Error:
            # The connection broke, and its process may be another one's by now.
            raise
        except BaseException:
            self._cancel(conn, undo)
            raise
        return _answer(pgconn)

    def _ask(self, conn: psycopg.Connection, find: Find) -> Problem | None:
        with suppress(TailraceError):  # Not to know who is in the way is no reason to give up.
            return self.asking.ask(lambda other: find(other, conn.info.backend_pid))
        return None

    def _cancel(self, conn: psycopg.Connection, undo: sql.Composed | None) -> None:
        pid = conn.info.backend_pid
        with suppress(TailraceError, psycopg.Error):
            self.asking.ask(lambda other: other.execute("select pg_cancel_backend(%s)", [pid]))
            deadline = time.monotonic() + CANCEL_SECONDS
            while not _has_answered(conn.pgconn, TURN_SECONDS):
                if time.monotonic() > deadline:
                    return
            _answer(conn.pgconn)
            if undo is not None:
                conn.execute(undo)


def lock_holders(what: str) -> Find:
    """Those whose locks a statement waits for."""
    return lambda conn, pid: _problem(conn, what, {"pid": pid, "with_older_writers": False})


def open_writers(what: str) -> Find:
    """Those whose transactions a new slot waits for: all that were writing when it began, in any database; on a standby
    its primary."""

    def find(conn: psycopg.Connection, pid: int) -> Problem | None:
        (is_standby,) = conn.execute("select pg_is_in_recovery()").fetchone() or (False,)
        if is_standby:
            return Problem(
                f"{what} on a standby waits until the primary writes down which transactions it runs, which it does "
                "only while it is busy",
                "on the primary: select pg_log_standby_snapshot();",
            )
        return _problem(conn, what, {"pid": pid, "with_older_writers": True})

    return find


def lockers(conn: psycopg.Connection, table: TableId) -> Problem:
    """The sessions that lock a table against readers, or wait for a lock that does."""
    (relation,) = conn.execute("select %s::regclass::oid::bigint", [quoted(table)]).fetchone() or (0,)
    rows = conn.execute(QUERIES["lockers"], {"oids": [relation]}).fetchall()
    who = "; ".join(f"pid {pid} ({user}), last statement at {at}: {statement}" for pid, user, at, statement in rows)
    fixes = " ".join(f"select pg_terminate_backend({pid});" for pid, *_ in rows)
    message = f"table {table} cannot be read while it is locked by {who or 'another session'}"
    return Problem(message, f"let it end, or end it: {fixes}" if fixes else "it is tried again")


def _problem(conn: psycopg.Connection, what: str, of: dict[str, object]) -> Problem | None:
    found, fixes = [], []
    for pid, user, database, since, asked, statement in conn.execute(QUERIES["sessions"], of):
        when = f", open since {since}, last statement at {asked}: {statement}" if since else ""
        found.append(f"pid {pid} ({user}) in {database}{when}")
        fixes.append(f"select pg_terminate_backend({pid});")
    for name, user, database, since in conn.execute(QUERIES["prepared"], of):
        found.append(f"the prepared transaction {name} ({user}) in {database}, since {since}")
        gid = sql.Literal(name).as_string(None)
        fixes.append(f"rollback prepared {gid}; or commit prepared {gid}; in {database}")
    if not found:
        return None
    return Problem(f"{what} waits for {'; '.join(found)}", f"let them end, or end them: {' '.join(fixes)}")


def _has_answered(pgconn: pq.abc.PGconn, seconds: float) -> bool:
    """Whether the whole answer is there, which is waited for so long at most."""
    waits_to_send = [pgconn.socket] if pgconn.flush() else []
    if select([pgconn.socket], waits_to_send, [], seconds)[0]:
        pgconn.consume_input()
    return not pgconn.is_busy()


def _answer(pgconn: pq.abc.PGconn) -> pq.abc.PGresult:
    """The answer that is there."""
    last: pq.abc.PGresult | None = None
    while (result := pgconn.get_result()) is not None:
        last = result
    if last is None:
        raise psycopg.OperationalError(pgconn.error_message.decode(errors="replace") or "the connection is lost")
    if last.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        raise psycopg.errors.error_from_result(last)
    return last
