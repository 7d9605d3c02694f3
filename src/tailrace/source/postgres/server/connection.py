"""Connections to a Postgres server, all with the same text output.

The stream and the snapshot must write a value alike, so every connection forces the settings
that decide how Postgres prints values. The search path is one of them: the stream has it from the start, and a
snapshot's rows while they are printed, because its queries may need the user's own. Passwords never appear in an error.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import psycopg
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from tailrace.errors import DefiniteError, TransientError
from tailrace.model.backoff import Backoff
from tailrace.source.postgres.server._sqlstate import refused_with
from tailrace.source.postgres.server.address import describe, is_clear, parse
from tailrace.source.postgres.server.refusals import ServerFullError, explain

Answer = TypeVar("Answer")

OUTPUT_SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
    # A copy may take longer than the time limits an administrator sets for applications.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
PRINTING_PATH = "pg_catalog"
"""The search path under which rows are printed: what a `regclass` names has its schema before it."""
_LATER_SETTINGS = {"idle_session_timeout": 140000, "transaction_timeout": 170000}
"""Time limits that not every server knows, each with the version that brought it."""

CONNECTIONS_NEEDED = 3
"""One asks how far the server is, one looks things up for the stream, and the others read rows one after another."""
REQUIRE_AUTH_SINCE = 160000
"""The version of libpq that can refuse to send a password in clear text."""
BACKOFF = Backoff(0.1, 3.0)


@dataclass(frozen=True)
class ConnectionOptions:
    """How connections for reading rows are waited for and kept."""

    patience_seconds: float = 60.0
    """How long to wait for one while the server has none left."""
    idle_seconds: float = 3.0
    """How long to keep one that no one uses."""


DEFAULTS = ConnectionOptions()


def connect(dsn: str, *, replication: bool = False) -> psycopg.Connection:
    """Open a connection. A failure becomes one line and a hint, transient where waiting may help."""
    given = parse(dsn)
    settings = OUTPUT_SETTINGS | ({"search_path": PRINTING_PATH} if replication else {})
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    extra: dict[str, str] = {
        "keepalives_idle": "30",
        "tcp_user_timeout": "60000",
        "client_encoding": "UTF8",
        "application_name": "tailrace",
        "options": f"{given.get('options') or ''} {options}".strip(),
    }
    if "connect_timeout" not in given:
        extra["connect_timeout"] = "10"
    if is_clear(dsn) and pq.version() >= REQUIRE_AUTH_SINCE:
        # Whoever answers at this address would get the password by asking for it.
        extra["require_auth"] = "!password"
    if replication:
        extra["replication"] = "database"
    try:
        conninfo = make_conninfo(dsn, **extra)
        conn = psycopg.connect(conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        raise explain(error, dsn, partial(refused_with, conninfo)) from None
    known = [name for name, since in _LATER_SETTINGS.items() if conn.info.server_version >= since]
    if known:
        conn.pgconn.exec_("; ".join(f"set {name} = 0" for name in known).encode())
    return conn


class UnreadableName(str):
    """A name that is not UTF-8, with its odd bytes written out, `gr\\xf6\\xdfe`: to be shown, not to be used in SQL."""

    __slots__ = ()


class _NameLoader(Loader):
    """Text of a database without an encoding."""

    def load(self, data: Buffer) -> str:
        found = bytes(data)
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            return UnreadableName(found.decode("utf-8", "backslashreplace"))


def connect_for_names(dsn: str) -> psycopg.Connection:
    """A connection that asks the catalog. Where the database has no encoding, its names may be any bytes, and the
    server would refuse to send all of them because of one that is not UTF-8: it becomes an `UnreadableName`. Not for
    reading rows, whose values must be exact."""
    conn = connect(dsn)
    if conn.info.parameter_status("server_encoding") == "SQL_ASCII":
        take_text_as_it_is(conn)
        for type_name in ("name", "text", "varchar", "bpchar"):
            conn.adapters.register_loader(type_name, _NameLoader)
    return conn


def connect_patiently(
    dsn: str, patience_seconds: float, given_back: Callable[[], psycopg.Connection | None]
) -> psycopg.Connection:
    """A connection, waited for while the server has none left: other readers will give theirs back."""
    deadline = time.monotonic() + patience_seconds
    failures = 0
    while True:
        if (found := given_back()) is not None:
            return found
        try:
            return connect(dsn)
        except ServerFullError as error:
            if time.monotonic() > deadline:
                message = f"{error.message}; waited {patience_seconds:.0f} s for one"
                needed = f"a copy needs at least {CONNECTIONS_NEEDED}, and more with more --readers; {error.hint}"
                raise ServerFullError(message, needed) from None
        except TransientError:
            if time.monotonic() > deadline:
                raise
        failures += 1
        time.sleep(random.uniform(0.5, 1.0) * BACKOFF.seconds(failures))


@contextmanager
def session(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection for some queries; whatever the server answers them with becomes an error of ours."""
    with connect_for_names(dsn) as conn, explained(dsn):
        yield conn


@contextmanager
def one_state(conn: psycopg.Connection) -> Iterator[None]:
    """Queries inside see the database as of one moment, so what several of them say of a table fits together: a
    statement that commits between two of them is in all or in none. Inside another such `with`, part of that one."""
    if conn.info.transaction_status != TransactionStatus.IDLE:
        yield
        return
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read read only")
        yield


def take_text_as_it_is(conn: psycopg.Connection) -> None:
    """Where the database has no encoding, have the server send text unchecked from now on: it would end the stream of
    all tables at one value that is not UTF-8. We find that value when we decode its table."""
    if conn.info.parameter_status("server_encoding") == "SQL_ASCII":
        conn.pgconn.exec_(b"set client_encoding = 'SQL_ASCII'")


class KeptConnection:
    """One connection for many short questions, opened at the first and again when it broke. Any thread may ask."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._conn: psycopg.Connection | None = None
        self._lock = threading.Lock()

    def ask(self, question: Callable[[psycopg.Connection], Answer]) -> Answer:
        """The answer; asks once more on a new connection where the old one broke."""
        with self._lock, explained(self._dsn):
            if self._conn is None:
                self._conn = connect_for_names(self._dsn)
            try:
                return question(self._conn)
            except psycopg.OperationalError:
                self.close()
                self._conn = connect_for_names(self._dsn)
                return question(self._conn)

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = None

    def __del__(self) -> None:
        self.close()


class IdleConnections:
    """Connections that are kept for some seconds for whoever reads rows next, from the first `keep` on. Windows follow
    one another, and each would open half a dozen. Any thread."""

    def __init__(self, dsn: str, options: ConnectionOptions = DEFAULTS) -> None:
        self._dsn = dsn
        self._options = options
        self._idle: list[tuple[float, psycopg.Connection]] = []
        self._lock = threading.Lock()
        self._keeps = False
        self._timer: threading.Timer | None = None

    def keep(self) -> None:
        """From now on. Before that, each is closed as soon as it is given back."""
        self._keeps = True

    @contextmanager
    def borrowed(self) -> Iterator[psycopg.Connection]:
        """One that is idle, or a new one, waited for while the server has none left. After an error it is closed, and
        so is one that is in a transaction."""
        conn = connect_patiently(self._dsn, self._options.patience_seconds, lambda: self._take()[1])
        # What is prepared at the server belongs to a session, which a pool between us and the server may change.
        conn.prepare_threshold = None
        try:
            yield conn
        except BaseException:
            conn.close()
            raise
        is_plain = conn.info.parameter_status("server_encoding") != "SQL_ASCII"
        if self._keeps and is_plain and conn.info.transaction_status == TransactionStatus.IDLE:
            self._put(time.monotonic(), conn)
        else:
            conn.close()

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """As `session`; with one that is idle, if there is one, which is kept for no longer because of that. The server
        may have no other left."""
        since, conn = self._take()
        if conn is None:
            with session(self._dsn) as conn:
                yield conn
            return
        try:
            with explained(self._dsn):
                yield conn
        except BaseException:
            conn.close()
            raise
        self._put(since, conn)

    def _take(self) -> tuple[float, psycopg.Connection | None]:
        with self._lock:
            return self._idle.pop() if self._idle else (0.0, None)

    def _put(self, since: float, conn: psycopg.Connection) -> None:
        with self._lock:
            self._idle.append((since, conn))
            if self._timer is None:
                self._time(self._options.idle_seconds)

    def _time(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._close_old)
        self._timer.daemon = True
        self._timer.start()

    def _close_old(self) -> None:
        with self._lock:
            before = time.monotonic() - self._options.idle_seconds
            old = [conn for since, conn in self._idle if since <= before]
            self._idle = [(since, conn) for since, conn in self._idle if since > before]
            self._timer = None
            if self._idle:
                self._time(max(0.1, min(since for since, _ in self._idle) - before))
        for conn in old:
            conn.close()


@contextmanager
def explained(dsn: str) -> Iterator[None]:
    """The driver's errors as ours: transient where the driver says that the server or the network is to blame."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise TransientError(f"{describe(dsn)}: {one_line(error)}") from None
    except (psycopg.errors.CharacterNotInRepertoire, psycopg.errors.UntranslatableCharacter) as error:
        raise DefiniteError(
            f"{describe(dsn)}: the server sent a name that is not UTF-8: {one_line(error)}",
            "rename the schema, table, column or type: alter … rename to …",
        ) from None
    except psycopg.errors.ReadOnlySqlTransaction as error:
        writable = "set default_transaction_read_only = off;"
        hint = f"as the same user: {writable} alter role current_user {writable}"
        raise DefiniteError(f"{describe(dsn)}: the server refuses: {one_line(error)}", hint) from None
    except psycopg.Error as error:
        raise DefiniteError(f"{describe(dsn)}: the server refuses: {one_line(error)}") from None


def one_line(error: psycopg.Error) -> str:
    """What the server said, without its hints and line breaks."""
    return " ".join((error.diag.message_primary or str(error)).split())
