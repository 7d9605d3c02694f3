"""Statements that change tables while nothing runs and while it streams: the lake equals the source, row by row.

Each statement has a table of its own, in a schema of its own, so one lake tries them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_definition import PARTITIONED, PARTITIONS_DOUBTFUL, SETUP
from tests.running import running

from tailrace.connector.connector import Connector
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

UPDATE = "update t set v = v + 10 where id = 1"
"""A change before and after a statement: its shape is told by the stream as well."""
FOLLOWED = {
    "add": "alter table t add x int",
    "add and change": f"{UPDATE}; alter table t add x int; update t set x = 1 where id = 2",
    "odd names and a time": 'alter table t add "unit price" int; alter table t add seen timestamp',
    "drop": "alter table t drop w",
    "drop after a change": f"{UPDATE}; alter table t drop w",
    "rename": "alter table t rename c to d",
    "rename before and after changes": f"{UPDATE}; alter table t rename c to d; update t set d = 'z' where id = 2",
    "renamed after a change": "alter table t add x int; update t set x = 1 where id = 1; alter table t rename x to y",
    "rename the key": "alter table t rename id to ident; delete from t where ident = 2",
    "longer text": f"alter table t alter w type text; {UPDATE}",
    "later default": "alter table t add x int; alter table t alter x set default 7; insert into t (id) values (9)",
    "filled": "begin; alter table t add x int; update t set x = 1; alter table t alter x set not null; commit",
    "label": "alter type mood add value 'glad'; update t set m = 'glad' where id = 1",
    "truncate": "truncate t; insert into t (id, c) values (5, 'new')",
}
COPIED = {
    "default": "alter table t add x int default 5",
    "default and change": f"alter table t add x int default 5; {UPDATE}",
    "volatile default": "alter table t add k uuid default gen_random_uuid(); alter table t alter k drop default",
    "default made real": "alter table t add x int default 5; alter table t alter x drop default; vacuum full t",
    "expression": "alter table t alter g drop expression",
    "upper": "alter table t alter c type text using upper(c)",
    "upper and change": f"alter table t alter w type text using upper(w); {UPDATE}",
    "label renamed": "alter type mood rename value 'sad' to 'blue'",
    "composite": "alter type pair add attribute z int",
    "made again": "alter table t add x int; update t set x = 1 where id = 1; alter table t drop x; "
    "alter table t add x int",
    "swapped": "alter table t rename c to x; alter table t rename w to c; alter table t rename x to w",
    "scale": "alter table t alter n type numeric(6,1)",
    "not null with a default": "alter table t add z int not null default 7",
    "key": f"alter table t drop constraint t_pkey; alter table t add primary key (id, c); {UPDATE}",
}
PARTITIONS = {
    "emptied": "truncate t1; insert into t1 values (1, 1)",
    "attached": PARTITIONS_DOUBTFUL["attached"][0],
    "detached": "alter table t detach partition t1",
    "dropped": "drop table t2",
}
ROWS = """
update t set w = 'word', m = 'sad', ms = '{sad,ok}', p = (1, 2), n = 1.25, i = id, e = '2024-02-29 01:02:03.004';
"""


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.2, look_at_tables_seconds=0.5)


EVERYTHING = FOLLOWED | COPIED | PARTITIONS
SOME = [
    *("add and change", "odd names and a time", "rename before and after changes", "rename the key"),
    *("default and change", "label renamed", "made again", "emptied"),
]


def made(database: str, names: Sequence[str]) -> dict[str, str]:
    """A schema with a table for each of these; their statements by schema."""
    schemas = {f"s{list(EVERYTHING).index(name)}": name for name in names}
    for schema, name in schemas.items():
        _in_schema(database, schema, _without_publication(PARTITIONED if name in PARTITIONS else SETUP + ROWS))
    return {schema: EVERYTHING[name] for schema, name in schemas.items()}


def _without_publication(setup: str) -> str:
    return "".join(f"{each};" for each in setup.split(";") if "publication" not in each and each.strip())


def _in_schema(database: str, schema: str, script: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"create schema if not exists {schema}")
        conn.execute(f"set search_path to {schema}")
        for statement in [script] if script.startswith("begin") else script.split(";"):
            if statement.strip():
                conn.execute(statement)


def assert_followed(states: Mapping[TableId, TableRecord]) -> None:
    """No table was copied again that could be followed, and each that could not was."""
    names = {table: list(EVERYTHING)[int(table.namespace[1:])] for table in states}
    again = {names[table] for table, record in states.items() if record.copy > 1}
    assert again == {*COPIED, *PARTITIONS} & set(names.values())
    assert {record.state for record in states.values()} == {TableState.LIVE}


@pytest.mark.parametrize(
    "names", [SOME, pytest.param([*EVERYTHING], marks=[pytest.mark.proof, pytest.mark.timeout(900)])]
)
def test_what_happened_while_nothing_ran_is_followed_or_copied_again(
    database: str, settings: ConnectorSettings, spark: SparkSession, names: Sequence[str]
) -> None:
    schemas = made(database, names)
    connector = Connector(replace(settings, once=True), source_of(database), spark)
    _run(connector)
    for schema, ddl in schemas.items():
        _in_schema(database, schema, ddl)
    _run(connector)
    assert_followed(connector.tables())
    assert_equal(database, settings.lake, *(f"{schema}.t" for schema in schemas))
    cuts = LakeHome(settings.lake).cuts.all()
    _run(connector)
    assert LakeHome(settings.lake).cuts.all() == cuts


def _run(connector: Connector) -> None:
    connector.start()
    assert connector.wait(800)


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_what_happens_while_it_streams_is_followed_or_copied_again(
    database: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    schemas = made(database, [*EVERYTHING])
    with running(settings, source_of(database), spark) as run:
        run.catch_up()
        for schema, ddl in schemas.items():
            _in_schema(database, schema, ddl)
        for number in range(len(FOLLOWED), len(EVERYTHING)):
            run.wait_for_state(f"s{number}.t", TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, run.lake, *(f"{schema}.t" for schema in schemas))


def test_a_shape_that_was_logged_before_a_copy_does_not_ask_for_another_one(
    database: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    connector = Connector(replace(settings, once=True), source_of(database), spark)
    execute(database, "create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)")
    _run(connector)
    execute(database, "update t set v = 3 where id = 1")
    execute(database, "alter table t alter v type bigint")
    _run(connector)
    execute(database, "update t set v = 4 where id = 2")
    _run(connector)
    assert connector.tables()[TableId("public", "t")].copy == 2
    assert_equal(database, settings.lake, "public.t")
