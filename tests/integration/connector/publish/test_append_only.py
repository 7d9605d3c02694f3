"""Tables whose rows nothing identifies: copied by their inserts, never in the way of the application's own updates."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.integration.lake.equality import assert_equal, execute
from tests.running import running, sync_once

from tailrace.connector.events import TableChanged
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

LINES, PARTED, KEYED = "public.lines", "public.parted", "public.keyed"
SETUP = """
create table lines (at timestamptz, v text);
create table parted (n int, v text) partition by range (n);
create table parted_1 partition of parted for values from (0) to (10);
create table keyed (id int primary key, v text);
create table other (v text);
insert into lines values (null, 'a'), (null, 'a'); insert into parted values (1, 'x'), (1, 'x');
insert into keyed values (1, 'k');
"""
UPDATES = "update lines set v = 'b' where v = 'a'; delete from parted where n = 1; update other set v = 'o'"


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, look_at_tables_seconds=0.2)


def test_rows_that_are_added_are_followed_and_rows_that_are_not_have_the_table_copied_again(
    source: str, settings: ConnectorSettings
) -> None:
    chosen = source_of(source, append_only=["lines", "part*", "keyed"])
    with running(settings, chosen) as run:
        run.catch_up()
        assert {str(t): r.state for t, r in run.connector.tables().items() if r.state is TableState.ERRORED} == {
            "public.other": TableState.ERRORED
        }
        execute(source, "insert into lines values (now(), 'a'), (null, 'a'); insert into parted values (2, 'x')")
        execute(source, "truncate lines; insert into lines values (null, 'a'), (null, 'a'), (null, 'c')")
        execute(source, "create table parted_2 partition of parted for values from (10) to (20)")
        execute(source, "insert into parted values (11, 'y'); update keyed set v = 'changed'; delete from keyed")
        run.catch_up()
        assert_equal(source, run.lake, LINES, PARTED, KEYED)
        assert {record.copy for table, record in run.connector.tables().items() if str(table) in (LINES, KEYED)} == {1}
        with psycopg.connect(source) as conn:
            # Not refused, although the tables are published.
            conn.execute(UPDATES + "; update parted set v = 'z'")
            conn.execute("select pg_stat_force_next_flush()")
        for table in (LINES, PARTED):
            run.wait_for_state(table, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(source, run.lake, LINES, PARTED, KEYED)
        reasons = {e.record.reason for e in run.events if isinstance(e, TableChanged) and str(e.table) == LINES}
        assert "its rows were updated or deleted, and only inserts are sent" in reasons
    claim = LakeHome(settings.lake).source()
    assert claim is not None
    assert sync_once(settings_once(settings), source_of(source))[LINES] is TableState.ERRORED
    execute(source, UPDATES)
    assert f"publication {claim.claim['inserts']} dropped" in chosen.drop(claim.claim)
    with psycopg.connect(source) as conn:
        assert conn.execute("select count(*) from pg_publication").fetchone() == (0,)


def settings_once(settings: ConnectorSettings) -> ConnectorSettings:
    return ConnectorSettings(settings.lake, once=True)


def test_it_must_be_said_before_a_lake_is_begun_and_not_beside_a_publication_of_others(
    source: str, settings: ConnectorSettings
) -> None:
    execute(source, "create publication mine for table keyed")
    with pytest.raises(DefiniteError, match="needs a publication of its own beside mine"):
        source_of(source, publication="mine", append_only=["lines"]).claim(None)
    claim = source_of(source).claim(None)
    with pytest.raises(DefiniteError, match="this lake was begun without --append-only"):
        source_of(source, append_only=["lines"]).claim(claim)
