"""Every type: what the binlog has of a value is decoded to what a SELECT says of it, on servers of both makes."""

from __future__ import annotations

import math
import random
import struct
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from pymysql.cursors import Cursor
from tests.integration.mysql.binlog import position
from tests.integration.mysql.decoding import changes_of, taken
from tests.mysql_servers import MYSQL, MySqlServer

from tailrace.model.change import BEFORE
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE
from tailrace.model.table import Column
from tailrace.source.mysql.values.column_type import ColumnType

TEXTS = ["''", "'a'", "'plain text '", "'Größe – ☃'", "repeat('é', 12)"]
DATES = ["'2024-02-29'", "'1000-01-01'", "'9999-12-31'", "'0001-01-01'", "'0000-00-00'", "'2024-00-15'"]
ODD_DATES = ["'2024-02-31'", "'2023-02-29'", "'0000-01-01'", "'2024-11-00'"]
CLOCKS = ["00:00:00", "23:59:59.999999", "12:34:56.789012", "01:02:03.000001"]
DOUBLES = ["0", "-0.0", "1.5", "-2.25e-300", "1.7976931348623157e308", "3.141592653589793", "1e15", "1e16", "123456789"]


def integers(bits: int) -> list[str]:
    return [str(each) for each in (0, 1, -1, 1 << bits - 1, -(1 << bits - 1), (1 << bits - 1) - 1, (1 << bits) - 1, 42)]


def decimals(digits: int, scale: int) -> list[str]:
    generator = random.Random(digits * 100 + scale)
    found = ["0", "1", "-1", "0.5", "-0.1"]
    for _ in range(12):
        number = generator.randrange(10 ** generator.randrange(1, digits + 1))
        found.append(str(generator.choice((1, -1)) * Decimal(number).scaleb(-scale)))
    return [*found, str(Decimal(10**digits - 1).scaleb(-scale)), str(-Decimal(10**digits - 1).scaleb(-scale))]


FAMILIES: dict[str, dict[str, list[str]]] = {
    "integers": {
        f"{name} {sign}".strip(): integers(bits)
        for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64))
        for sign in ("", "unsigned")
    },
    "numbers": {
        "float": ["0", "-0.0", "1.5", "16777217.5", "3.4e38", "1.2e-38", "0.1"],
        "double": DOUBLES,
        "float unsigned": ["0.1", "7"],
        **{f"bit({bits})": ["0", "1", f"(1 << {bits}) - 1", "5"] for bits in (1, 7, 8, 9, 33, 63)},
        "bit(64)": ["0", "1", "~0", "b'1' << 63"],
        "year": ["1901", "2155", "0", "2024", "1970"],
    },
    "decimals": {
        f"decimal({digits},{scale})": decimals(digits, scale)
        for digits, scale in (
            *((1, 0), (1, 1), (5, 2), (9, 0), (9, 9), (10, 0), (18, 9), (19, 10), (20, 4), (27, 18), (30, 30)),
            *((38, 0), (38, 10), (38, 30), (39, 0), (65, 0), (65, 30), (12, 2)),
        )
    },
    "dates": {
        "date": [*DATES, *ODD_DATES],
        **{
            f"datetime({digits})": [f"'{day[1:-1]} {clock}'" for day in (*DATES, *ODD_DATES) for clock in CLOCKS[:3]]
            for digits in range(7)
        },
        **{
            f"timestamp({digits}) null": [
                "'1970-01-01 00:00:01'",
                "'2038-01-19 03:14:07'",
                "'2024-06-30 12:34:56.789012'",
                "'0000-00-00 00:00:00'",
            ]
            for digits in range(7)
        },
    },
    "times": {
        f"time({digits})": [
            *(f"'{sign}{clock}'" for clock in CLOCKS for sign in ("", "-")),
            *("'838:59:59'", "'-838:59:59'", "'-00:00:00.5'", "'100:00:00'"),
        ]
        for digits in range(7)
    },
    "texts": {
        **{f"{name}({size})": TEXTS for name in ("char", "varchar") for size in (1, 40, 63, 64, 255)},
        "varchar(300)": [*TEXTS, "repeat('x', 300)"],
        **dict.fromkeys(("tinytext", "text"), TEXTS),
        **{name: [*TEXTS, "repeat('ü', 70000)"] for name in ("mediumtext", "longtext")},
        "varchar(20) character set latin1": ["'Größe'", "x'8081828d9fff'", "'ascii'"],
        "char(20) character set utf16": TEXTS,
        "varchar(20) character set cp1251": ["'Привет'"],
        "text character set gbk": ["'中文'"],
        "varchar(20) collate utf8mb4_bin": TEXTS,
        "varchar(20) character set utf8mb3": ["'Größe'"],
    },
    "bytes": {
        "binary(5)": ["''", "'a'", "x'6100'", "x'0000000000'", "'abcde'", "x'ff00ff00ff'"],
        "binary(255)": ["'a'"],
        "varbinary(20)": ["''", "x'6100'", "x'00ff'"],
        "varbinary(2000)": ["repeat(x'ff', 2000)"],
        **{name: ["''", "x'00ff00'"] for name in ("tinyblob", "blob", "mediumblob", "longblob")},
    },
    "labels": {
        "enum('a','it''s','Größe, (etwas)','')": ["1", "2", "3", "4", "'nothing'"],
        "set('x','y','z')": ["0", "1", "7", "'x,z'"],
        f"enum({','.join(repr(f'l{n}') for n in range(300))})": ["1", "255", "256", "300"],
        f"set({','.join(repr(f's{n}') for n in range(64))})": ["0", "1", "~0", "1 << 63", "1 << 40"],
        f"set({','.join(repr(f's{n}') for n in range(33))})": ["1 << 32", "3"],
        "enum('ä','ö') character set latin1": ["1", "2"],
    },
    "geometries": {
        "geometry": ["st_geomfromtext('point(1 2)')", "st_geomfromtext('linestring(0 0,1 1)')"],
        "point": ["st_geomfromtext('point(3 4)')"],
        "polygon": ["st_geomfromtext('polygon((0 0,1 0,1 1,0 0))')"],
    },
}


def make_table(server: MySqlServer, database: str, columns: dict[str, list[str]], name: str = "t") -> list[str]:
    """A table with a column of each type, and a row for each value; the rest is null. Returns the columns' names."""
    names = [f"c{place}" for place in range(len(columns))]
    definitions = ", ".join(f"{each} {type_}" for each, type_ in zip(names, columns, strict=True))
    rows = max(map(len, columns.values()))
    inserts = []
    for row in range(rows):
        values = [texts[row] if row < len(texts) else "null" for texts in columns.values()]
        inserts.append(f"insert into {name} values ({row}, {', '.join(values)})")
    server.execute(
        "set sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'",
        f"create table {name} (id int primary key, {definitions})",
        *inserts,
        f"update {name} set id = id + 1000 where id % 3 = 1",
        f"delete from {name} where id % 5 = 4",
        database=database,
    )
    return names


def selected(server: MySqlServer, database: str, columns: list[Column]) -> dict[int, list[Any]]:
    """What the server says of each row, as bytes, by the key."""
    expressions = []
    for column in columns:
        type_ = ColumnType.parse(column.source_type)
        how = "{0} + 0e0" if type_.name in ("float", "double") else "{0} + 0" if type_.name == "bit" else "{0}"
        expressions.append(how.format(column.name))
    with server.connect(database, conv={}, use_unicode=False, cursorclass=Cursor) as conn, conn.cursor() as cursor:
        cursor.execute("set time_zone = '+00:00'")
        cursor.execute(f"select id, {', '.join(expressions)} from t")
        return {int(row[0]): list(row[1:]) for row in cursor.fetchall()}


def replayed(changes: list[dict[str, Any]], columns: list[Column]) -> dict[int, list[Any]]:
    """The rows after the changes, whose values are what is in the lake, or its text where it is not exact there."""
    rows: dict[int, list[Any]] = {}
    for change in changes:
        before = change[BEFORE]
        if before is not None:
            old = rows.pop(before["id"])
            assert [str(each) for each in old] == [str(each) for each in values(before, change, EXACT_BEFORE, columns)]
        if change["tailrace:op"] in "cu":
            rows[change["id"]] = values(change, change, EXACT, columns)
    return rows


def values(row: dict[str, Any], change: dict[str, Any], exact: str, columns: list[Column]) -> list[Any]:
    texts = dict(change.get(exact) or [])
    assert all(row[name] is None for name in texts)
    return [Exact(texts[column.name]) if column.name in texts else row[column.name] for column in columns]


class Exact(str):
    """The text of a value that has no exact lake type."""


def shown(value: Any, column: Column) -> bytes | None:
    """A lake's value as the server would print it."""
    if value is None or isinstance(value, bytes):
        return value
    type_ = ColumnType.parse(column.source_type)
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, datetime):
        fraction = f".{value.microsecond:06}"[: type_.size + 1] if type_.size else ""
        # strftime does not fill years with zeros.
        return f"{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}".encode()
    if type_.name == "year":
        return f"{value:04}".encode()
    return f"{value:f}".encode() if isinstance(value, Decimal) else str(value).encode()


def assert_same(found: Any, said: bytes | None, column: Column, where: str) -> None:
    if column.type in ("float", "double") and said is not None:
        number = float(said)
        narrowed = struct.unpack("<f", struct.pack("<f", number))[0] if column.type == "float" else number
        assert found == narrowed, where
        assert math.copysign(1, found) == math.copysign(1, narrowed), where
    else:
        assert shown(found, column) == said, where


@pytest.mark.parametrize("family", FAMILIES)
def test_a_value_is_decoded_to_what_a_select_says_of_it(server: MySqlServer, database: str, family: str) -> None:
    begin = position(server)
    make_table(server, database, FAMILIES[family])
    found = taken(server, begin)
    schema = found.announced("t").schema(1)
    columns = [column for column in schema.columns if column.name != "id"]
    assert found.announced("t").key == ("id",)
    said = selected(server, database, columns)
    rows = replayed(changes_of(found.rows["t"]).to_pylist(), columns)
    assert rows.keys() == said.keys()
    for key, row in rows.items():
        for value, text, column in zip(row, said[key], columns, strict=True):
            assert_same(value, text, column, f"{column.source_type} in row {key}")


def test_the_types_of_a_table_are_told_by_the_binlog_alone(server: MySqlServer, database: str) -> None:
    begin = position(server)
    declared = [type_ for family in FAMILIES.values() for type_ in family]
    make_table(server, database, {type_: ["null"] for type_ in declared})
    announced = taken(server, begin).announced("t")
    wanted = [type_.removesuffix(" null").replace("(0)", "") for type_ in declared]
    wanted = [type_.partition(" collate")[0].replace("') character set latin1", "')") for type_ in wanted]
    told = [str(type_) for _, type_ in announced.columns[1:]]
    assert [each for each in zip(told, wanted, strict=True) if each[0] != each[1]] == []


def test_a_vector_is_an_array_of_its_numbers(mysql: MySqlServer) -> None:
    begin = position(mysql)
    mysql.execute(
        "create database vectors",
        "create table vectors.t (id int primary key, v vector(3), w vector(2048))",
        "insert into vectors.t values (1, string_to_vector('[1,-2.5,8e9]'), null), (2, null, string_to_vector('[1]'))",
        "drop database vectors",
    )
    rows = taken(mysql, begin).changes("t")
    assert [(row["v"], row["w"]) for row in rows] == [([1.0, -2.5, 8e9], None), (None, [1.0])]


def test_generated_and_invisible_columns_are_in_the_rows(server: MySqlServer, database: str) -> None:
    begin = position(server)
    server.execute(
        "create table t (a int, b int as (a + 1) virtual, c int as (a + 2) stored, d int invisible default 4)",
        "insert into t (a) values (1)",
        *(["create index f on t ((a * 2))", "insert into t (a) values (5)"] if server.make is MYSQL else []),
        database=database,
    )
    rows = [tuple(row[name] for name in "abcd") for row in taken(server, begin).changes("t")]
    assert rows == [(1, 2, 3, 4), (5, 6, 7, 4)][: len(rows)]
    assert len(rows) == (2 if server.make is MYSQL else 1)
