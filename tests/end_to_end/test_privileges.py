"""The roles of docs/privileges.md, made by its own SQL: each does the whole journey, and no password stays anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from demo.embedded import HOST, EmbeddedPostgres
from tests.journey import run

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "privileges.md"
PASSWORD = "change me"
SETUP = """
create table orders (id int primary key, body text);
insert into orders select n, 'order ' || n from generate_series(1, 50) n;
create table days (day date not null, n int, primary key (day, n)) partition by range (day);
create table days_2024 partition of days for values from ('2024-01-01') to ('2025-01-01');
insert into days values ('2024-05-01', 1);
"""


def documented(name: str) -> str:
    """The SQL of the document that begins with this comment."""
    (found,) = re.findall(rf"```sql\n-- {name}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.fixture
def admin(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """A database `shop` whose tables belong to `app`. Roles of the document sign in with their passwords."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute("create role app login; create role with_password nologin")
    dsn = postgres.create_database("shop")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("grant create on schema public to app")
        with psycopg.connect(postgres.dsn("shop", "app"), autocommit=True) as owner:
            owner.execute(SETUP)
        yield conn
    postgres.drop_database("shop")
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        for (role,) in server.execute(
            "select rolname from pg_roles where rolname ~ '^(tailrace|app$|with_pass)'"
        ).fetchall():
            server.execute(f"drop role {role}")


def sign_in(admin: psycopg.Connection, role: str) -> str:
    """The role's address, without its password, which the server asks for from now on."""
    admin.execute(f"grant with_password to {role}")
    return f"postgresql://{role}@{HOST}:{admin.info.port}/shop"


def owner_works(admin: psycopg.Connection) -> None:
    address = f"postgresql://app@{HOST}:{admin.info.port}/shop"
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute("update orders set body = 'changed' where id <= 5; delete from orders where id > 45")
        owner.execute("create table later (id int primary key); insert into later values (1)")
        owner.execute("insert into days values ('2024-06-01', 2)")


def assert_kept_secret(lake: Path, *said: str) -> None:
    for text in said:
        assert PASSWORD not in text
    files = [path for path in lake.rglob("*") if path.is_file()]
    assert {"source.json", "tailrace.log"} <= {path.name for path in files}
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def journey(admin: psycopg.Connection, dsn: str, lake: Path, *options: str) -> None:
    """Doctor, first copy, changes and a new table, second run: the lake is the source."""
    secret = {"PGPASSWORD": PASSWORD}
    said = []
    for command in (("doctor", dsn, *options), ("sync", dsn, str(lake), "--once", *options)):
        done = run(*command, **secret)
        assert done.returncode == 0, done
        said += [done.stdout, done.stderr]
    owner_works(admin)
    done = run("sync", dsn, str(lake), "--once", *options, **secret)
    assert done.returncode == 0, done
    refused = run("doctor", dsn.replace("@", ":wrong change me wrong@").replace(" ", "%20"), PGPASSWORD="")
    assert refused.returncode == 2
    tables = ["public.orders", "public.days", "public.later"]
    source = f"postgresql://postgres@{HOST}:{admin.info.port}/shop"
    assert [table for table in compare(source, lake, tables) if not table.equal] == []
    assert_kept_secret(lake, *said, done.stdout, done.stderr, refused.stdout, refused.stderr)


@pytest.mark.timeout(600)
def test_a_member_of_the_tables_owner_needs_nothing_made_for_it(admin: psycopg.Connection, tmp_path: Path) -> None:
    admin.execute(documented("full"))
    dsn = sign_in(admin, "tailrace")
    journey(admin, dsn, tmp_path / "lake")
    assert run("drop", dsn, str(tmp_path / "lake"), "--yes", PGPASSWORD=PASSWORD).returncode == 0


@pytest.mark.timeout(600)
def test_a_role_that_can_only_read_and_stream_uses_what_an_administrator_made(
    admin: psycopg.Connection, tmp_path: Path
) -> None:
    for statement in documented("reading").split(";\n"):
        admin.execute(statement)
    dsn = sign_in(admin, "tailrace_reader")
    journey(admin, dsn, tmp_path / "lake", "--publication", "shop_changes", "--slot", "tailrace_shop")
    with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(dsn, password=PASSWORD) as theirs:
        theirs.execute("update orders set body = ''")
    admin.execute("alter role tailrace_reader noreplication")
    options = ["--publication", "shop_changes", "--slot", "tailrace_shop"]
    refused = run("sync", dsn, str(tmp_path / "other"), "--once", *options, PGPASSWORD=PASSWORD)
    assert refused.returncode == 2
    assert 'alter role "tailrace_reader" with replication' in refused.stderr
    for statement in documented("giving up").split(";\n"):
        admin.execute(statement)
