"""A live read shows whole transactions, whatever the publisher is doing. How fresh is printed, not judged."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from tests.journey import cuts, interrupt, start_shared, wait_for_cuts

import tailrace
from tailrace.read.duckdb import connect
from tailrace.source.postgres.source import PostgresSource

ROUNDS = 4
ROUNDS_MAX = 60
PUBLISHES = 2
TABLES = ("a", "b", "c")


@pytest.mark.timeout(600)
def test_a_transaction_over_three_tables_is_seen_whole_in_every_live_read_while_publishes_run(
    database: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with psycopg.connect(database, autocommit=True) as conn, connect() as duckdb:
        for table in TABLES:
            conn.execute(f"create table {table} (id int primary key, round int not null, filler text)")
            conn.execute(f"insert into {table} select n, 0, repeat('x', 100) from generate_series(1, 3000) n")
        sync = start_shared("sync", database, str(lake), "--publish-every", "0.1")
        wait_for_cuts(sync, lake, 1)
        delays = []
        for number in range(1, ROUNDS_MAX + 1):
            begun_at = _commit_round(conn, number)
            committed = time.monotonic()
            early = fresh = tailrace.cut(duckdb, lake)
            while fresh.position.ordinal < begun_at:
                fresh = tailrace.cut(duckdb, lake)
            delays.append(time.monotonic() - committed)
            for cut in (early, fresh):
                seen = _rounds(cut)
                newest = number if cut.position.ordinal >= begun_at else number - 1
                assert seen == [(newest, 301 if newest else 3000)] * 3, f"round {number}: {seen}"
            published = len(cuts(lake).all())
            if number >= ROUNDS and published > PUBLISHES:
                break
        assert interrupt(sync)[0] == 0
    print("seconds from commit to a cut that has it:", [f"{delay:.2f}" for delay in delays])
    assert published > PUBLISHES, "the publisher hardly ran"


def _commit_round(conn: psycopg.Connection, number: int) -> int:
    """One transaction over all tables: 300 updates and an insert in each. Where the WAL was just before its commit."""
    with conn.transaction():
        for table in TABLES:
            conn.execute(f"update {table} set round = %s where id <= 3000 and id %% 10 = %s", (number, number % 10))
            conn.execute(f"insert into {table} values (%s, %s)", (10_000 + number, number))
        row = conn.execute("select pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return PostgresSource.parse(row[0]).ordinal


def _rounds(cut: tailrace.Cut) -> list[tuple[int, int]]:
    """For each table, the newest round and how many rows have it."""
    newest = "(select round, count(*) as rows from public.{0} group by round order by round desc limit 1)"
    return cut.sql(" union all ".join(newest.format(table) for table in TABLES)).fetchall()
