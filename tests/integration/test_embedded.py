"""The embedded Postgres outlives what tests and users do to it."""

from __future__ import annotations

import os
import pwd
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from demo import shop
from demo.embedded import EmbeddedPostgres, system_user


def test_a_killed_server_keeps_what_was_committed(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "data") as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("create table kept (id int)")
            connection.execute("insert into kept values (7)")
        port = server.port
        server.kill()
        server.start()
        with psycopg.connect(server.dsn()) as connection:
            assert connection.execute("select id from kept").fetchall() == [(7,)]
        assert server.port == port


def test_a_stale_pid_file_does_not_stand_in_the_way(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data").start()
    pid_file = tmp_path / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.kill()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    with server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_data_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "data"), pytest.raises(RuntimeError, match="another process is using"):
        EmbeddedPostgres(tmp_path / "data").start()


def test_settings_of_the_caller_win(tmp_path: Path) -> None:
    settings = {"wal_level": "replica"}
    server = EmbeddedPostgres(tmp_path / "data", version=16, settings=settings)
    with server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("show wal_level").fetchone() == ("replica",)
        assert connection.info.server_version // 10000 == 16


def test_a_database_is_dropped_with_the_slots_in_it(postgres: EmbeddedPostgres) -> None:
    dsn = postgres.create_database("with_slot")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pg_create_logical_replication_slot('left_over', 'pgoutput')")
        connection.execute("select pg_create_logical_replication_slot('held', 'pgoutput', temporary => true)")
        postgres.drop_database("with_slot")
    with psycopg.connect(postgres.dsn()) as connection:
        found = connection.execute("select 1 from pg_replication_slots where database = 'with_slot'").fetchall()
    assert found == []


def test_the_workload_commits_and_rolls_back_until_it_is_stopped(database: str) -> None:
    assert shop.load(database)
    assert not shop.load(database)
    workload = shop.Workload(database, per_second=2000)
    with workload, psycopg.connect(database, autocommit=True) as connection:
        while workload.committed < 200 or workload.rolled_back == 0:
            connection.execute("select pg_stat_clear_snapshot()")
    with psycopg.connect(database) as connection:
        half = connection.execute(
            "select count(*) from orders o where id > 25000 and not exists (select from payments where order_id = o.id)"
        ).fetchone()
    assert half == (0,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts")
def test_an_account_that_several_make_at_once_is_one_account() -> None:
    name = f"tailrace-{os.getpid()}"
    try:
        with ThreadPoolExecutor(4) as pool:
            accounts = {account.pw_uid for account in pool.map(system_user, [name] * 4)}
        assert accounts == {pwd.getpwnam(name).pw_uid}
    finally:
        subprocess.run(["userdel", name], check=True, capture_output=True)
