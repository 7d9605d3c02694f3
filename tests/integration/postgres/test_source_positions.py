"""Where a source is, and how that is written."""

from __future__ import annotations

import pickle

import psycopg
import pytest
from tests.postgres import wait_until

from tailrace.errors import TransientError
from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource


def test_now_survives_a_broken_connection_and_lag_is_unknown_without_a_server(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    first = source.now()
    others = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database()"
    conn.execute(f"{others} and pid <> pg_backend_pid() and backend_type = 'client backend'")
    conn.execute("create table t (id int)")
    assert source.now() > first
    lag = source.lag_bytes(first.ordinal)
    assert lag is not None
    assert lag > 0
    assert source.lag_bytes(source.now().ordinal + (1 << 40)) == 0
    nowhere = PostgresSource("postgresql://postgres@127.0.0.1:1/nowhere")
    assert nowhere.lag_bytes(0) is None
    with pytest.raises(TransientError):
        nowhere.now()


def test_what_the_server_keeps_for_a_claim_grows_until_it_is_read_and_is_limited_if_the_server_says_so(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute("create table t (id int primary key, text text)")
    claim = source.claim(None)
    assert source.retained(claim) is None, "there is no slot"
    source.prepare(claim, [TableId("public", "t")], None)
    before = source.retained(claim)
    assert before is not None
    assert before.bytes is not None
    assert before.safe_bytes is None, "without a limit"
    conn.execute("insert into t select n, repeat('x', 1000) from generate_series(1, 2000) n")
    after = source.retained(claim)
    assert after is not None
    assert after.bytes is not None
    assert after.bytes > before.bytes + 1_000_000
    conn.execute("alter system set max_slot_wal_keep_size = '1GB'")
    try:
        conn.execute("select pg_reload_conf()")
        wait_until(lambda: (source.retained(claim) or after).safe_bytes is not None, 10)
        limited = source.retained(claim)
        assert limited is not None
        assert limited.safe_bytes is not None
        # The server counts whole files of WAL.
        assert 0 < limited.safe_bytes <= (1 << 30) + (64 << 20)
    finally:
        conn.execute("alter system reset max_slot_wal_keep_size")
        conn.execute("select pg_reload_conf()")
    assert PostgresSource("postgresql://postgres@127.0.0.1:1/nowhere").retained(claim) is None


def test_decoding_travels_to_other_processes_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(PostgresSource.decode)) is PostgresSource.decode


def test_a_position_is_written_as_postgres_writes_it() -> None:
    position = PostgresSource.parse("16/B374D848")
    assert (position.ordinal, PostgresSource.format(position)) == (0x16_B374D848, "16/B374D848")
    assert PostgresSource.shown_up_to(position) == 0x16_B374D847
    with pytest.raises(ValueError, match="not an LSN"):
        PostgresSource.parse("sixteen")
