"""Random values of every type, by the first copy and by the stream: alike, and what the server prints."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from demo.compare import lake_rows, source_rows
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.playing import T, replayed
from tests.integration.postgres.reading import described, walk
from tests.postgres import wait_until

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.ordering import in_order
from tailrace.log.reader import LogReader
from tailrace.model.change import POS, SEQ, row_schema
from tailrace.model.rows.exact import EXACT, padded, together
from tailrace.model.rows.lake_types import is_limited
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

ROWS = 80
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
    "tsrange": chosen("[2024-01-01 00:00,2024-01-02 12:00:00.5)", "(,-infinity]"),
    "numrange": chosen("[1.0,1.00]", "(,1e40)"),
    "int8range": chosen("[-9223372036854775808,5)"),
    "daterange": chosen("[2024-01-01,)", "(-infinity,infinity)"),
    "int4multirange": chosen("{[1,3),[5,8)}", "{}"),
    "nummultirange": chosen("{[1.0,2.50],(3,)}"),
    "tstzmultirange": chosen('{["2024-01-01 00:00:00+02","2024-01-02 00:00:00+02")}'),
    "span": chosen("[1.5,)", "empty", "[-0,NaN]"),
    "mood": chosen("sad", "it's ok"),
    "pair": chosen('(1,"a,""b")', "(,)"),
    "nested": chosen('("(1,""a b"")","{1,NULL}",2024-01-01)', "(,,infinity)"),
    "price": number(10, 2),
    "pg_lsn": chosen("16/B374D848"),
    "cidr": chosen("10.0.0.0/8", "::/0"),
    "macaddr8": chosen("08:00:2b:01:02:03:04:05"),
    "line": chosen("{1,2,-3}"),
    "lseg": chosen("[(0,0),(1,NaN)]"),
    "path": chosen("((0,0),(1,1e300))", "[(0,0),(1,1)]"),
    "polygon": chosen("((0,0),(1,1),(1,0))"),
    "circle": chosen("<(1,2),3.5>"),
    "tsquery": chosen("'fat' & ( 'rat' | !'cat':A ) <-> 'it''s'"),
    "jsonpath": chosen("$.a[*] ? (@ > 1)", '$."x y"'),
    '"char"': chosen("x", ",", "", '"'),
    "name": chosen("a name", ""),
    "int2vector": chosen("1 -2 3", ""),
    "xid8": chosen("18446744073709551615"),
    "pg_snapshot": chosen("10:20:10,14"),
    "tid": chosen("(0,1)", "(4294967295,65535)"),
    "regclass": chosen("public.t", 'elsewhere."Odd Name"', "pg_catalog.pg_class"),
    "regtype": chosen("public.mood", "int4", "public.pair[]", "timestamptz"),
    "regproc": chosen("elsewhere.twice", "pg_catalog.now"),
    "regprocedure": chosen("elsewhere.twice(integer)", "pg_catalog.abs(double precision)"),
    "regoperator": chosen("pg_catalog.+(integer,integer)"),
    "regconfig": chosen("pg_catalog.simple"),
    "regrole": chosen("postgres", "pg_monitor"),
    "regnamespace": chosen("elsewhere", "public"),
}
ADDED: dict[str, dict[str, Draw]] = {
    "hstore": {"elsewhere.hstore": chosen('a=>1,b=>NULL,"x y"=>"q\\"uote"', "")},
    "citext": {"elsewhere.citext": words},
    "ltree": {"elsewhere.ltree": chosen("Top.Science_1", ""), "elsewhere.lquery": chosen("*.a@|b*{1,2}")},
    "cube": {"elsewhere.cube": chosen("(0,1e-30),(2,3)")},
    "isn": {"elsewhere.isbn13": chosen("978-0-393-04002-9")},
    "vector": {"elsewhere.vector(3)": chosen("[1,-0.5,1e-30]"), "elsewhere.sparsevec(4)": chosen("{1:1.5}/4")},
    "postgis": {"elsewhere.geometry": chosen("POINT(1 2)", "SRID=4326;LINESTRING(0 0,1 1)")},
}
"""What extensions add, each in the schema `elsewhere`."""
DEFINITIONS = """
create type mood as enum ('sad', 'it''s ok');
create type pair as (x int, y text);
create type nested as (p pair, n int[], d date);
create type span as range (subtype = float8);
create domain price as numeric(10, 2);
create schema elsewhere;
create table elsewhere."Odd Name" ();
create function elsewhere.twice(int) returns int return $1 * 2;
"""


@pytest.fixture
def draws(conn: psycopg.Connection) -> dict[str, Draw]:
    """The types that this server has, each with its values."""
    conn.execute(DEFINITIONS)
    available = {name for (name,) in conn.execute("select name from pg_available_extensions")}
    found = dict(PLAIN)
    for extension, types in ADDED.items():
        if extension in available:
            conn.execute(f"create extension {extension} schema elsewhere")
            found |= types
    if has_xml(conn):
        found["xml"] = chosen('<a b="1">&lt;ä</a>', "text", "")
    # The elements of an array of boxes are not separated by commas.
    return found | {f"{name}[]": listed(draw) for name, draw in found.items() if name != "box"}


def has_xml(conn: psycopg.Connection) -> bool:
    try:
        conn.execute("select '<a/>'::xml")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


@pytest.fixture
def rng() -> random.Random:
    """Its seed is printed where the test fails."""
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


def claimed(source: PostgresSource) -> Claim:
    made = source.claim(None)
    source.prepare(made, [T], None)
    return made


def captured(source: PostgresSource, claim: Claim, log: Path) -> pa.Table:
    """Everything that happened, as the server's walsender sent it."""
    with Capture(source, claim, log) as capture:
        now = source.now().ordinal
        wait_until(lambda: capture.is_streaming and capture.head.ordinal >= now, 60)
    reader = LogReader(log)
    shape = touched_shape(reader, T, (0, reader.head.seq), source.decode)
    assert shape is not None
    return in_order(Changes.of(reader, shape, (0, reader.head.seq)).table(), (SEQ, POS))


def copied(source: PostgresSource) -> pa.Table:
    """The table as the first copy reads it."""
    table = described(source)
    with source.snapshot() as point:
        batches = [
            each for chunk in source.chunks(table, 1 << 20) for each in source.read_chunk(point, chunk, table.schema)
        ]
    return together(batches, row_schema(table.schema))


def test_random_values_of_every_type_are_alike_by_copy_and_stream_and_the_servers_own(
    conn: psycopg.Connection, source: PostgresSource, draws: dict[str, Draw], rng: random.Random, tmp_path: Path
) -> None:
    columns = ", ".join(f"c{place} {name}" for place, name in enumerate(draws))
    conn.execute(f"create table t (id int primary key, {columns})")
    claim = claimed(source)
    places = ", ".join(f"%s::text::{name}" for name in draws)
    for row in range(ROWS):
        values = [None if rng.random() < 0.1 else fitted(name, draw(rng)) for name, draw in draws.items()]
        conn.execute(f"insert into t values ({row}, {places})", values)
    schema = described(source).schema
    streamed = padded(captured(source, claim, tmp_path / "log")).select([*schema.names, EXACT])
    by_copy = padded(copied(source)).sort_by("id").select(streamed.column_names)
    assert by_copy.schema == streamed.schema
    for name in streamed.column_names:
        assert repr(by_copy[name].to_pylist()) == repr(streamed[name].to_pylist()), name
    conn.execute("set search_path = pg_catalog")
    wanted = sorted(source_rows(conn, "public.t", streamed.schema), key=lambda row: int(row[0]))
    found = lake_rows(streamed)
    for place, column in enumerate(schema.columns):
        assert [row[place] for row in found] == [row[place] for row in wanted], column.source_type
    kept = {name for texts in streamed.column(EXACT).to_pylist() for name, _ in texts or ()}
    unmet = [c.source_type for c in schema.columns if is_limited(c.type) and c.name not in kept]
    assert unmet == ["numeric(38,38)"], "every other type that can have such a value has had one"


def test_names_of_objects_are_alike_in_a_window_of_keys_that_are_compared_elsewhere(
    conn: psycopg.Connection, source: PostgresSource, tmp_path: Path
) -> None:
    conn.execute(
        "create schema elsewhere; create type elsewhere.size as enum ('s', 'm'); create table elsewhere.thing ()"
    )
    conn.execute("create table t (id elsewhere.size primary key, named regclass)")
    claim = claimed(source)
    conn.execute("insert into t values ('s', 'elsewhere.thing'), ('m', 'public.t')")
    streamed = captured(source, claim, tmp_path / "log").select(["id", "named"]).to_pylist()
    assert streamed == [{"id": "s", "named": "elsewhere.thing"}, {"id": "m", "named": "public.t"}]
    assert walk(source, described(source), 1, 1).to_pylist() == streamed


def test_a_key_of_citext_is_one_key_while_the_source_says_so(
    conn: psycopg.Connection, source: PostgresSource, rng: random.Random, tmp_path: Path
) -> None:
    if conn.execute("select from pg_available_extensions where name = 'citext'").fetchone() is None:
        pytest.skip("this server does not have the extension citext")
    conn.execute("create extension citext; create table t (id citext primary key, n int)")
    claim = claimed(source)
    for number in range(60):
        key, other = (rng.choice(["a", "A", "ß", "SS", "é", "É", "Ab", "aB"]) for _ in range(2))
        statements = [
            "insert into t values (%(key)s, %(n)s) on conflict (id) do update set id = excluded.id, n = excluded.n",
            "update t set id = %(other)s where id = %(key)s and not exists (select from t where id = %(other)s)",
            "delete from t where id = %(key)s",
        ]
        conn.execute(rng.choice(statements), {"key": key, "other": other, "n": number})
    captured(source, claim, tmp_path / "log")
    rows = conn.execute("select id, n from t").fetchall()
    assert replayed(source, tmp_path / "log", T) == {key: {"id": key, "n": n} for key, n in rows}
    assert sorted(walk(source, described(source), 2, 1)["id"].to_pylist()) == sorted(key for key, _ in rows)


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
