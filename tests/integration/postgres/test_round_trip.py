"""Random values of every type, by the first copy and by the stream: alike, and what the server prints."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
from demo.compare import lake_rows, source_rows
from tests.integration.postgres.wal import Stream

from tailrace.model.change import row_schema
from tailrace.model.exact import EXACT, padded, together
from tailrace.model.lake_types import is_limited
from tailrace.source.postgres._catalog import list_tables, schema_of
from tailrace.source.postgres._chunks import BlockChunk, read

ROWS = 120
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "types.md"
NEVER_STORED = {"pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "pg_brin_bloom_summary"}
NEVER_STORED |= {"pg_brin_minmax_multi_summary"}

Draw = Callable[[random.Random], str]


def whole(bits: int) -> Draw:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return lambda rng: str(rng.choice([low, high, 0, -1, rng.randint(low, high)]))


def day(rng: random.Random) -> str:
    odd = ["infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "10000-01-01", "0001-12-31 BC"]
    fits = ["0001-01-01", "9999-12-31", "1582-10-10", "1970-01-01", "2000-02-29"]
    return rng.choice([*odd, *fits, f"{rng.randint(1, 12000):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"])


def moment(rng: random.Random) -> str:
    date = day(rng)
    if "infinity" in date or date[:7] in ("4714-11", "5874897"):
        return rng.choice(["infinity", "-infinity", "4713-01-01 00:00:00 BC", "294276-12-31 23:59:59.999999"])
    fraction = rng.choice(["", ".5", ".000001", ".999999", f".{rng.randint(0, 999999):06}"])
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}{fraction}"
    year, _, era = date.partition(" ")
    return f"{year} {time} {era}".strip()


def number(digits: int, scale: int) -> Draw:
    def draw(rng: random.Random) -> str:
        text = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, digits - scale)))
        fraction = "".join(rng.choice("0123456789") for _ in range(scale))
        return rng.choice(["NaN", "0", f"{rng.choice(['', '-'])}{text}.{fraction}"])

    return draw


def free_number(rng: random.Random) -> str:
    return rng.choice(
        ["NaN", "Infinity", "-Infinity", "1.0", "1.00", "1e-40", f"{rng.randint(0, 9)}e{rng.randint(0, 99)}"]
    )


def fraction(rng: random.Random) -> str:
    return rng.choice(
        ["NaN", "Infinity", "-Infinity", "0", "-0", repr(rng.uniform(-1e6, 1e6)), "1e-37", "3e38", "1e15"]
    )


def words(rng: random.Random) -> str:
    return "".join(rng.choice("ab ,\"\\{}[]NULL\n\t\rä🌊'=0") for _ in range(rng.randint(0, 8)))


def raw(rng: random.Random) -> str:
    return "\\x" + rng.randbytes(rng.randint(0, 6)).hex()


def listed(draw: Draw) -> Draw:
    """Arrays: of no, one or two dimensions, with other bounds, with nulls."""

    def element(rng: random.Random) -> str:
        if rng.random() < 0.15:
            return "NULL"
        escaped = draw(rng).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    def array(rng: random.Random) -> str:
        one, other = (",".join(element(rng) for _ in range(3)) for _ in range(2))
        flat = "{" + ",".join(element(rng) for _ in range(rng.randint(0, 4))) + "}"
        return rng.choice([flat, flat, flat, f"{{{{{one}}},{{{other}}}}}", f"[-1:1]={{{one}}}"])

    return array


def chosen(*texts: str) -> Draw:
    return lambda rng: rng.choice(texts)


PLAIN: dict[str, Draw] = {
    "boolean": chosen("t", "f"),
    "smallint": whole(16),
    "integer": whole(32),
    "bigint": whole(64),
    "oid": lambda rng: str(rng.choice([0, 2**32 - 1, rng.randint(0, 2**32 - 1)])),
    "real": fraction,
    "double precision": fraction,
    "numeric(12,2)": number(12, 2),
    "numeric(38,38)": lambda rng: f"0.{rng.randint(0, 10**38 - 1):038}",
    "numeric(38,0)": number(38, 0),
    "numeric": free_number,
    "bytea": raw,
    "date": day,
    "timestamp": moment,
    "timestamp(3)": moment,
    "timestamptz": moment,
    "text": words,
    "varchar(9)": words,
    "char(9)": words,
    "uuid": lambda rng: f"{rng.getrandbits(128):032x}",
    "jsonb": chosen('{"b": [1, null], "a": "x\\ny"}', "null", '"ä"'),
    "json": chosen('{"b":  1.0}', "[]"),
    "time": chosen("24:00:00", "00:00:00", "12:34:56.000001"),
    "timetz": chosen("24:00:00+05:30", "00:00:00-12"),
    "interval": chosen("1 year -2 days 03:04:05.6", "-1 mon", "178000000 years", "24:00:00"),
    "money": chosen("92233720368547758.07", "-1.5"),
    "bit(3)": chosen("101", "000"),
    "bit varying": chosen("", "1"),
    "inet": chosen("10.0.0.1/8", "::1"),
    "macaddr": chosen("08:00:2b:01:02:03"),
    "point": chosen("(1,2.5)", "(NaN,-0)"),
    "box": chosen("(1,1),(0,0)"),
    "tsvector": chosen("'a' 'fat':2 'it''s'"),
    "int4range": chosen("[1,5)", "empty", "(,)"),
    "tstzrange": chosen('["2024-01-01 00:00:00+00",infinity)', "empty"),
    "datemultirange": chosen("{}", "{[2024-01-01,2024-02-01)}"),
    "mood": chosen("sad", "it's ok"),
    "pair": chosen('(1,"a,""b")', "(,)"),
    "price": number(10, 2),
    "pg_lsn": chosen("16/B374D848"),
}
DEFINITIONS = """
create type mood as enum ('sad', 'it''s ok');
create type pair as (x int, y text);
create domain price as numeric(10, 2);
"""


def test_random_values_of_every_type_are_alike_by_copy_and_stream_and_the_servers_own(
    conn: psycopg.Connection, dsn: str
) -> None:
    rng = random.Random(11)
    draws = PLAIN | {f"{name}[]": listed(draw) for name, draw in PLAIN.items() if name != "box"}
    columns = ", ".join(f"c{place} {name}" for place, name in enumerate(draws))
    conn.execute(f"{DEFINITIONS} create table t (id int primary key, {columns})")
    stream = Stream(conn, "t")
    places = ", ".join(f"%s::text::{name}" for name in draws)
    for row in range(ROWS):
        values = [None if rng.random() < 0.1 else fitted(name, draw(rng)) for name, draw in draws.items()]
        conn.execute(f"insert into t values ({row}, {places})", values)
    streamed = pa.Table.from_batches([stream.changes("t")])
    stream.close()
    (info,) = list_tables(conn, ["t"])
    schema = schema_of(info)
    streamed = padded(streamed).select([*schema.names, EXACT])
    with psycopg.connect(dsn) as holder:
        holder.execute("set transaction isolation level repeatable read")
        (exported,) = holder.execute("select pg_export_snapshot()").fetchone() or ()
        copied = together(list(read(dsn, exported, BlockChunk(info.table), schema)), row_schema(schema))
    copied = padded(copied).sort_by("id").select(streamed.column_names)
    assert copied.schema == streamed.schema
    assert repr(copied.to_pylist()) == repr(streamed.to_pylist())
    wanted = sorted(source_rows(conn, "t", streamed.schema), key=lambda row: int(row[0]))
    found = lake_rows(streamed)
    for place, column in enumerate(schema.columns):
        assert [row[place] for row in found] == [row[place] for row in wanted], column.source_type
    kept = {name for texts in streamed.column(EXACT).to_pylist() for name, _ in texts or ()}
    unmet = [c.source_type for c in schema.columns if is_limited(c.type) and c.name not in kept]
    assert unmet == ["numeric(38,38)"], "every other type that can have such a value has had one"


def fitted(declared: str, text: str) -> str:
    """Texts that are too long for their column are cut by a cast, but not in an array."""
    return text[:9] if declared == "char(9)" else text


def test_every_type_that_the_server_has_is_in_the_document(conn: psycopg.Connection) -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    query = (
        "select format_type(oid, null), typname from pg_type where typnamespace = 'pg_catalog'::regnamespace "
        "and typtype in ('b', 'r', 'm') and typcategory <> 'A'"
    )
    names = {name for name, internal in conn.execute(query) if internal not in NEVER_STORED}
    assert [name for name in sorted(names) if f"`{name}`" not in document] == []
