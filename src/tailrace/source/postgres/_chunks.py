"""The rows that exist when a copy begins, read in disjoint ranges by many readers at once.

A chunk is a range of a table's blocks (`ctid`), read under an exported snapshot: all chunks together
are the table as of that snapshot, each row once. The last chunk has no upper end, so rows
written to blocks that were added after planning belong to it. Values go through the same casts as
the stream's, so a row read here equals the same row decoded from the stream.

Postgres's snapshots do not hold for a table that is rewritten (`alter table … type`, `vacuum full`,
`truncate`): an old snapshot then sees no rows, or rows in other blocks. So a reader locks its table against
rewriting and first makes sure that it still is the file it was under the snapshot.

A chunk is a value: it can be pickled, and read again after a failure as long as the snapshot lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv as pcsv
from psycopg import pq, sql

from tailrace.errors import DefiniteError, TransientError
from tailrace.model.change import row_schema
from tailrace.model.lake_types import arrow_type
from tailrace.model.table import TableId, TableSchema
from tailrace.source.postgres._access import hidden_rows, missing_grants
from tailrace.source.postgres._catalog import QUERIES, TableInfo, quoted
from tailrace.source.postgres._connection import connect_patiently, one_line, take_text_as_it_is
from tailrace.source.postgres._pgoutput import cast_column

BUFFER_BYTES = 8 << 20
_CTID_RANGES_SINCE = 140000
"""Before, a condition on ctid was a scan of the whole table."""
_CAST_LATER = frozenset({"binary", "boolean", "timestamp", "timestamp_ntz"})
"""Lake types whose text Arrow's reader of CSV would take differently than the casts, or not at all."""


@dataclass(frozen=True)
class Chunk:
    """Blocks `[first_block, end_block)` of the table or leaf partition `part`, None meaning no end."""

    part: TableId
    first_block: int = 0
    end_block: int | None = None


def plan(info: TableInfo, bytes_max: int) -> list[Chunk]:
    """Cut a table into chunks of about `bytes_max`, TOAST included; at least one chunk."""
    if not info.parts:
        return [Chunk(info.table)]
    chunks = []
    for part in info.parts:
        count = -(-part.size_bytes // bytes_max) if info.server_version >= _CTID_RANGES_SINCE else 1
        step = max(1, -(-part.blocks // max(1, count)))
        starts = list(range(0, max(1, part.blocks), step))
        ends = [*starts[1:], None]
        chunks += [Chunk(part.table, start, end) for start, end in zip(starts, ends, strict=True)]
    return chunks


def read(dsn: str, exported_snapshot: str, chunk: Chunk, schema: TableSchema) -> Iterator[Any]:
    """The chunk's rows as record batches with the schema's columns, as of the exported snapshot."""
    with _reader(dsn, exported_snapshot, chunk, schema.table) as conn:
        for buffer, row_count in _copy(conn, chunk, schema):
            yield _parse(buffer, row_count, schema)


@contextmanager
def _reader(dsn: str, exported_snapshot: str, chunk: Chunk, table: TableId) -> Iterator[psycopg.Connection]:
    with closing(connect_patiently(dsn)) as conn:
        try:
            conn.execute("begin isolation level repeatable read read only")
            # A row that row security would hide must be an error, not missing.
            conn.execute("set local row_security = off")
            _join(conn, exported_snapshot)
            _hold(conn, chunk.part, table)
            yield conn
        except psycopg.errors.InsufficientPrivilege as error:
            conn.execute("rollback")
            grants = " ".join(missing_grants(conn, chunk.part))
            message = f"user {conn.info.user} may not read {chunk.part}: {one_line(error)}"
            raise DefiniteError(message, grants or None, table=str(table)) from None
        except psycopg.errors.UndefinedColumn as error:
            message = f"table {table} was changed after it was described: {one_line(error)}"
            raise TransientError(message, table=str(table)) from None
        except psycopg.OperationalError as error:
            raise TransientError(f"reading {chunk.part} broke off: {one_line(error)}", table=str(table)) from None
        except psycopg.Error as error:
            raise DefiniteError(f"cannot read {chunk.part}: {one_line(error)}", table=str(table)) from None


def _join(conn: psycopg.Connection, exported_snapshot: str) -> None:
    try:
        conn.execute(sql.SQL("set transaction snapshot {}").format(exported_snapshot))
    except (psycopg.errors.UndefinedObject, psycopg.errors.InvalidParameterValue):
        raise TransientError(f"the exported snapshot {exported_snapshot} is gone") from None


def _hold(conn: psycopg.Connection, part: TableId, table: TableId) -> None:
    """Keep the table from being rewritten until the transaction ends; refuse it if it already was."""
    named = {"name": quoted(part), "namespace": part.namespace, "table": part.name}
    try:
        conn.execute(sql.SQL("lock table only {} in access share mode").format(_identifier(part)))
        is_same, hides_rows = conn.execute(QUERIES["held"], named).fetchone() or (False, False)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        is_same, hides_rows = False, False
    if not is_same:
        raise TransientError(
            f"table {part} was rewritten, emptied or replaced after the snapshot was taken",
            "run the same command again: it takes a new snapshot",
            table=str(table),
        )
    if hides_rows:
        problem = hidden_rows(conn.info.user, part)
        raise DefiniteError(problem.message, problem.hint, table=str(table))


def _copy(conn: psycopg.Connection, chunk: Chunk, schema: TableSchema) -> Iterator[tuple[bytearray, int]]:
    """CSV in portions of about `BUFFER_BYTES`, each with its number of rows: the server sends one row a message."""
    pgconn = conn.pgconn
    take_text_as_it_is(conn)
    result = pgconn.exec_(_statement(chunk, schema).as_bytes(conn))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    received, rows = bytearray(), 0
    while True:
        length, row = pgconn.get_copy_data(0)
        if length < 0:
            break
        received += row
        rows += 1
        if len(received) >= BUFFER_BYTES:
            yield received, rows
            received, rows = bytearray(), 0
    _require_end(pgconn)
    if rows:
        yield received, rows


def _require_end(pgconn: pq.abc.PGconn) -> None:
    while (result := pgconn.get_result()) is not None:
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result)


def _statement(chunk: Chunk, schema: TableSchema) -> sql.Composed:
    conditions = []
    if chunk.first_block:
        conditions.append(sql.SQL("ctid >= {}::tid").format(f"({chunk.first_block},0)"))
    if chunk.end_block is not None:
        conditions.append(sql.SQL("ctid < {}::tid").format(f"({chunk.end_block},0)"))
    where = sql.SQL("where {}").format(sql.SQL(" and ").join(conditions)) if conditions else sql.SQL("")
    return sql.SQL("copy (select {} from only {} {}) to stdout (format csv)").format(
        sql.SQL(", ").join(map(sql.Identifier, schema.names)), _identifier(chunk.part), where
    )


def _identifier(table: TableId) -> sql.Identifier:
    return sql.Identifier(table.namespace, table.name)


def _parse(buffer: bytearray, row_count: int, schema: TableSchema) -> Any:
    if not schema.columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
    columns = [pa.binary() if column.type in _CAST_LATER else arrow_type(column.type) for column in schema.columns]
    try:
        table = _read_csv(buffer, columns)
    except pa.ArrowInvalid:
        # Some value is not what its type should be: the casts find it and say which.
        table = _read_csv(buffer, [pa.binary()] * len(columns))
    if table.num_rows != row_count:
        message = f"{schema.table}: {row_count} rows were sent, {table.num_rows} were understood"
        raise DefiniteError(message, table=str(schema.table))
    arrays = [
        cast_column(found, schema, column) if pa.types.is_binary(found.type) else found
        for column, found in zip(schema.columns, (each.combine_chunks() for each in table.columns), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=row_schema(schema))


def _read_csv(buffer: bytearray, types: Sequence[pa.DataType]) -> pa.Table:
    """Values of these types, parsed as the casts would; text as it is sent where the type is binary."""
    return pcsv.read_csv(
        pa.py_buffer(buffer),
        read_options=pcsv.ReadOptions(
            use_threads=False, column_names=[str(index) for index in range(len(types))], block_size=len(buffer) + 1
        ),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pcsv.ConvertOptions(
            column_types={str(index): type_ for index, type_ in enumerate(types)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
