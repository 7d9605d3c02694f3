"""What is read of a table is of one moment, while statements change it between any two queries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tailrace.source.postgres.catalog.definition import Definition
from tailrace.source.postgres.source import PostgresSource
from tailrace.source.postgres.stream.encoding.announced_shapes import describe_announced
from tailrace.source.postgres.values.messages import Relation, RelationColumn

READINGS = 50
INT4 = 23


@contextmanager
def changing(dsn: str, *statements: str) -> Iterator[None]:
    """Runs each of the statements in a transaction of its own, over and over."""
    stopping = threading.Event()

    def change() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stopping.is_set():
                for statement in statements:
                    conn.execute(f"begin; {statement}; commit")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_a_table_is_not_refused_for_two_properties_that_it_never_had_at_once(
    source: PostgresSource, conn: psycopg.Connection, dsn: str
) -> None:
    generated = "alter table t replica identity default; alter table t add g int generated always as (id * 2) stored"
    full = "alter table t drop g; alter table t replica identity full"
    conn.execute("create table t (id int primary key)")
    with changing(dsn, generated, full):
        problems = {found.problem for _ in range(READINGS) for found in source.tables(["t"], [])}
    assert problems == {None}


def test_a_column_that_old_rows_show_a_default_for_is_never_read_without_it(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key); insert into t values (1)")
    (oid,) = conn.execute("select 't'::regclass::oid").fetchone() or (0,)
    relation = Relation(oid, "public", "t", "d", (RelationColumn(True, "id", INT4, -1),))
    with changing(dsn, "alter table t add d int default 5", "alter table t drop d"):
        read = [describe_announced(conn, relation).schema.definition for _ in range(READINGS)]
    shown = [each for found in read if found for each in Definition.from_json(found).attributes if each.name == "d"]
    assert shown
    assert all(each.is_missing for each in shown)
