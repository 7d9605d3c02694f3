"""What the server must not forget: its connectors, what is wanted of each, and every configuration they had.

In a SQLite file, or in any database that SQLAlchemy reaches by URL. A row is written before what it says takes effect,
so after any crash the rows alone say what has to run. A new configuration names the version of the one that it was
made from: of two that were made from the same one, the second is refused and nothing of it is stored.

    connectors   name, config as JSON, target, version
    history      every config that a connector had, by version and without its secrets, who stored it and which keys
                 changed; of connectors that are gone the versions alone
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from tailrace.configuration.reading import redacted
from tailrace.errors import DefiniteError, TransientError
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.supervisor._state_lock import FileLock, PostgresLock, StateLock
from tailrace.server.supervisor.lifecycle import Target

FILE_NAME = "server.db"
NAME_CHARACTERS_MAX = 255
WHO_CHARACTERS_MAX = 255
BUSY_SECONDS = 10.0

Config = Mapping[str, str]
Changes = Mapping[str, str | None]
"""Properties that get another value, and those that are removed."""
Who = str | None
"""Who asked, for the history; None where no one is known."""

_metadata = MetaData()
_connectors = Table(
    "tailrace_connectors",
    _metadata,
    Column("name", String(NAME_CHARACTERS_MAX), primary_key=True),
    Column("config", Text, nullable=False),
    Column("target", String(16), nullable=False),
    Column("version", BigInteger, nullable=False),
)
_history = Table(
    "tailrace_history",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(NAME_CHARACTERS_MAX), nullable=False, index=True),
    Column("version", BigInteger, nullable=False),
    Column("config", Text),
    Column("changed_us", BigInteger, nullable=False),
    Column("who", String(WHO_CHARACTERS_MAX)),
    Column("changed", Text),
)
_LATER = ("who", "changed")
"""Columns of the history that a store of an earlier version lacks."""


@dataclass(frozen=True)
class StoredConnector:
    """One connector as it is stored. Its config may hold secrets."""

    name: str
    config: Config
    target: Target
    version: int
    """Of the configuration: grows with every other one, also across a deletion."""

    def require_version(self, expected: int | None) -> None:
        """A conflict unless it is this version; None for any."""
        if expected not in (None, self.version):
            message = f"connector {self.name} is at version {self.version}, not {expected}"
            raise RequestConflictError(message, "read it again, then decide again")


@dataclass(frozen=True)
class StoredConfig:
    """A configuration that a connector had from some time on, its secrets left out; None from its deletion on."""

    version: int
    config: Config | None
    changed_us: int
    who: Who = None
    """Who stored it; None where that was not noted."""
    changed: tuple[str, ...] = ()
    """The keys that have another value than before, secrets among them; none where that was not noted."""


class Store:
    """Any thread. What a method wrote is durable when it returns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock: StateLock | None = None
        with _explained(engine):
            _metadata.create_all(engine)
            _add_columns(engine)
            self._redact_history()

    @classmethod
    def in_folder(cls, home: Path) -> Store:
        """In a file that only its owner may read."""
        return cls._in_file(home / FILE_NAME)

    @classmethod
    def at(cls, url: str) -> Store:
        """In the database that a URL names: `postgresql://user:password@host/database`, or `sqlite:///path`."""
        try:
            found = make_url(url)
            if found.get_backend_name() == "sqlite" and found.database:
                return cls._in_file(Path(found.database))
            if found.drivername in ("postgresql", "postgres"):
                # The driver that is there.
                found = found.set(drivername="postgresql+psycopg")
            return cls(create_engine(found, pool_pre_ping=True, hide_parameters=True))
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError):
            hint = "it looks like postgresql://user:password@host:5432/database"
            raise DefiniteError("the state's URL cannot be used", hint) from None

    @classmethod
    def _in_file(cls, path: Path) -> Store:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise DefiniteError(f"the state's file {path} cannot be used: {error.strerror}") from None
        url = URL.create("sqlite+pysqlite", database=str(path))
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True)
        event.listen(engine, "connect", _durable_sqlite)
        return cls(engine)

    @property
    def address(self) -> str:
        """Where it is, without a user or a password."""
        url = self._engine.url
        return url.database or "" if url.get_backend_name() == "sqlite" else f"{url.host}/{url.database}"

    def lock(self) -> None:
        """Keep other servers from working with this state until it is closed; a conflict if one does."""
        with _explained(self._engine):
            match self._engine.dialect.name, self._engine.url.database:
                case "sqlite", str(path):
                    self._lock = FileLock(Path(path))
                case "postgresql", _:
                    self._lock = PostgresLock(self._engine, _connectors.name)

    def close(self) -> None:
        """Once or more."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()
        self._engine.dispose()

    def all(self) -> list[StoredConnector]:
        """By name."""
        with _explained(self._engine), self._engine.connect() as connection:
            return [_stored(row) for row in connection.execute(select(_connectors).order_by(_connectors.c.name))]

    def find(self, name: str) -> StoredConnector:
        with _explained(self._engine), self._engine.connect() as connection:
            row = connection.execute(select(_connectors).where(_connectors.c.name == name)).first()
        if row is None:
            raise NotFoundError.connector(name)
        return _stored(row)

    def add(self, name: str, config: Config, target: Target, who: Who = None) -> StoredConnector:
        """A new one; a conflict if there is one of this name."""
        version = 1 + max((each.version for each in self.history(name)), default=0)
        added = StoredConnector(name, dict(config), target, version)
        with _explained(self._engine):
            try:
                with self._writing() as connection:
                    connection.execute(insert(_connectors).values(_fields(added)))
                    connection.execute(insert(_history).values(_noted(name, version, config, who)))
            except IntegrityError:
                raise RequestConflictError(f"Connector {name} already exists") from None
        return added

    def set_config(self, was: StoredConnector, config: Config, who: Who = None) -> StoredConnector:
        """Another configuration instead of the one that was read; a conflict if it is not that one any more."""
        version = was.version + 1
        with _explained(self._engine), self._writing() as connection:
            row = connection.execute(
                update(_connectors)
                .where(_connectors.c.name == was.name, _connectors.c.version == was.version)
                .values(config=json.dumps(dict(config)), version=version)
                .returning(*_connectors.c)
            ).first()
            if row is None:
                message = f"connector {was.name} was changed by another request"
                raise RequestConflictError(message, "read it again, then decide again")
            connection.execute(insert(_history).values(_noted(was.name, version, config, who, was.config)))
        return _stored(row)

    def set_target(self, name: str, target: Target) -> None:
        """The last one who wants something gets it: a target is a word, and depends on none before."""
        change = update(_connectors).where(_connectors.c.name == name).values(target=target.value)
        with _explained(self._engine), self._writing() as connection:
            if not connection.execute(change).rowcount:
                raise NotFoundError.connector(name)

    def remove(self, name: str, who: Who = None) -> None:
        gone = delete(_connectors).where(_connectors.c.name == name).returning(_connectors.c.version)
        with _explained(self._engine), self._writing() as connection:
            row = connection.execute(gone).first()
            if row is None:
                raise NotFoundError.connector(name)
            # Of a connector that is gone, nothing is kept that someone gave.
            connection.execute(update(_history).where(_history.c.name == name).values(config=None, changed=None))
            connection.execute(insert(_history).values(_noted(name, row.version + 1, None, who)))

    def history(self, name: str, before: int | None = None, limit: int | None = None) -> list[StoredConfig]:
        """Oldest first; none for a name that never was. With `limit`, only the newest of them, `before` a version."""
        query = select(_history).where(_history.c.name == name).order_by(_history.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_history.c.version < before)
        with _explained(self._engine), self._engine.connect() as connection:
            return [_stored_config(row) for row in connection.execute(query)][::-1]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self._lock is not None:
            self._lock.require()
        with self._engine.begin() as connection:
            yield connection

    def _redact_history(self) -> None:
        """Of rows that were written with their secrets."""
        with self._engine.begin() as connection:
            for row in connection.execute(select(_history).where(_history.c.config.is_not(None))).all():
                config = json.dumps(redacted(json.loads(row.config)))
                if config != row.config:
                    connection.execute(update(_history).where(_history.c.id == row.id).values(config=config))


def _stored(row: Row[Any]) -> StoredConnector:
    return StoredConnector(row.name, json.loads(row.config), Target(row.target), row.version)


def _fields(stored: StoredConnector) -> dict[str, Any]:
    return {
        "name": stored.name,
        "config": json.dumps(dict(stored.config)),
        "target": stored.target.value,
        "version": stored.version,
    }


def _stored_config(row: Row[Any]) -> StoredConfig:
    config = None if row.config is None else json.loads(row.config)
    return StoredConfig(row.version, config, row.changed_us, row.who, tuple(json.loads(row.changed or "[]")))


def _noted(
    name: str,
    version: int,
    config: Config | None,
    who: Who,
    before: Config = MappingProxyType({}),
) -> dict[str, Any]:
    """Compared with its secrets, so that a password that was changed is noted as such, and kept without them."""
    after = config or {}
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return {
        "name": name,
        "version": version,
        "config": None if config is None else json.dumps(redacted(config)),
        "changed_us": time.time_ns() // 1000,
        "who": None if who is None else who[:WHO_CHARACTERS_MAX],
        "changed": None if config is None else json.dumps(changed),
    }


def _add_columns(engine: Engine) -> None:
    """To the history of an earlier version. Of two servers that begin at the same moment, the second finds them."""
    for name in _LATER:
        if name in _column_names(engine):
            continue
        kind = _history.c[name].type.compile(engine.dialect)
        try:
            with engine.begin() as connection:
                connection.execute(text(f"alter table {_history.name} add column {name} {kind}"))
        except DatabaseError:
            if name not in _column_names(engine):
                raise


def _column_names(engine: Engine) -> set[str]:
    return {each["name"] for each in inspect(engine).get_columns(_history.name)}


def _durable_sqlite(connection: Any, _: object) -> None:
    """A write-ahead log that is synced at every commit; readers and the writer do not wait for each other. What is
    replaced is overwritten: it may be a password."""
    for pragma in ("journal_mode = wal", "synchronous = full", "secure_delete = on"):
        connection.execute(f"pragma {pragma}").close()


@contextmanager
def _explained(engine: Engine) -> Iterator[None]:
    """What the database fails with, without its URL, which may have a password in it."""
    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        place = engine.url.render_as_string(hide_password=True)
        first_line = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()[0]
        kind = TransientError if isinstance(error, OperationalError) else DefiniteError
        raise kind(f"the server's state at {place} cannot be used: {first_line}") from None
