"""What the doctor finds on real servers, and that its SQL cures what it finds."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from rich.console import Console
from tests.postgres import wait_until
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.cli.sync.doctor import render
from tailrace.source.door.tables import Check
from tailrace.source.postgres.doctor.doctor import Named, examine
from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.source import PostgresSource


def passes(checks: list[Check]) -> bool:
    return all(check.ok is not False for check in checks)


def found(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


@pytest.fixture
def newcomer(conn: psycopg.Connection, dsn: str) -> Iterator[str]:
    """A role that may connect and nothing else."""
    conn.execute("drop role if exists newcomer; create role newcomer login")
    yield dsn.replace("postgres@", "newcomer@")
    conn.execute("drop owned by newcomer; drop role newcomer")


def test_a_ready_database_passes(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key)")
    checks = examine(conn, ["public.*"])
    assert [check for check in checks if check.ok is False] == []
    assert passes(checks)
    assert found(checks, "read access").found == "to 1 table"


def test_its_sql_cures_every_missing_privilege(conn: psycopg.Connection, newcomer: str) -> None:
    conn.execute(
        "create schema shop; create table shop.t (id int primary key); create table other (id int primary key)"
    )
    with connect(newcomer) as theirs:
        failed = [check for check in examine(theirs, []) if check.ok is False]
        assert [check.name for check in failed] == ["replication privilege", "read access", "publication"]
        for check in failed:
            assert check.fix is not None
            conn.execute(check.fix)
        assert passes(examine(theirs, [], named=Named(publication="tailrace")))
        unnamed = found(examine(theirs, []), "publication")
        assert (unnamed.ok, unnamed.fix) == (False, None), "sync would make its own, which only an owner may"
        assert unnamed.found.endswith("publication tailrace sends the tables: pass --publication tailrace")


@pytest.mark.parametrize(
    "publication",
    [
        "for table t (id), u with (publish_via_partition_root = true)",
        "for table t where (id > 1), u with (publish_via_partition_root = true)",
        "for table t, u",
        "for table t with (publish_via_partition_root = true)",
        "for table t, u with (publish = 'insert', publish_via_partition_root = true)",
    ],
)
def test_a_publication_that_leaves_something_out_is_not_advised(
    conn: psycopg.Connection, newcomer: str, publication: str
) -> None:
    conn.execute("create table t (id int primary key, body text)")
    conn.execute("create table u (id int primary key) partition by range (id)")
    conn.execute("create table u1 partition of u default; grant select on t, u, u1 to newcomer")
    conn.execute(f"create publication half {publication}")
    with connect(newcomer) as theirs:
        check = found(examine(theirs, []), "publication")
        assert check.ok is False
        assert "pass --publication tailrace" in check.found
        conn.execute(check.fix or "")
        assert found(examine(theirs, [], named=Named(publication="tailrace")), "publication").ok


def test_a_named_slot_that_is_held_or_lost_comes_with_what_frees_it(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key)")
    name = f"named_{conn.info.dbname}"
    source = PostgresSource(dsn, slot=name)
    assert found(source.examine([], []), "slot").found == f"{name} is not there yet and is made"
    conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    assert found(source.examine([], []), "slot").found == f"{name} is there and free"
    with closing(connect(dsn, replication=True)) as holder:
        options = "(proto_version '1', publication_names 'none')"
        holder.pgconn.send_query(f"START_REPLICATION SLOT {name} LOGICAL 0/0 {options}".encode())
        held = "select active from pg_replication_slots where slot_name = %s"
        wait_until(lambda: conn.execute(held, [name]).fetchone() == (True,))
        check = found(source.examine([], []), "slot")
        assert check.ok is False
        conn.execute(check.fix or "")
        wait_until(lambda: conn.execute(held, [name]).fetchone() == (False,))
    assert found(source.examine([], []), "slot").ok


def test_a_slot_that_the_server_gave_up_is_dropped_by_the_sql_that_is_told() -> None:
    settings = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=settings) as server,
        connect(server.dsn()) as conn,
    ):
        conn.execute("create table t (id int primary key)")
        conn.execute("select pg_create_logical_replication_slot('ours', 'pgoutput')")

        def is_lost() -> bool:
            conn.execute("select pg_switch_wal()")
            conn.execute("insert into t select coalesce(max(id), 0) + 1 from t")
            conn.execute("checkpoint")
            return conn.execute("select wal_status from pg_replication_slots").fetchone() == ("lost",)

        wait_until(is_lost, 60)
        source = PostgresSource(server.dsn(), slot="ours")
        check = found(source.examine([], []), "slot")
        assert (check.ok, check.fix) == (False, "select pg_drop_replication_slot('ours');")
        conn.execute(check.fix or "")
        assert found(source.examine([], []), "slot").ok


def test_what_is_asked_of_the_stream_is_looked_at(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key)")
    wanted = PostgresSource(dsn, stream={"two_phase": True, "failover": True})
    checks = wanted.examine([], [])
    prepared = found(checks, "two-phase commit")
    assert (prepared.ok, prepared.fix) == (None, "alter system set max_prepared_transactions = 10;")
    failover = found(checks, "failover slot")
    if conn.info.server_version < 170000:
        assert failover.ok is False
    else:
        assert failover.ok is None
        assert "alter system set synchronized_standby_slots" in (failover.fix or "")
    none = PostgresSource(dsn, stream={"origin": "none"}).examine([], [])
    if conn.info.server_version < 160000:
        assert found(none, "stream").found == "Postgres 15 cannot stream with an origin filter"
    else:
        assert found(none, "origin").ok


def test_its_sql_cures_a_table_without_replica_identity(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key); alter table t replica identity nothing")
    check = found(examine(conn, []), "table")
    assert check.ok is False
    assert check.fix is not None
    conn.execute(check.fix)
    assert passes(examine(conn, []))


def test_many_missing_privileges_are_granted_by_schema(conn: psycopg.Connection, newcomer: str) -> None:
    conn.execute("create schema shop")
    for number in range(30):
        conn.execute(f"create table shop.t{number} (id int primary key)")
    with connect(newcomer) as theirs:
        check = found(examine(theirs, []), "read access")
        assert check.found.startswith("newcomer may not read shop.t0, ")
        assert check.found.endswith(" and 25 more")
        assert (check.fix or "").splitlines() == [
            'grant usage on schema "shop" to "newcomer";',
            'grant select on all tables in schema "shop" to "newcomer";',
        ]
        conn.execute(check.fix or "")
        assert found(examine(theirs, []), "read access").ok


def test_what_only_some_tables_lack_does_not_keep_the_others_from_being_copied(
    conn: psycopg.Connection, newcomer: str
) -> None:
    conn.execute("create table a (id int primary key); create table b (id int primary key)")
    conn.execute(f"alter role newcomer replication; grant create on database {conn.info.dbname} to newcomer")

    def stopping() -> list[str]:
        return [check.name for check in examine(theirs, []) if check.ok is False and not check.leaves_out]

    with connect(newcomer) as theirs:
        assert stopping() == ["read access", "publication"]
        conn.execute("alter table a owner to newcomer")
        assert stopping() == []
        conn.execute("alter table b enable row level security; grant select on b to newcomer")
        assert stopping() == []
        assert not found(examine(theirs, ["b"]), "row security").leaves_out


def test_an_owner_who_may_not_create_a_publication_needs_one_grant(conn: psycopg.Connection, newcomer: str) -> None:
    conn.execute("create table t (id int primary key); alter table t owner to newcomer")
    with connect(newcomer) as theirs:
        check = found(examine(theirs, []), "publication")
        assert (check.ok, check.fix) == (False, f'grant create on database "{conn.info.dbname}" to "newcomer";')
        conn.execute(check.fix or "")
        assert found(examine(theirs, []), "publication").ok


def test_a_limit_of_connections_that_is_too_low_fails_with_one_that_suffices(
    conn: psycopg.Connection, newcomer: str
) -> None:
    conn.execute("create table t (id int primary key); alter role newcomer connection limit 2")
    assert found(examine(conn, []), "connections").ok
    with connect(newcomer) as theirs, connect(newcomer):
        check = found(examine(theirs, []), "connections")
        assert (check.ok, check.found) == (False, "1 left for the role, at least 3 needed")
        conn.execute(check.fix or "")
        assert found(examine(theirs, []), "connections").ok
        conn.execute("alter role newcomer connection limit -1")
        conn.execute(f"alter database {conn.info.dbname} connection limit 1")
        check = found(examine(theirs, []), "connections")
        conn.execute(check.fix or "")
        assert check.ok is False
        assert found(examine(theirs, []), "connections").ok
        conn.execute(f"alter database {conn.info.dbname} connection limit -1")


def test_what_a_person_names_is_examined_instead_of_what_we_would_make(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table t (id int primary key); create table u (id int primary key)")
    named = PostgresSource(dsn, slot="Not A Slot", publication="theirs").examine([], [])
    failed = {check.name: check.found for check in named if check.ok is False}
    assert failed == {
        "slot": "'Not A Slot' cannot be a slot's name",
        "publication": "publication theirs does not exist",
    }
    conn.execute("create publication theirs for table t with (publish_via_partition_root = true)")
    named = PostgresSource(dsn, publication="theirs").examine([], [])
    assert [(check.found, check.leaves_out) for check in named if check.ok is False] == [
        ("publication theirs does not send table public.u", True)
    ]
    name = f"named_{conn.info.dbname}"
    assert ", 2 needed" in found(PostgresSource(dsn, slot=name).examine([], []), "replication slots").found
    conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    assert ", 1 needed" in found(PostgresSource(dsn, slot=name).examine([], []), "replication slots").found


def test_row_security_that_hides_rows_fails(conn: psycopg.Connection, newcomer: str) -> None:
    conn.execute("create table t (id int primary key); alter table t enable row level security")
    conn.execute("grant select on t to newcomer")
    assert all(check.name != "row security" for check in examine(conn, []))
    with connect(newcomer) as theirs:
        check = found(examine(theirs, []), "row security")
        assert (check.ok, check.found) == (False, "hides rows of public.t")
        conn.execute(check.fix or "")
        assert all(check.name != "row security" for check in examine(theirs, []))


def test_what_is_not_or_not_natively_copied_is_told(conn: psycopg.Connection) -> None:
    conn.execute(
        "create unlogged table scratch (id int);"
        "create table t (id int primary key, n numeric, tags text[], g int generated always as (id) stored)"
    )
    checks = examine(conn, [])
    assert found(checks, "not copied").found.startswith("public.scratch is unlogged")
    assert found(checks, "copied as text").found == "public.t.n (numeric)"
    named = Named(text_columns=("t.tags",))
    assert found(examine(conn, [], named=named), "copied as text").found.endswith(", public.t.tags (text[])")
    assert found(checks, "generated columns").found == "not copied: public.t.g"


def test_an_idle_slot_is_told_with_the_wal_it_holds(conn: psycopg.Connection) -> None:
    conn.execute("create table t (id int primary key)")
    name = f"idle_{conn.info.dbname}"
    conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    check = next(check for check in examine(conn, []) if check.name == "idle slot" and name in check.found)
    assert (check.ok, check.fix) == (None, f"select pg_drop_replication_slot('{name}');")


def test_a_pattern_without_tables_fails_with_its_hint(conn: psycopg.Connection) -> None:
    conn.execute("create table orders (id int primary key)")
    check = found(examine(conn, ["oders"]), "tables")
    assert (check.ok, check.fix) == (False, "did you mean public.orders?")


def test_a_server_that_cannot_stream_fails_in_one_line_each() -> None:
    settings = {"wal_level": "replica", "max_replication_slots": "1", "max_wal_senders": "1"}
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=settings) as server,
        connect(server.dsn()) as conn,
    ):
        conn.execute("create table t (id int primary key)")
        checks = examine(conn, [])
        failed = {check.name: check.fix for check in checks if check.ok is False}
        assert failed == {
            "wal_level": "alter system set wal_level = logical;",
            "replication slots": "alter system set max_replication_slots = 3;",
            "wal senders": "alter system set max_wal_senders = 3;",
        }
        output = io.StringIO()
        render(checks, Console(width=80, file=output))
        text = output.getvalue()
        assert "✗  wal_level" in text
        assert f"3 of {len(checks)} checks failed" in text


def test_checks_are_values_for_programs(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table keyless (n int)")
    result = CliRunner().invoke(app, ["doctor", dsn, "--tables", "keyless", "--json"])
    found = json.loads(result.stdout)
    assert found["ready"] is (result.exit_code == 0)
    lacking = next(each for each in found["checks"] if each["fix"] and "keyless" in each["fix"])
    assert lacking["ok"] is not True
    assert "replica identity" in lacking["fix"]
