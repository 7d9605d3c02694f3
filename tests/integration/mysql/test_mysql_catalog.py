"""The catalog of real servers: its shapes are those that the binlog tells, and what cannot be copied says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.mysql.binlog import position
from tests.integration.mysql.capturing import Capturing, address_of, assert_log_is_the_table
from tests.integration.mysql.decoding import taken
from tests.integration.mysql.test_values import FAMILIES, make_table
from tests.mysql_servers import MARIADB, MYSQL, MySqlServer

from tailrace.source.door.values import SourceTable
from tailrace.source.mysql.catalog.tables import list_tables
from tailrace.source.mysql.server.connection import connected
from tailrace.source.mysql.stream.relations import relation_of

REFERENCE = "alter table child add constraint f foreign key (p) references parent (id)"


def tables_of(server: MySqlServer, database: str) -> dict[str, SourceTable]:
    with connected(address_of(server)) as connection:
        return {each.table.name: each for each in list_tables(connection) if each.table.namespace == database}


def problem_of(server: MySqlServer, database: str, name: str = "t") -> str:
    problem = tables_of(server, database)[name].problem
    return "" if problem is None else f"{problem.message}; {problem.hint}"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shape_is_the_one_that_the_binlog_tells(server: MySqlServer, database: str, family: str) -> None:
    begin = position(server)
    make_table(server, database, FAMILIES[family])
    announced = taken(server, begin).announced("t")
    found = tables_of(server, database)["t"]
    assert found.problem is None
    assert found.schema == announced.schema(relation_of(found.table))


@pytest.mark.parametrize(
    "definition",
    [
        "a int, b int, c varchar(20), primary key (c, a)",
        "a varchar(50), b text, primary key (a(10), b(5))",
        "a int",
        "id int unsigned zerofill primary key, f float(7,3), b tinyint(1), e enum('a\\\\b', 'it''s', 'x\\ny', '')",
        "id int primary key, hidden int invisible default 1, v int as (id + 1) virtual, s int as (id + 2) stored",
        "`größe` int primary key, `a b` text character set latin1, `A``B` varchar(3) collate utf8mb4_bin",
        "id bigint primary key, j json, y year, t timestamp null, g geometry",
    ],
)
def test_names_keys_and_odd_declarations_are_those_of_the_binlog(
    server: MySqlServer, database: str, definition: str
) -> None:
    begin = position(server)
    first = "`größe`" if "größe" in definition else "a" if definition.startswith("a ") else "id"
    server.execute(f"create table t ({definition})", database=database)
    value = "'x', b = 'y'" if "a varchar(50)" in definition else "1, c = 'x'" if "primary key (c" in definition else "1"
    server.execute(f"insert into t set {first} = {value}", database=database)
    announced = taken(server, begin).announced("t")
    found = tables_of(server, database)["t"]
    assert found.schema == announced.schema(relation_of(found.table))
    assert found.problem is None


def test_a_key_that_the_server_has_made_is_a_key(mysql: MySqlServer) -> None:
    begin = position(mysql)
    mysql.execute(
        "create database made",
        "set sql_generate_invisible_primary_key = on",
        "create table made.t (a int)",
        "insert into made.t values (1)",
        "set global show_gipk_in_create_table_and_information_schema = off",
    )
    try:
        found = tables_of(mysql, "made")["t"]
    finally:
        mysql.execute("set global show_gipk_in_create_table_and_information_schema = on")
    assert found.schema == taken(mysql, begin).announced("t").schema(found.schema.relation)
    assert found.schema.key == ("my_row_id",)
    mysql.execute("drop database made")


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("(id int primary key, a varchar(10) character set swe7)", "swe7"),
        ("(id int primary key, `Tailrace:op` int)", "a name that is ours"),
        ("(id int primary key) engine = myisam", "engine MyISAM"),
    ],
)
def test_a_table_that_cannot_be_copied_says_why(server: MySqlServer, database: str, definition: str, why: str) -> None:
    server.execute(f"create table t {definition}", database=database)
    assert why in problem_of(server, database)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("(id int primary key, u uuid)", "uuid"),
        ("(id int primary key, a inet6)", "inet6"),
        ("(id int primary key, a varchar(100) compressed)", "compressed"),
        ("(id int primary key) with system versioning", "old versions"),
    ],
)
def test_what_only_mariadb_has_is_refused(mariadb: MySqlServer, definition: str, why: str) -> None:
    mariadb.execute("create database own", f"create table own.t {definition}")
    assert why in problem_of(mariadb, "own")
    mariadb.execute("drop database own")


def test_a_table_that_foreign_keys_change_is_copied_only_where_that_is_logged(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    server.execute(
        "create table parent (id int primary key)",
        "create table child (id int primary key, p int)",
        "create table other (id int primary key, p int, foreign key (p) references parent (id))",
        f"{REFERENCE} on delete cascade on update set null",
        database=database,
    )
    assert problem_of(server, database, "parent") == problem_of(server, database, "other") == ""
    assert ("foreign key f changes rows" in problem_of(server, database, "child")) == (server.make is MARIADB)
    if server.make is MYSQL:
        capturing = Capturing(server, tmp_path / "log")
        with capturing:
            server.execute(
                "insert into parent values (1), (2), (3)",
                "insert into child values (10, 1), (20, 2), (30, 3)",
                "delete from parent where id = 1",
                "update parent set id = 4 where id = 2",
                database=database,
            )
            capturing.reaches()
        for name in ("parent", "child"):
            assert_log_is_the_table(server, capturing.log, database, name)
