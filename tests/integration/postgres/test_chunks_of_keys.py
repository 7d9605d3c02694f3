"""Rows that are read again are asked for by their keys, whatever those are made of."""

from __future__ import annotations

import psycopg
import pyarrow as pa
from tests.integration.postgres.reading import described, numbers, read

from tailrace.source.postgres.source import PostgresSource


def test_rows_that_were_asked_for_by_their_keys_are_those_rows(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    columns = {
        "i": ("int", ["1", "2", "3"]),
        "s": ("text", ["it's", "\\", "ä\n"]),
        "b": ("bytea", ["\\x00ff", "\\x", "\\x27"]),
        "f": ("float8", ["NaN", "-0", "0.1"]),
        "r": ("float4", ["Infinity", "-Infinity", "0.1"]),
        "d": ("date", ["0001-01-01", "2024-02-29", "9999-12-31"]),
        "ts": ("timestamp", ["0001-01-01 00:00:00", "2024-02-29 12:34:56.123456", "9999-12-31 23:59:59.999999"]),
        "tz": ("timestamptz", ["0001-01-01 00:00:00Z", "2024-02-29 12:34:56.123456Z", "1969-12-31 23:59:59.999999Z"]),
        "n": ("numeric(20,10)", ["0.0000000001", "-1234567890.5", "0"]),
        "t": ("boolean", ["t", "f", "t"]),
        "u": ("numeric", ["1.00", "NaN", "12345678901234567890123456789012345678901234567890"]),
    }
    listed = ", ".join(f"{name} {type_}" for name, (type_, _) in columns.items())
    conn.execute(f"create table t ({listed}, number int, primary key ({', '.join(reversed(columns))}))")
    for number in range(3):
        given = [values[number] for _, values in columns.values()]
        casts = ", ".join(f"%s::text::{type_}" for type_, _ in columns.values())
        conn.execute(f"insert into t values ({casts}, %s)", [*given, number])
    table = described(source)
    with source.window() as point:
        whole = read(source, point, table, source.chunks(table, 1 << 20)).sort_by("number")
        keys = whole.select(table.schema.key)
        for wanted in ([0, 1, 2], [1], [2, 2], []):
            found = read(source, point, table, [source.chunk_of_keys(table, keys.take(pa.array(wanted, pa.int64())))])
            assert numbers(found, "number") == sorted(set(wanted))
            assert [repr(row) for row in whole.to_pylist() if row["number"] in wanted] == [
                repr(row) for row in found.sort_by("number").to_pylist()
            ]
