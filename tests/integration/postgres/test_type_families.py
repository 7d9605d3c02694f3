"""Every type family: the snapshot and the stream give the same values, and they are the server's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from demo.compare import lake_rows, source_rows
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.wal import Stream

from tailrace.errors import DefiniteError, TextKeyError
from tailrace.model.change import row_schema
from tailrace.model.rows.exact import EXACT, together
from tailrace.source.postgres.catalog.tables import list_tables, schema_of
from tailrace.source.postgres.rows.chunks import BlockChunk, read
from tailrace.source.postgres.server.connection import IdleConnections, connect
from tailrace.source.postgres.source import PostgresSource

DEFINITIONS = """
create type mood as enum ('sad', 'it''s ok', 'happy');
create type pair as (x int, y text);
create domain price as numeric(10, 2) check (value >= 0);
create domain discount as price;
create domain code as text;
create domain codes as text[];
create schema other;
create type other.date as enum ('not a day');
create type span as range (subtype = float8);
"""

CASES: dict[str, tuple[str, list[str]]] = {
    "bool": ("boolean", ["true", "false"]),
    "smallint": ("smallint", ["-32768", "32767"]),
    "int": ("int", ["-2147483648", "2147483647", "0"]),
    "bigint": ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    "oid": ("bigint", ["'4294967295'"]),
    "real": ("float", ["1e-45", "3.4028235e38", "0.1", "'NaN'", "'-Infinity'", "'-0'"]),
    "double precision": ("double", ["5e-324", "1.7976931348623157e308", "0.1", "'NaN'", "'Infinity'", "'-0'"]),
    "numeric(12,2)": ("decimal(12,2)", ["9999999999.99", "-0.01", "0"]),
    "numeric(38,0)": ("decimal(38,0)", ["99999999999999999999999999999999999999"]),
    "numeric(38,38)": ("decimal(38,38)", ["0.00000000000000000000000000000000000001"]),
    "numeric(5,-2)": ("string", ["123456"]),
    "numeric(39,1)": ("string", ["'NaN'", "12345678901234567890123456789012345678.9"]),
    "numeric": ("string", ["'Infinity'", "'NaN'", "1.500", "1e-30"]),
    "money": ("string", ["1234.5"]),
    "price": ("decimal(10,2)", ["12.50"]),
    "discount": ("decimal(10,2)", ["0.05"]),
    "code": ("string", ["'X-1'"]),
    "text": ("string", ["''", "'NULL'", r"'\.'", r"E'a\nb\r\n\t\"c\",d'", "'Zürich 🌊'", r"'\N'", "' '"]),
    "varchar(10)": ("string", ["'ab  '", "''"]),
    "char(5)": ("string", ["'ab'", "''"]),
    '"char"': ("string", ["'x'", "','", "''"]),
    "name": ("string", ["'a name'"]),
    "uuid": ("string", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "json": ("string", [r"""'{"a":  [1, null], "b": "\u0000"}'"""]),
    "jsonb": ("string", ["""'{"b": 1.0, "a": "x\\ny"}'""", "'null'"]),
    "mood": ("string", ["'sad'", "'it''s ok'"]),
    "other.date": ("string", ["'not a day'"]),
    "bytea": ("binary", [r"'\x'", r"'\x00ff5c78'", "'plain'"]),
    "date": ("date", ["'0001-01-01'", "'1582-10-10'", "'9999-12-31'", "'2024-02-29'"]),
    "timestamp": ("timestamp_ntz", ["'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'2024-01-01 00:00:00.1'"]),
    "timestamp(0)": ("timestamp_ntz", ["'2024-01-01 12:30:00.7'"]),
    "timestamptz": ("timestamp", ["'1800-01-01 12:00+01:23:45'", "'2024-03-31 02:30+02'", "'9999-12-31 23:59:59+00'"]),
    "time": ("string", ["'24:00:00'", "'12:00:00.000001'"]),
    "timetz": ("string", ["'12:00:00+05:30'"]),
    "interval": ("string", ["'1 year -2 days 03:04:05.6'", "'-1 mons'"]),
    "bit(3)": ("string", ["B'101'"]),
    "varbit": ("string", ["B''", "B'1'"]),
    "inet": ("string", ["'10.0.0.1/8'", "'::1'"]),
    "cidr": ("string", ["'10.0.0.0/8'"]),
    "macaddr": ("string", ["'08:00:2b:01:02:03'"]),
    "macaddr8": ("string", ["'08:00:2b:01:02:03:04:05'"]),
    "point": ("string", ["'(1,2.5)'"]),
    "polygon": ("string", ["'((0,0),(1,1),(1,0))'"]),
    "tsvector": ("string", ["'a fat cat'"]),
    "pg_lsn": ("string", ["'16/B374D848'"]),
    "int[]": ("array<int>", ["'{1,NULL,3}'", "'{{1,2},{3,4}}'", "'[2:3]={5,6}'", "'{}'", "'[0:0]={7}'"]),
    "text[]": ("array<string>", ["""array['a"b', 'c,d', null, 'NULL', '', '{', E'\\\\', ' ']""", "'{{a},{b}}'"]),
    "varchar(3)[]": ("array<string>", ["'{ab,NULL}'"]),
    "mood[]": ("array<string>", ["array['sad', 'it''s ok', null]::mood[]"]),
    "pair[]": ("array<string>", ["""array[row(1, 'a,"b')::pair, null]"""]),
    "code[]": ("array<string>", ["'{X,Y}'"]),
    "price[]": ("array<decimal(10,2)>", ["'{1.5,NULL,0}'"]),
    "codes": ("array<string>", ["'{X,Y}'"]),
    "numeric(5,2)[]": ("array<decimal(5,2)>", ["'{1,2.25}'", "'{1,NaN}'", "'{}'"]),
    "numeric[]": ("array<string>", ["'{1.0,1.00,NaN,1e40}'"]),
    "bool[]": ("array<boolean>", ["'{t,f,NULL}'"]),
    "bytea[]": ("array<binary>", [r"array['\x00ff', '', null]::bytea[]"]),
    "real[]": ("array<float>", ["'{1e-45,0.1,NaN,-Infinity,-0,3.4028235e38,1e6,100000}'"]),
    "float8[]": ("array<double>", ["'{5e-324,0.1,NaN,Infinity,-0,1e15,1e14,0.0001,0.00001}'"]),
    "date[]": ("array<date>", ["'{2024-01-01,NULL}'", "'{2024-01-01,infinity}'", "'{0044-03-15 BC}'"]),
    "timestamptz[]": ("array<timestamp>", ["'{2024-01-01 12:00+02,NULL}'", "'{-infinity}'"]),
    "timestamp[]": ("array<timestamp_ntz>", ["array['2024-01-01 12:00:00.5', null]::timestamp[]"]),
    "uuid[]": ("array<string>", ["'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"]),
    "jsonb[]": ("array<string>", ["""array['{"a": "\\\\n"}', null]::jsonb[]"""]),
    "time[]": ("array<string>", ["'{24:00:00}'"]),
    "int4range[]": ("array<string>", ["array['[1,5)'::int4range, 'empty']"]),
    "box[]": ("string", ["'{(1,1),(0,0);(3,3),(2,2)}'"]),
    "int2vector": ("string", ["'1 2 3'"]),
    "oidvector": ("string", ["'1 2'"]),
    "pair": ("string", ["row(1, 'a,\"b')", "row(null, '')"]),
    "int4range": ("string", ["'[1,5)'", "'empty'"]),
    "span": ("string", ["'[1.5,)'"]),
    "datemultirange": ("string", ["'{[2024-01-01,2024-02-01)}'"]),
}


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def dsn(server: EmbeddedPostgres) -> Iterator[str]:
    """One database for all: each test has a table of its own."""
    address = server.create_database("type_families")
    with connect(address) as conn:
        conn.execute(DEFINITIONS)
    yield address
    server.drop_database("type_families")


@pytest.fixture
def stream(conn: psycopg.Connection) -> Iterator[Stream]:
    """The changes of an empty table called `{stream.table}`, to which a test adds the column `v`."""
    table = f"t{next(_numbers)}"
    conn.execute(f"create table {table} (id int primary key)")
    opened = Stream(conn, table)
    yield opened
    opened.close()


def snapshot(conn: psycopg.Connection, dsn: str, name: str) -> Any:
    """The table as the initial copy reads it."""
    (info,) = list_tables(conn, [name])
    with psycopg.connect(dsn) as holder:
        holder.execute("set transaction isolation level repeatable read")
        (exported,) = holder.execute("select pg_export_snapshot()").fetchone() or ()
        schema = schema_of(info)
        return together(list(read(IdleConnections(dsn), exported, BlockChunk(info.table), schema)), row_schema(schema))


@pytest.mark.parametrize("declared", CASES)
def test_snapshot_and_stream_give_the_servers_own_value(
    conn: psycopg.Connection, dsn: str, stream: Stream, declared: str
) -> None:
    lake, literals = CASES[declared]
    table = stream.table
    conn.execute(f"alter table {table} add column v {declared}")
    for number, literal in enumerate([*literals, "null"]):
        conn.execute(f"insert into {table} values ({number}, {literal})")
    changes = stream.changes(table)
    (schema,) = stream.schemas.values()
    (info,) = list_tables(conn, [table])
    assert schema == schema_of(info)
    assert schema.column("v").type == lake

    columns = ["id", "v", *([EXACT] if EXACT in changes.schema.names else [])]
    streamed = pa.Table.from_batches([changes]).select(columns)
    copied = snapshot(conn, dsn, table).sort_by("id")
    assert copied.schema == streamed.schema
    assert repr(copied.to_pylist()) == repr(streamed.to_pylist())
    expected = sorted(source_rows(conn, table, streamed.schema), key=lambda row: int(row[0]))
    assert lake_rows(streamed) == expected
    assert [value is None for _, value in expected] == [False] * len(literals) + [True]


BEYOND = [
    ("date", "infinity"),
    ("date", "-infinity"),
    ("date", "0044-03-15 BC"),
    ("date", "10000-01-01"),
    ("timestamp", "infinity"),
    ("timestamp", "4713-01-01 00:00:00 BC"),
    ("timestamp", "294276-12-31 23:59:59.999999"),
    ("timestamptz", "-infinity"),
    ("timestamptz", "0044-03-15 12:00:00+00 BC"),
    ("timestamptz", "10000-01-01 00:00:00+00"),
    ("numeric(5,2)", "NaN"),
    ("int[]", "[0:1]={1,2}"),
    ("text[]", "{{a,b},{c,d}}"),
    ("date[]", "{infinity}"),
]


@pytest.mark.parametrize(("declared", "literal"), BEYOND)
def test_a_value_the_lake_cannot_hold_is_kept_as_the_server_prints_it(
    conn: psycopg.Connection, dsn: str, stream: Stream, declared: str, literal: str
) -> None:
    table = stream.table
    conn.execute(f"alter table {table} add column v {declared}")
    conn.execute(f"insert into {table} values (1, null), (2, %s)", [literal])
    for rows in (pa.Table.from_batches([stream.changes(table)]), snapshot(conn, dsn, table).sort_by("id")):
        assert rows.column("v").null_count == 2
        assert rows.column(EXACT).to_pylist() == [None, [("v", literal)]]


@pytest.mark.parametrize(("declared", "literal"), [("date", "infinity"), ("timestamptz", "0044-03-15 12:00:00+00 BC")])
def test_a_key_the_lake_cannot_hold_is_to_be_text_for_snapshot_and_stream_alike(
    conn: psycopg.Connection, dsn: str, stream: Stream, declared: str, literal: str
) -> None:
    table = stream.table
    conn.execute(f"alter table {table} drop id; alter table {table} add v {declared} primary key")
    conn.execute(f"insert into {table} values (%s)", [literal])
    for attempt in (lambda: stream.changes(table), lambda: snapshot(conn, dsn, table)):
        with pytest.raises(TextKeyError) as caught:
            attempt()
        assert caught.value.table == f"public.{table}"
        assert f"column v is in the key and is text now: the value '{literal}' has no exact " in caught.value.message
        assert list(caught.value.columns) == [2]


def test_a_dropped_type_still_decodes_as_text(conn: psycopg.Connection, stream: Stream) -> None:
    table = stream.table
    conn.execute(f"create type gone as enum ('x'); alter table {table} add column v gone")
    conn.execute(f"insert into {table} values (1, 'x')")
    conn.execute(f"alter table {table} drop column v; drop type gone")
    (row,) = stream.changes(table).to_pylist()
    assert row["v"] == "x"


def test_a_numeric_without_precision_is_a_number_where_a_person_wants_it(conn: psycopg.Connection, dsn: str) -> None:
    """Exact where it fits, and its text where it does not; other columns of the pattern stay what they are."""
    table = f"t{next(_numbers)}"
    conn.execute(f"create domain amount_{table} as numeric")
    conn.execute(f"create table {table} (id int primary key, v numeric, w amount_{table}, x numeric(5,2), y text)")
    texts = ["1.0", "1.00", "-0.0000000001", "NaN", "-Infinity", "9" * 28, "9" * 29, "0.00000000001", "7.00000000000"]
    for number, text in enumerate(texts):
        conn.execute(f"insert into {table} values (%s, %s, %s, 1.5, 'a')", [number, text, text])
    source = PostgresSource(dsn, as_text=[f"{table}.*=decimal(38,10)"])
    (described,) = source.tables([f"public.{table}"], [])
    types = [column.type for column in described.schema.columns]
    assert types == ["int", "decimal(38,10)", "decimal(38,10)", "decimal(5,2)", "string"]
    with source.snapshot() as point:
        chunks = [
            each
            for chunk in source.chunks(described, 1 << 20)
            for each in source.read_chunk(point, chunk, described.schema)
        ]
    rows = together(chunks, row_schema(described.schema)).sort_by("id").to_pylist()
    for text, row in zip(texts, rows, strict=True):
        kept = dict(row[EXACT] or ())
        fits = text not in ("NaN", "-Infinity", "9" * 29, "0.00000000001")
        assert (row["v"], row["w"]) == ((Decimal(text), Decimal(text)) if fits else (None, None))
        assert kept == ({} if fits else {"v": text, "w": text})
    with pytest.raises(DefiniteError, match="no numeric without precision matches"):
        PostgresSource(dsn, as_text=[f"{table}.y=decimal(38,10)"]).tables([f"public.{table}"], [])
