"""Documents of JSON: what the binlog has is decoded to the text that a SELECT gives, to the byte."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

from tests.integration.mysql.binlog import position
from tests.integration.mysql.decoding import taken
from tests.mysql_servers import MySqlServer

SPECIAL = [
    "cast('null' as json)",
    "json_object()",
    "json_array()",
    "json_object('d', cast('2024-02-29' as date), 't', cast('-837:59:59.5' as time(6)))",
    "json_array(cast('2024-02-29 12:34:56.789' as datetime(3)), cast(1.50 as decimal(10,2)))",
    "json_array(cast(-12345678901234567890123456789.123456789 as decimal(65,30)), cast(0 as decimal(3,3)))",
    "json_object('b', cast(x'00ff' as binary), 'bit', b'101', 'year', cast(2024 as year))",
    "json_array(st_geomfromtext('point(1 2)'))",
    "json_array(0, -1, 32767, 32768, -32768, -32769, 65535, 65536, 2147483647, -2147483648, 4294967295, 4294967296)",
    "json_array(9223372036854775807, -9223372036854775808, 18446744073709551615)",
    "json_array('\\u0000', 'ü☃😀', '\"quoted\\\\\"', '\\n\\t\\r\\b\\f\\u001f/')",
    "json_array(true, false, null)",
    "json_quote(repeat('x', 70000))",
    "json_object('k', repeat('y', 200), 'kk', 1, 'a', 2)",
    "cast(concat('[', repeat('1,', 40000), '1.5]') as json)",
    "cast(concat(repeat('[', 99), '7', repeat(']', 99)) as json)",
]


def numbers(generator: random.Random) -> list[float]:
    found = [0.0, 1.0, -1.0, 0.1, 1e14, 1e15, 1e16, 1e17, 1.5e15, 123456789012345.6, 1e-4, 1e-5, 1e-6, 1e22, 5e-324]
    found += [10.0**exponent for exponent in range(-30, 31)] + [1.2345 * 10.0**exponent for exponent in range(-30, 31)]
    found += [round(generator.uniform(-1e6, 1e6), digits) for digits in range(12)]
    found += [1234567890123456.0, 12345678901234567.0, 123456789012345678.0, 0.00012345678901234567]
    while len(found) < 1500:
        (value,) = struct.unpack("<d", generator.randbytes(8))
        if math.isfinite(value):
            found.append(value)
    return found


def document(generator: random.Random, depth: int = 0) -> Any:
    kind = generator.randrange(8 if depth < 4 else 5)
    if kind < 5:
        text = "".join(generator.choice('ab"\\ü😀\n ') for _ in range(generator.randrange(20)))
        scalars = [None, True, generator.randrange(-(10**6), 10**6), generator.uniform(-1e9, 1e9), text]
        return scalars[kind]
    items = [document(generator, depth + 1) for _ in range(generator.randrange(6))]
    return items if kind == 5 else {f"{generator.choice('kxü')}{generator.randrange(99)}": item for item in items}


def assert_texts_are_the_servers(server: MySqlServer, expressions: list[str]) -> None:
    begin = position(server)
    server.execute("create database documents", "create table documents.t (id int primary key, d json)")
    with server.connect("documents") as conn, conn.cursor() as cursor:
        for start in range(0, len(expressions), 100):
            part = enumerate(expressions[start : start + 100], start)
            cursor.execute("insert into t values " + ", ".join(f"({row}, {each})" for row, each in part))
        cursor.execute("select id, d from t order by id")
        said = dict(cursor.fetchall())
    rows = taken(server, begin).changes("t")
    server.execute("drop database documents")
    found = {row["id"]: row["d"] for row in rows}
    assert [(expressions[row], said[row], found[row]) for row in said if said[row] != found[row]] == []
    assert len(found) == len(expressions)


def test_numbers_are_written_as_the_server_writes_them(mysql: MySqlServer) -> None:
    values = numbers(random.Random(5))
    assert_texts_are_the_servers(mysql, [f"cast('[{value!r}]' as json)" for value in values])


def test_every_kind_of_document_is_written_as_the_server_writes_it(mysql: MySqlServer) -> None:
    generator = random.Random(7)
    texts = [json.dumps(document(generator), ensure_ascii=False) for _ in range(300)]
    quoted = ["'" + text.replace("\\", "\\\\").replace("'", "''") + "'" for text in texts]
    assert_texts_are_the_servers(mysql, [*SPECIAL, *quoted])
