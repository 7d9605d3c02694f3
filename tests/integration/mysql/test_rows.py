"""Rows that a query finds, against what the binlog has of the same rows, on servers of both makes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tests.integration.mysql.binlog import position
from tests.integration.mysql.capturing import address_of
from tests.integration.mysql.decoding import changes_of, taken
from tests.integration.mysql.test_mysql_catalog import tables_of
from tests.integration.mysql.test_values import FAMILIES, make_table
from tests.mysql_servers import MYSQL, MySqlServer

from tailrace.errors import DefiniteError, TailraceError, TextKeyError
from tailrace.model.change import row_schema
from tailrace.model.rows.exact import EXACT, padded, together
from tailrace.model.table import TableSchema
from tailrace.source.mysql.rows.result_rows import expressions, read_rows
from tailrace.source.mysql.server.connection import ask, connected
from tailrace.source.mysql.values.column_type import ColumnType


def rows_of(server: MySqlServer, schema: TableSchema, where: str = "", read_bytes: int = 1 << 20) -> pa.Table:
    query = f"select {expressions(schema)} from `{schema.table.namespace}`.`{schema.table.name}` {where}"
    with connected(address_of(server)) as connection:
        found = list(read_rows(connection, query, schema, read_bytes))
        # The connection is good for more.
        assert ask(connection, "select 1") == [(1,)]
    return padded(together(found, row_schema(schema)))


def assert_rows_are_those_of_the_binlog(server: MySqlServer, database: str, begin: tuple[str, int]) -> None:
    schema = tables_of(server, database)["t"].schema
    inserted = padded(pa.Table.from_batches([changes_of(taken(server, begin).rows["t"], schema)]))
    names = [*schema.names, EXACT]
    found = rows_of(server, schema, "order by id").select(names)
    assert found.num_rows == inserted.num_rows
    for name in names:
        ours, theirs = found.column(name).to_pylist(), inserted.column(name).to_pylist()
        wrong = [pair for pair in zip(ours, theirs, strict=True) if repr(pair[0]) != repr(pair[1])]
        assert wrong == [], schema.column(name).source_type if name != EXACT else name


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_have_the_values_that_the_binlog_has_of_them(server: MySqlServer, database: str, family: str) -> None:
    make_table(server, database, FAMILIES[family])
    mode, copy = "set sql_mode = 'ALLOW_INVALID_DATES'", "insert into {} select * from {} order by id"
    server.execute(mode, "create table u like t", copy.format("u", "t"), "truncate t", database=database)
    begin = position(server)
    server.execute(mode, copy.format("t", "u"), database=database)
    assert_rows_are_those_of_the_binlog(server, database, begin)


def test_documents_and_vectors_are_read_as_they_are_logged(mysql: MySqlServer) -> None:
    mysql.execute("create database read_documents")
    begin = position(mysql)
    mysql.execute(
        "create table read_documents.t (id int primary key, d json, v vector(2))",
        'insert into read_documents.t values (1, \'{"b": [1, 2.50, null], "a": "ü"}\', '
        "string_to_vector('[1,2.5]')), (2, null, null)",
    )
    assert_rows_are_those_of_the_binlog(mysql, "read_documents", begin)
    mysql.execute("drop database read_documents")


@pytest.mark.parametrize("read_bytes", [1, 7, 1000, 1 << 20])
def test_rows_are_found_however_their_bytes_come(server: MySqlServer, database: str, read_bytes: int) -> None:
    count = 30 if read_bytes == 1 else 3000
    values = ", ".join(f"({row}, repeat('x', {row % 300}), if({row} % 7, {row}, null))" for row in range(count))
    server.execute(
        "create table t (id int primary key, body text, n int)", f"insert into t values {values}", database=database
    )
    schema = tables_of(server, database)["t"].schema
    found = rows_of(server, schema, "order by id", read_bytes).to_pylist()
    assert [(row["id"], len(row["body"]), row["n"]) for row in found] == [
        (row, row % 300, row if row % 7 else None) for row in range(count)
    ]


def test_a_row_of_more_than_one_packet_is_read_whole(server: MySqlServer, database: str) -> None:
    server.execute(
        "create table t (id int primary key, body longblob)",
        "set global max_allowed_packet = 1 << 28",
        database=database,
    )
    sizes = {1: 5, 2: 40_000_000, 3: (1 << 24) - 1, 4: 0, 5: 70_000}
    rows = ", ".join(f"({row}, repeat('z', {size}))" for row, size in sizes.items())
    server.execute(f"insert into t values {rows}", database=database)
    schema = tables_of(server, database)["t"].schema
    found = rows_of(server, schema, "order by id").to_pylist()
    assert {row["id"]: len(row["body"]) for row in found} == sizes
    assert set(found[1]["body"]) == {ord("z")}


def test_no_rows_are_no_batches(server: MySqlServer, database: str) -> None:
    server.execute("create table t (id int primary key)", database=database)
    assert rows_of(server, tables_of(server, database)["t"].schema).num_rows == 0


def test_an_error_amid_the_rows_is_the_servers(server: MySqlServer, database: str) -> None:
    server.execute(
        "create table t (id int primary key)",
        f"insert into t values {', '.join(f'({row})' for row in range(5000))}",
        database=database,
    )
    schema = tables_of(server, database)["t"].schema
    broken = "where id < 4000 or (select id from (select 1 id union select 2) x) = 1"
    with pytest.raises(TailraceError, match="more than 1 row"):
        rows_of(server, schema, broken)


def test_a_key_that_has_no_exact_type_is_told(server: MySqlServer, database: str) -> None:
    server.execute(
        "set sql_mode = ''",
        "create table t (d date primary key, e datetime(3))",
        "insert into t values ('0000-00-00', '0000-00-00'), ('2024-01-02', '2024-01-02 03:04:05.678')",
        database=database,
    )
    schema = tables_of(server, database)["t"].schema
    with pytest.raises(TextKeyError, match="0000-00-00"):
        rows_of(server, schema)


def test_another_table_than_was_asked_for_is_refused(mysql: MySqlServer) -> None:
    mysql.execute("create database narrow", "create table narrow.t (id int primary key, a int)")
    schema = tables_of(mysql, "narrow")["t"].schema
    with connected(address_of(mysql)) as connection, pytest.raises(DefiniteError, match="number of columns"):
        list(read_rows(connection, "select id from narrow.t", schema))
    mysql.execute("drop database narrow")


def test_what_a_float_is_cut_to_is_what_it_was(mysql: MySqlServer) -> None:
    generator = random.Random(3)
    mysql.execute("create database floats", "create table floats.t (id int primary key, f float)")
    values = [generator.uniform(-1, 1) * 10 ** generator.randrange(-30, 30) for _ in range(500)]
    begin = position(mysql)
    rows = ", ".join(f"({row}, {value!r})" for row, value in enumerate(values))
    mysql.execute(f"insert into floats.t values {rows}")
    assert_rows_are_those_of_the_binlog(mysql, "floats", begin)
    assert ColumnType.parse("float").lake_type == "float"
    assert mysql.make is MYSQL
    mysql.execute("drop database floats")
