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
        conn.execute("create role bob login; alter table orders owner to bob")
        conn.execute(f"grant create on database {conn.info.dbname} to bob")
    try:
        result = run("sync", filled.replace("postgres@", "bob@"), str(tmp_path / "lake"))
        explained(result, "replication privilege: bob lacks it", 'alter role "bob" with replication')
    finally:
        with psycopg.connect(filled, autocommit=True) as conn:
            conn.execute("drop owned by bob; drop role bob")


EVERYTHING_WRONG = """
create role bob login connection limit 2;
create schema shop;
create table shop.orders (id int primary key);
create table hidden (id int primary key);
grant select on hidden to bob;
alter table hidden enable row level security;
create table keyless (id int);
grant select on keyless to bob;
"""

EVERYTHING_TOLD = """\
error: wal_level: replica; after this change restart the server
hint: alter system set wal_level = logical;
error: replication slots: 1 of 1 free, 2 needed; after this change restart the server
hint: alter system set max_replication_slots = 3;
error: wal senders: 0 of 0 free, 2 needed; after this change restart the server
hint: alter system set max_wal_senders = 3;
error: connections: 2 left for the role, at least 3 needed
hint: alter role "bob" connection limit 3;
error: replication privilege: bob lacks it
hint: alter role "bob" with replication;
error: read access: bob may not read shop.orders
hint: grant usage on schema "shop" to "bob";
hint: grant select on "shop"."orders" to "bob";
error: row security: hides rows of public.hidden
hint: alter role "bob" bypassrls;
error: publication: bob does not own public.hidden, public.keyless, shop.orders; let the owner create it and pass \
--publication tailrace
hint: create publication tailrace for table only "public"."hidden", only "shop"."orders" with \
(publish_via_partition_root = true);
error: table public.keyless has no primary key
hint: alter table "public"."keyless" replica identity full, or add a primary key that is not deferrable, or if rows \
are only added: --append-only public.keyless
"""


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_made(tmp_path: Path) -> None:
    settings = {"wal_level": "replica", "max_wal_senders": "0", "max_replication_slots": "1"}
    with EmbeddedPostgres(tmp_path / "data", settings=settings) as server:
        with psycopg.connect(server.dsn()) as conn:
            conn.execute(EVERYTHING_WRONG)
        result = run("sync", server.dsn(user="bob"), str(tmp_path / "lake"))
        assert (result.returncode, result.stderr) == (2, EVERYTHING_TOLD)
        diagnosis = run("doctor", server.dsn(user="bob"))
        assert diagnosis.returncode == 1
        assert "alter system set wal_level" in diagnosis.stdout
    assert not (tmp_path / "lake").exists()


def test_a_server_without_wal_senders(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "data", settings={"max_wal_senders": "0"}) as server:
        with psycopg.connect(server.dsn()) as conn:
            conn.execute("create table orders (id int primary key)")
        result = run("sync", server.dsn(), str(tmp_path / "lake"))
        explained(result, "wal senders: 0 of 0 free, 2 needed", "alter system set max_wal_senders = 3;")


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


@pytest.mark.parametrize("java_home", ["", "nowhere"])
def test_a_machine_without_java_is_told_so_and_can_do_what_needs_none(
    filled: str, tmp_path: Path, java_home: str
) -> None:
    lake, without = str(tmp_path / "lake"), {"PATH": str(tmp_path), "JAVA_HOME": java_home}
    cluster = run("sync", filled, lake, "--spark-master", "spark://127.0.0.1:1", **without)
    explained(cluster, "Spark needs Java", "install Java 17")
    assert slots(filled) == 0
    explained(run("sync", filled, lake, "--once", **without), "Spark needs Java", "install Java 17")
    assert slots(filled) == 0
    assert journey.run("sync", filled, lake, "--once").returncode == 0
    assert run("sync", filled, lake, "--once", **without).returncode == 0, "there is nothing to move"
    assert run("query", lake, "select * from orders", **without).returncode == 0
    explained(run("query", lake, "select 1", "--engine", "spark", **without), "Spark needs Java", "install Java 17")


@pytest.mark.parametrize("command", ["sync", "verify"])
def test_a_spark_master_that_is_none_is_refused_at_once(filled: str, tmp_path: Path, command: str) -> None:
    explained(run(command, filled, str(tmp_path / "lake"), "--spark-master", "foo"), "'foo'", "spark://HOST:PORT")
    assert slots(filled) == 0


def test_something_that_is_no_connection_string(tmp_path: Path) -> None:
    explained(run("sync", "shop.example", str(tmp_path / "lake")), "not a Postgres connection string")


def test_a_query_on_something_that_is_no_lake(tmp_path: Path) -> None:
    explained(run("query", str(tmp_path), "select 1"), "not a Tailrace lake")


def test_a_query_that_asks_nothing_or_wants_two_formats_is_refused_and_tables_can_be_listed(
    filled: str, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    assert journey.run("sync", filled, lake, "--once").returncode == 0
    for nothing in ("", " ;\n"):
        explained(run("query", lake, nothing), "there is no query", "show tables")
    explained(run("query", lake, "select 1", "--json", "--csv"), "--json and --csv exclude each other")
    for show in ("show tables", " SHOW  Tables; "):
        assert run("query", lake, show, "--csv").stdout.split() == ["name", "public.orders"]
