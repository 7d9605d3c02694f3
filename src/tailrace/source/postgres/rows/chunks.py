"""The rows that exist when a copy begins, read in disjoint ranges by many readers at once.

A chunk is a range of a table's blocks (`ctid`) here, and a range or a list of its keys in `key_ranges`, read under an
exported snapshot: all chunks together are the table as of that snapshot, each row once. The last range of blocks has no
upper end, so rows written to blocks that were added after planning belong to it. Values go through the same casts as
the stream's, so a row read here equals the same row decoded from the stream.

Postgres's snapshots do not hold for a table that is rewritten (`alter table … type`, `vacuum full`,
`truncate`): an old snapshot then sees no rows, or rows in other blocks. Nor do they hold for partitions, which are
those of the present. So a reader locks its table against rewriting and makes sure that it still is the files it was
under the snapshot; once more at the end, because no lock of a reader keeps a partition from being attached.

A chunk is a value: it can be pickled, and read again after a failure as long as the snapshot lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from psycopg import pq, sql

from tailrace.errors import DefiniteError, TransientError
from tailrace.model.table import TableId, TableSchema
from tailrace.source.postgres.catalog.access import hidden_rows, missing_grants
from tailrace.source.postgres.catalog.tables import QUERIES, CatalogTable, quoted
from tailrace.source.postgres.server.connection import PRINTING_PATH, IdleConnections, one_line, take_text_as_it_is
from tailrace.source.postgres.server.lock_waits import lockers

if TYPE_CHECKING:
    from tailrace.source.postgres.rows.copy_out import Portion

_CTID_RANGES_SINCE = 140000
"""Before, a condition on ctid was a scan of the whole table."""
_COMMA = sql.SQL(", ")


class Chunk(Protocol):
    """Some rows of one table."""

    @property
    def part(self) -> TableId:
        """What they are read from: the table, or a leaf partition."""
        ...

    @property
    def namespaces(self) -> Sequence[str]:
        """Where else than in the search path the server must look for operators."""
        ...

    @property
    def sent(self) -> str | None:
        """SQL that holds for the rows which the publication sends; None: all."""
        ...

    @property
    def condition(self) -> str | None:
        """SQL of a person that leaves out some of the rows."""
        ...

    def rows(self) -> sql.Composed:
        """What follows `select … from`."""
        ...


@dataclass(frozen=True)
class BlockChunk:
    """Blocks `[first_block, end_block)` of the table or leaf partition `part`, None meaning no end."""

    part: TableId
    first_block: int = 0
    end_block: int | None = None
    sent: str | None = None
    condition: str | None = None
    bytes: int = 0
    """About what it takes at the server, TOAST included."""
    namespaces = ()

    def rows(self) -> sql.Composed:
        bounds = []
        if self.first_block:
            bounds.append(sql.SQL("ctid >= {}::tid").format(f"({self.first_block},0)"))
        if self.end_block is not None:
            bounds.append(sql.SQL("ctid < {}::tid").format(f"({self.end_block},0)"))
        where = sql.SQL(" and ").join(bounds) if bounds else sql.SQL("true")
        return sql.SQL("only {} where {}").format(identifier(self.part), where)


def plan(info: CatalogTable, bytes_max: int, readers: int = 1) -> list[BlockChunk]:
    """Cut a table into chunks of at most about `bytes_max`, TOAST included; at least one chunk. More than there are
    readers become whole rounds: with a chunk that is left over, all but one would wait."""
    if not info.parts:
        return [BlockChunk(info.table, sent=info.condition)]
    total = sum(part.size_bytes for part in info.parts)
    rounds = -(-total // (bytes_max * readers))
    if total > bytes_max * readers:
        bytes_max = -(-total // (rounds * readers))
    chunks = []
    for part in info.parts:
        wanted = -(-part.size_bytes // bytes_max) if info.server_version >= _CTID_RANGES_SINCE else 1
        count = max(1, min(wanted, part.blocks))
        starts = [number * part.blocks // count for number in range(count)]
        ends = [*starts[1:], None]
        size = part.size_bytes // count
        chunks += [
            BlockChunk(part.table, start, end, info.condition, bytes=size)
            for start, end in zip(starts, ends, strict=True)
        ]
    return chunks


def read(
    connections: IdleConnections,
    exported_snapshot: str,
    chunk: Chunk,
    schema: TableSchema,
    lock_seconds: float | None = None,
) -> Iterator[Any]:
    """The chunk's rows as record batches with the schema's columns, as of the exported snapshot."""
    # Not when this module is loaded: few processes copy rows, and a third of a second passes before Numba is there.
    from tailrace.source.postgres.rows.copy_text import RowReader

    with reader(connections, exported_snapshot, chunk.part, schema.table, lock_seconds) as conn:
        look_in(conn, chunk.namespaces)
        rows = RowReader(schema)
        for portion in _copy(conn, chunk, schema):
            yield from rows.read(portion)


@contextmanager
def reader(
    connections: IdleConnections,
    exported_snapshot: str,
    part: TableId,
    table: TableId,
    lock_seconds: float | None = None,
) -> Iterator[psycopg.Connection]:
    """A connection that sees the table, or the leaf partition `part` of it, as of the exported snapshot. An error at
    the end where that was not so all the time. A transient error where another session keeps it locked for so long."""
    with connections.borrowed() as conn:
        try:
            conn.execute("begin isolation level repeatable read read only")
            # A row that row security would hide must be an error, not missing.
            conn.execute("set local row_security = off")
            _join(conn, exported_snapshot)
            if lock_seconds is not None:
                conn.execute(sql.SQL("set local lock_timeout = {}").format(round(lock_seconds * 1000)))
            conn.execute(sql.SQL("lock table only {} in access share mode").format(identifier(part)))
            _require_same(conn, part, table)
            yield conn
            _require_same(conn, part, table)
            # A reader tidies the pages that it passes, and the server soon flushes what it logged of that; not so after
            # a transaction that is left to break off, and whoever waits for the end of the log would wait long.
            conn.execute("commit")
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            raise _rewritten(part, table) from None
        except psycopg.errors.InsufficientPrivilege as error:
            conn.execute("rollback")
            grants = " ".join(missing_grants(conn, part))
            message = f"user {conn.info.user} may not read {part}: {one_line(error)}"
            raise DefiniteError(message, grants or None, table=str(table)) from None
        except psycopg.errors.UndefinedColumn as error:
            message = f"table {table} was changed after it was described: {one_line(error)}"
            raise TransientError(message, table=str(table)) from None
        except psycopg.errors.LockNotAvailable:
            conn.execute("rollback")
            problem = lockers(conn, part)
            raise TransientError(problem.message, problem.hint, table=str(table)) from None
        except psycopg.OperationalError as error:
            raise TransientError(f"reading {part} broke off: {one_line(error)}", table=str(table)) from None
        except psycopg.Error as error:
            hint = f"change what cannot be read, then: tailrace tables resync LAKE {table.argument}"
            raise DefiniteError(f"cannot read {part}: {one_line(error)}", hint, str(table)) from None


def _join(conn: psycopg.Connection, exported_snapshot: str) -> None:
    try:
        conn.execute(sql.SQL("set transaction snapshot {}").format(exported_snapshot))
    except (psycopg.errors.UndefinedObject, psycopg.errors.InvalidParameterValue):
        raise TransientError(f"the exported snapshot {exported_snapshot} is gone") from None


def _require_same(conn: psycopg.Connection, part: TableId, table: TableId) -> None:
    """Refuse a table that is not what it was under the snapshot."""
    named = {"name": quoted(part), "namespace": part.namespace, "table": part.name}
    is_same, hides_rows = conn.execute(QUERIES["held"], named).fetchone() or (False, False)
    if not is_same:
        raise _rewritten(part, table)
    if hides_rows:
        problem = hidden_rows(conn.info.user, part)
        raise DefiniteError(problem.message, problem.hint, table=str(table))


def _rewritten(part: TableId, table: TableId) -> TransientError:
    return TransientError(
        f"table {part} was rewritten, emptied or replaced after the snapshot was taken",
        "run the same command again: it takes a new snapshot",
        table=str(table),
    )


def look_in(conn: psycopg.Connection, namespaces: Sequence[str]) -> None:
    """Have the server find the operators of these namespaces too, after all others, until the transaction ends or
    begins to print rows."""
    for namespace in namespaces:
        conn.execute(QUERIES["look_in"], {"namespace": namespace})


def _copy(conn: psycopg.Connection, chunk: Chunk, schema: TableSchema) -> Iterator[Portion]:
    from tailrace.source.postgres.rows.copy_out import portions

    take_text_as_it_is(conn)
    if chunk.condition is not None:
        _require_condition(conn, chunk, chunk.condition, schema.table)
    if _is_plain(chunk):
        conn.execute(QUERIES["look_nowhere_else"], {"path": PRINTING_PATH})
    return portions(conn, _statement(chunk, schema).as_bytes(conn))


def _is_plain(chunk: Chunk) -> bool:
    """Whether nothing in its query is looked for in the user's search path."""
    return isinstance(chunk, BlockChunk) and chunk.sent is None and chunk.condition is None


def _statement(chunk: Chunk, schema: TableSchema) -> sql.Composed:
    columns = [sql.Identifier(column.in_source) for column in schema.columns]
    if _is_plain(chunk):
        return sql.SQL(QUERIES["copy"]).format(names=_COMMA.join(columns), rows=chunk.rows())
    if chunk.condition is None:
        rows = chunk.rows() if chunk.sent is None else _subquery(chunk)
        return sql.SQL(QUERIES["copy_found"]).format(names=_COMMA.join(columns), rows=rows, path=PRINTING_PATH)
    # In a query of its own, so that no `or` in the condition leads out of the chunk.
    rows = sql.SQL("{} where (\n{}\n)").format(_subquery(chunk), sql.SQL(chunk.condition))
    # Under names of our own, because any name may be a column's.
    names = [sql.Identifier(f"c{number}") for number in range(1, len(columns) + 1)]
    return sql.SQL(QUERIES["copy_chosen"]).format(
        names=_COMMA.join(names),
        following=_continued(names),
        columns=_continued(columns),
        rows=rows,
        path=PRINTING_PATH,
    )


def _continued(names: Sequence[sql.Identifier]) -> sql.Composed:
    """As they follow another one."""
    return sql.SQL("").join(sql.SQL(", {}").format(name) for name in names)


def _require_condition(conn: psycopg.Connection, chunk: Chunk, condition: str, table: TableId) -> None:
    """A definite error unless it is one SQL expression. What is nothing but a part of both this statement and of the
    one that is run cannot end either of them: the one needs `then` after it, the other must not have it."""
    statement = sql.SQL("select case when (\n{}\n) then 1 end from {}").format(sql.SQL(condition), _subquery(chunk))
    result = conn.pgconn.prepare(b"", statement.as_bytes(conn))
    if result.status != pq.ExecStatus.COMMAND_OK:
        reason = one_line(psycopg.errors.error_from_result(result))
        raise DefiniteError(f"the condition for table {table} cannot be used: {reason}", table=str(table))


def _subquery(chunk: Chunk) -> sql.Composed:
    sent = sql.SQL("" if chunk.sent is None else f" and ({chunk.sent})")
    return sql.SQL("(select * from {}{}) as {}").format(chunk.rows(), sent, sql.Identifier(chunk.part.name))


def identifier(table: TableId) -> sql.Identifier:
    return sql.Identifier(table.namespace, table.name)
