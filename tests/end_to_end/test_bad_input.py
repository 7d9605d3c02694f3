"""What is wrong is said in one line, with a hint, exit code 2 and no stack trace, before Spark is started; nothing is
left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests import journey


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return journey.run(*arguments, **journey.NO_SPARK | variables)


def explained(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """One error line that holds these words, one hint line, nothing else."""
    lines = result.stderr.strip().splitlines()
    assert result.returncode == 2, result
    assert [line.split(":")[0] for line in lines] == ["error", "hint"], result.stderr
    for word in words:
        assert word in result.stderr


def slots(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select count(*) from pg_replication_slots where database = current_database()").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database) as conn:
        conn.execute("create table orders (id int primary key, note text)")
    return database


def test_an_unreachable_host(tmp_path: Path) -> None:
    result = run("sync", "postgresql://someone@127.0.0.1:1/shop", str(tmp_path / "lake"))
    explained(result, "127.0.0.1:1/shop", "cannot connect")


def test_a_wrong_password_which_is_not_repeated(postgres: EmbeddedPostgres, filled: str, tmp_path: Path) -> None:
    with psycopg.connect(filled, autocommit=True) as conn:
        conn.execute("create role with_password nologin; create role ann login replication password 'right'")
        conn.execute("grant with_password to ann")
    try:
        dsn = filled.replace("postgres@", "ann:mistaken@")
        result = run("sync", dsn, str(tmp_path / "lake"))
        explained(result, "refused the password of ann")
        assert "mistaken" not in result.stdout + result.stderr
    finally:
        with psycopg.connect(filled, autocommit=True) as conn:
            conn.execute("drop role ann; drop role with_password")


def test_a_user_without_the_replication_privilege(filled: str, tmp_path: Path) -> None:
    with psycopg.connect(filled, autocommit=True) as conn:
        conn.execute("create role bob login")
    try:
        result = run("sync", filled.replace("postgres@", "bob@"), str(tmp_path / "lake"))
        explained(result, "bob lacks the REPLICATION privilege", 'alter role "bob" with replication')
    finally:
        with psycopg.connect(filled, autocommit=True) as conn:
            conn.execute("drop role bob")


def test_a_server_whose_wal_level_is_not_logical(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "data", settings={"wal_level": "replica"}) as server:
        result = run("sync", server.dsn(), str(tmp_path / "lake"))
        explained(result, "wal_level is replica", "alter system set wal_level = logical")
        diagnosis = run("doctor", server.dsn())
        assert diagnosis.returncode == 1
        assert "alter system set wal_level" in diagnosis.stdout
    assert not (tmp_path / "lake").exists()


def test_a_lake_path_that_is_a_file(filled: str, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("mine")
    explained(run("sync", filled, str(tmp_path / "lake")), "is a file")
    assert (tmp_path / "lake").read_text() == "mine"


def test_a_folder_with_other_things_in_it(filled: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    explained(run("sync", filled, str(tmp_path)), "not empty")
    assert slots(filled) == 0


def test_a_table_pattern_that_matches_nothing(filled: str, tmp_path: Path) -> None:
    explained(run("sync", filled, str(tmp_path / "lake"), "--tables", "public.oders"), "public.oders", "public.orders")
    assert slots(filled) == 0


def test_a_machine_without_java(filled: str, tmp_path: Path) -> None:
    explained(run("sync", filled, str(tmp_path / "lake"), PATH=str(tmp_path), JAVA_HOME=""), "Java", "install Java 17")
    assert slots(filled) == 0


def test_something_that_is_no_connection_string(tmp_path: Path) -> None:
    explained(run("sync", "shop.example", str(tmp_path / "lake")), "not a Postgres connection string")


def test_a_query_on_something_that_is_no_lake(tmp_path: Path) -> None:
    explained(run("query", str(tmp_path), "select 1"), "not a lake")
