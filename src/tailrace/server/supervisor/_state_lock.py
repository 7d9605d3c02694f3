"""One server at a time works with a state: what says so, for as long as it works.

A file is locked by the process that has it open. In Postgres a session holds an advisory lock of the state's table. A
session can be lost, and the lock with it; so whoever is about to write asks first, and where the session is gone takes
the lock again, or learns that another server has it. Locks of a process or a machine that died are gone soon after.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from tailrace.server.errors import RequestConflictError
from tailrace.storage.folder_lock import FolderLock, HeldError

WAIT_SECONDS = 2
"""As long as a server may take to notice that the one before it died."""
_SESSION = (
    f"set lock_timeout = '{WAIT_SECONDS}s'",
    "set tcp_keepalives_idle = 30",
    "set tcp_keepalives_interval = 10",
    "set tcp_keepalives_count = 3",
)
_TAKE = "select pg_advisory_lock((1952541554::bigint << 32) + cast(cast(:table as regclass) as oid)::bigint)"
_LOCK_NOT_AVAILABLE = "55P03"


class StateLock(Protocol):
    """Held from its making to its closing."""

    def require(self) -> None:
        """Before a write. A conflict if another server has the state now."""
        ...

    def close(self) -> None: ...


class FileLock:
    """Of a database that is one file."""

    def __init__(self, path: Path) -> None:
        try:
            self._lock = FolderLock(Path(f"{path}-lock"))
        except HeldError:
            raise _in_use(str(path)) from None

    def require(self) -> None:
        return

    def close(self) -> None:
        self._lock.close()


class PostgresLock:
    """Of a table in a Postgres database. Any thread."""

    def __init__(self, engine: Engine, table: str) -> None:
        self._engine = engine
        self._table = table
        self._lock = threading.Lock()
        self._session: Connection | None = self._take()

    def require(self) -> None:
        with self._lock:
            if self._session is not None and not _is_alive(self._session):
                _end(self._session)
                self._session = None
            if self._session is None:
                self._session = self._take()

    def close(self) -> None:
        with self._lock:
            if self._session is not None:
                _end(self._session)
                self._session = None

    def _take(self) -> Connection:
        session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            for setting in _SESSION:
                session.execute(text(setting))
            session.execute(text(_TAKE), {"table": self._table})
        except OperationalError as error:
            _end(session)
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise _in_use(self._engine.url.render_as_string(hide_password=True)) from None
            raise
        return session


def _is_alive(session: Connection) -> bool:
    try:
        session.execute(text("select 1"))
    except DBAPIError:
        return False
    return True


def _end(session: Connection) -> None:
    """Back in the pool it would keep the lock."""
    session.invalidate()
    session.close()


def _in_use(place: str) -> RequestConflictError:
    return RequestConflictError(
        f"another tailrace server works with the state at {place}",
        "stop it, or give this one a state of its own: --state-url",
    )
