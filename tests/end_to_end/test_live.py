"""A live read shows whole transactions, fresh, whatever the publisher is doing."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.journey import cuts, interrupt, start, wait_for_cuts

import tailrace

ROUNDS = 8
FRESH_SECONDS = 2.0


@pytest.mark.timeout(600)
def test_a_transaction_over_three_tables_is_seen_whole_and_within_two_seconds_while_publishes_run(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    with psycopg.connect(database, autocommit=True) as conn:
        for table in ("a", "b", "c"):
            conn.execute(f"create table {table} (id int primary key, round int not null, filler text)")
            conn.execute(f"insert into {table} select n, 0, repeat('x', 100) from generate_series(1, 3000) n")
        sync = start("sync", database, str(lake), "--publish-every", "0.1")
        wait_for_cuts(sync, lake, 1)
        _rounds(spark, lake)
        delays = []
        for number in range(1, ROUNDS + 1):
            with conn.transaction():
                for table in ("a", "b", "c"):
                    conn.execute(f"update {table} set round = %s where id %% 10 = %s", (number, number % 10))
                    conn.execute(f"insert into {table} values (%s, %s)", (10_000 + number, number))
            committed = time.monotonic()
            while True:
                begun = time.monotonic()
                seen = _rounds(spark, lake)
                assert len(set(seen)) == 1, f"a half transaction: {seen}"
                if seen[0] == (number, 300 + 1):
                    break
                assert begun - committed < FRESH_SECONDS, f"round {number} not seen after {begun - committed:.1f} s"
            delays.append(begun - committed)
        print("seconds from commit to the start of the read that showed it:", [f"{delay:.2f}" for delay in delays])
        published = len(cuts(lake).all())
        assert interrupt(sync)[0] == 0
    assert published >= 3, "the publisher hardly ran"


def _rounds(spark: SparkSession, lake: Path) -> list[tuple[int, int]]:
    """For each table, the newest round and how many rows have it, all from one cut."""
    rows = (
        tailrace.cut(spark, lake)
        .sql(
            " union all ".join(
                f"select '{table}' as t, round, count(*) as rows from public.{table} "
                f"where round = (select max(round) from {table}) group by round"
                for table in ("a", "b", "c")
            )
        )
        .collect()
    )
    assert len(rows) == 3
    return [(row["round"], row["rows"]) for row in rows]
