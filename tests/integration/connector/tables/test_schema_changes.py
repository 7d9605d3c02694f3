"""Every statement that changes a table, while nothing runs and while it streams: the lake equals the source.

Each statement has tables of its own, in schemas of their own, so one lake tries them all: alone and in one transaction
with changes while the connector runs, alone and among changes while it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.ddl import STATEMENTS, split_script
from tests.integration.lake.equality import assert_equal, execute
from tests.running import Running, connector_of, running

from tailrace.connector.connector import Connector
from tailrace.connector.events import Event, TableChanged
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableRecord, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

WHILE_RUNNING = "rx"
WHILE_STOPPED = "sw"
"""Letters of the ways to run a statement: `r` and `s` alone, `x` in one transaction with changes before and after it,
`w` among changes in transactions of their own."""
WAYS = WHILE_RUNNING + WHILE_STOPPED
IN_A_TRANSACTION = "x"
AMONG_CHANGES = "xw"


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.2, look_at_tables_seconds=0.5)


class Trial:
    """Every statement, each with a schema of its own, in one database. With another `turn`, each is run another way."""

    def __init__(self, server: EmbeddedPostgres, database: str, turn: int) -> None:
        self.database = database
        self.statements = {
            f"{way}{number}": (name, each)
            for number, (name, each) in enumerate(STATEMENTS.items())
            for way in WAYS[(number + turn) % len(WAYS)]
            if server.version >= each.since and not (each.alone and way in IN_A_TRANSACTION)
        }
        with psycopg.connect(database, autocommit=True) as conn:
            conn.execute("create table public.marker (id int primary key); set allow_in_place_tablespaces = on")
            if not conn.execute("select 1 from pg_tablespace where spcname = 'ddl_space'").fetchone():
                conn.execute("create tablespace ddl_space location ''")
        for schema, (_, each) in self.statements.items():
            self._execute(schema, f"create schema {schema}; {each.setup}", in_transaction=True)

    def run(self, ways: str) -> None:
        for schema, (_, each) in self.statements.items():
            if schema[0] in ways:
                parts = [each.before, each.ddl, each.after] if schema[0] in AMONG_CHANGES else [each.ddl]
                script = "; ".join(part for part in parts if part).replace("{schema}", schema)
                self._execute(schema, script, in_transaction=schema[0] in IN_A_TRANSACTION)
        execute(self.database, f"insert into public.marker values ({ord(ways[0])})")

    def _execute(self, schema: str, script: str, *, in_transaction: bool) -> None:
        with psycopg.connect(self.database, autocommit=True, options=f"-c search_path={schema}") as conn:
            for statement in [f"begin; {script}; commit"] if in_transaction else split_script(script):
                conn.execute(statement)

    def assert_right(self, lake: Path, states: Mapping[TableId, TableRecord], ways: str) -> None:
        """Every table of the source is as it is there, or refused for the right reason; no other table is live."""
        there = [TableId(*row) for row in self._tables()]
        expected = {
            TableId(schema, table): reason
            for schema, (_, each) in self.statements.items()
            if schema[0] in ways
            for table, reason in each.refused.items()
        }
        wrong = {
            self._named(table): f"{record.state}: {record.reason}"
            for table, record in states.items()
            # A name that a table had between two statements may have been seen or not.
            if not (record.state is TableState.REMOVED and table not in there)
            and (
                (record.state is not TableState.LIVE) != (table in expected)
                or (table in expected and expected[table] not in (record.reason or ""))
            )
        }
        assert wrong == {}
        assert_equal(self.database, lake, *(str(table) for table in there if table not in expected))

    def assert_followed(self, states: Mapping[TableId, TableRecord], ways: str, told: Sequence[Event]) -> None:
        """No table was copied again that could be followed, and each that could not was."""
        again = {schema: states[TableId(schema, "t")].copy > 1 for schema in self.statements if schema[0] in ways}
        expected = {schema: self.statements[schema][1].copied for schema in again}
        refused = {schema for schema in again if "t" in self.statements[schema][1].refused}
        differing = {
            f"{schema} {self.statements[schema][0]}": _reasons(told, TableId(schema, "t"))
            for schema, copied in again.items()
            if expected[schema] not in (copied, None) and schema not in refused
        }
        assert differing == {}

    def _named(self, table: TableId) -> str:
        return f"{table} {self.statements.get(table.namespace, ('',))[0]}"

    def _tables(self) -> list[tuple[str, str]]:
        query = (
            "select nspname, relname from pg_class c join pg_namespace n on n.oid = relnamespace "
            "where relkind in ('r', 'p') and not relispartition and nspname !~ '^pg_|information_schema'"
        )
        with psycopg.connect(self.database) as conn:
            return conn.execute(query).fetchall()


def _reasons(told: Sequence[Event], table: TableId) -> list[str]:
    """Why a table was copied again, as its connector told it."""
    records = [each.record for each in told if isinstance(each, TableChanged) and each.table == table]
    return [record.reason for record in records if record.reason is not None]


def _settle(run: Running) -> None:
    """Until every table is copied or refused, and everything that is committed is published."""
    run.catch_up()
    run.wait_for(lambda: all(each.state not in COPYING for each in run.connector.tables().values()) or None)
    run.catch_up()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.proof) for turn in range(1, len(WAYS)))])
def test_every_statement_is_followed_or_has_its_table_copied_again(
    postgres: EmbeddedPostgres, database: str, settings: ConnectorSettings, turn: int
) -> None:
    trial = Trial(postgres, database, turn)
    with running(settings, source_of(database)) as run:
        _settle(run)
        trial.run(WHILE_RUNNING)
        _settle(run)
        trial.assert_right(run.lake, run.connector.tables(), WHILE_RUNNING)
    trial.assert_followed(run.connector.tables(), WHILE_RUNNING, run.events)
    trial.run(WHILE_STOPPED)
    connector = connector_of(replace(settings, once=True), source_of(database))
    told: list[Event] = []
    connector.subscribe(told.append)
    _run(connector)
    trial.assert_right(settings.lake, connector.tables(), WAYS)
    trial.assert_followed(connector.tables(), WHILE_STOPPED, told)
    cuts = LakeHome(settings.lake).cuts.all()
    _run(connector)
    assert LakeHome(settings.lake).cuts.all() == cuts


def _run(connector: Connector) -> None:
    connector.start()
    assert connector.wait(800)


def test_a_shape_that_was_logged_before_a_copy_does_not_ask_for_another_one(
    database: str, settings: ConnectorSettings
) -> None:
    connector = connector_of(replace(settings, once=True), source_of(database))
    execute(database, "create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)")
    _run(connector)
    execute(database, "update t set v = 3 where id = 1")
    execute(database, "alter table t alter v type bigint")
    _run(connector)
    execute(database, "update t set v = 4 where id = 2")
    _run(connector)
    assert connector.tables()[TableId("public", "t")].copy == 2
    assert_equal(database, settings.lake, "public.t")
