"""Where a source is, and how that is written."""

from __future__ import annotations

import pickle

import psycopg
import pytest

from tailrace.errors import TransientError
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


def test_decoding_travels_to_other_processes_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(PostgresSource.decode)) is PostgresSource.decode


def test_a_position_is_written_as_postgres_writes_it() -> None:
    position = PostgresSource.parse("16/B374D848")
    assert (position.ordinal, PostgresSource.format(position)) == (0x16_B374D848, "16/B374D848")
    assert PostgresSource.shown_up_to(position) == 0x16_B374D847
    with pytest.raises(ValueError, match="not an LSN"):
        PostgresSource.parse("sixteen")
