"""Real WAL through the decoder, against what the server itself says."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from tests.integration.postgres.wal import Stream

from tailrace.model.change import BEFORE, OP, PREFIX, UNCHANGED
from tailrace.source.postgres.catalog.tables import list_tables, schema_of

LARGE = "repeat(md5(random()::text), 400)"


def replay(rows: list[dict[str, Any]], table: dict[int, dict[str, Any]], key: str) -> None:
    """Apply changes to a table held as a dict, as anybody would do it by hand."""
    for row in rows:
        before, values = row[BEFORE], {name: value for name, value in row.items() if not name.startswith(PREFIX)}
        match row[OP]:
            case "c":
                table[values[key]] = values
            case "u":
                old = table.pop(before[key] if before else values[key])
                for name in row[UNCHANGED] or []:
                    values[name] = old[name]
                table[values[key]] = values
            case "d":
                del table[before[key]]
            case "t":
                table.clear()


@pytest.mark.parametrize("identity", ["default", "full", "using index shop_code"])
@pytest.mark.parametrize("seed", range(3))
def test_replaying_the_decoded_stream_gives_the_table(conn: psycopg.Connection, identity: str, seed: int) -> None:
    conn.execute(
        "create table shop (id int primary key, code int not null, price numeric(10,2), at timestamptz, body text, "
        "raw bytea, flag bool); create unique index shop_code on shop (code); "
        "alter table shop alter body set storage external"
    )
    conn.execute(f"alter table shop replica identity {identity}")
    stream = Stream(conn, "shop")
    key = "code" if "index" in identity else "id"
    table: dict[int, dict[str, Any]] = {}
    choice = random.Random(seed)
    for step in range(60):
        conn.execute(statement(choice, step))
        if step % 20 == 19:
            replay(stream.changes("shop").to_pylist(), table, key)
            with conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
                rows = cursor.execute("select * from shop").fetchall()
            assert sorted(table.values(), key=lambda row: row["id"]) == sorted(rows, key=lambda row: row["id"])


def statement(choice: random.Random, step: int) -> str:
    target = choice.randrange(12)
    body = choice.choice([LARGE, "'small'", "null"])
    return choice.choices(
        [
            f"insert into shop values ({target}, {step} + 1000, random() * 100, now(), {body}, '\\x00ff', true) "
            "on conflict do nothing",
            f"update shop set price = price + 1, at = clock_timestamp() where id = {target}",
            f"update shop set body = {body}, raw = null where id = {target}",
            f"update shop set id = {step} + 100, code = {step} + 5000 where id = {target}",
            f"delete from shop where id = {target}",
            "begin; update shop set flag = not flag; savepoint s; delete from shop; rollback to s; commit",
            "truncate shop",
        ],
        weights=[8, 5, 3, 3, 2, 2, 1],
    )[0]


def test_an_unchanged_large_value_is_named_by_default_and_filled_in_under_full(conn: psycopg.Connection) -> None:
    conn.execute(f"create table t (id int primary key, n int, body text); insert into t values (1, 1, {LARGE})")
    conn.execute("alter table t alter body set storage external")
    conn.execute(f"update t set body = {LARGE}")
    stream = Stream(conn, "t")
    conn.execute("update t set n = 2")
    (row,) = stream.changes("t").to_pylist()
    assert (row["n"], row["body"], row[UNCHANGED], row[BEFORE]) == (2, None, ["body"], None)
    conn.execute("alter table t replica identity full")
    conn.execute("update t set n = 3")
    (row,) = stream.changes("t").to_pylist()
    (body,) = conn.execute("select body from t").fetchone() or ()
    assert (row["n"], row["body"], row[UNCHANGED]) == (3, body, None)
    assert row[BEFORE] == {"id": 1, "n": 2, "body": body}


def test_a_new_key_with_an_unchanged_large_value_still_names_the_large_value(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key, body text); alter table t alter body set storage external")
    conn.execute(f"insert into t values (1, {LARGE})")
    stream = Stream(conn, "t")
    conn.execute("update t set id = 2")
    (row,) = stream.changes("t").to_pylist()
    assert (row[OP], row["id"], row["body"], row[UNCHANGED]) == ("u", 2, None, ["body"])
    assert row[BEFORE] == {"id": 1, "body": None}


def test_a_large_unchanged_key_comes_from_the_old_key(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id text primary key, n int); alter table t alter id set storage external")
    conn.execute("insert into t values (repeat('k', 2500), 1)")
    stream = Stream(conn, "t")
    conn.execute("update t set n = 2")
    (row,) = stream.changes("t").to_pylist()
    assert (row["id"], row["n"], row[UNCHANGED]) == ("k" * 2500, 2, None)


def test_one_truncate_of_two_tables_reaches_both(conn: psycopg.Connection) -> None:
    conn.execute("create table a (id int primary key); create table b (id int primary key references a)")
    stream = Stream(conn, "a", "b")
    conn.execute("insert into a values (1); insert into b values (1)")
    stream.changes("a")
    conn.execute("truncate a cascade")
    (row,) = stream.changes("b").to_pylist()
    assert (row[OP], row["id"], row[BEFORE]) == ("t", None, None)


def test_changes_of_partitions_come_as_changes_of_their_table(conn: psycopg.Connection) -> None:
    conn.execute(
        "create table p (id int, at date, primary key (id, at)) partition by range (at);"
        "create table p1 partition of p for values from ('2024-01-01') to ('2025-01-01');"
        "create table p2 (at date not null, id int not null); alter table p2 add primary key (id, at);"
        "alter table p attach partition p2 for values from ('2025-01-01') to ('2026-01-01')"
    )
    stream = Stream(conn, "p")
    conn.execute(
        "insert into p values (1, '2024-05-05'), (2, '2025-05-05'); update p set at = '2025-06-06' where id = 1"
    )
    ops = [(row[OP], row["id"] or row[BEFORE]["id"]) for row in stream.changes("p").to_pylist()]
    # A row that moves to another partition is deleted there and inserted here.
    assert ops == [("c", 1), ("c", 2), ("d", 1), ("c", 1)]
    (info,) = list_tables(conn, ["p"])
    # The server announces the partitions as well, though no change names them.
    assert stream.schemas[info.relation] == schema_of(info)
    assert {schema.table.name for schema in stream.schemas.values()} == {"p", "p1", "p2"}


def test_a_table_that_grew_a_column_is_announced_again(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key)")
    stream = Stream(conn, "t")
    conn.execute("insert into t values (1)")
    assert stream.changes("t").column_names[-1:] == ["id"]
    conn.execute("alter table t add column note varchar(10)")
    conn.execute("insert into t values (2, 'new')")
    (row,) = stream.changes("t").to_pylist()
    assert (row["id"], row["note"]) == (2, "new")
