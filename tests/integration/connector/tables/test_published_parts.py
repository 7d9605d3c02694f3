"""A publication that sends some columns and some rows of its tables: the lake has what it sends, and `verify` agrees.

For each table a view in the schema `sent` says what that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from demo.compare import compare_tables
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.running import running, sync_once
from tests.verifying import verify

import tailrace
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of
from tailrace.verify.report import TableVerdict

DATABASE = """
create table listed (id int primary key, hidden text, v int, twice int generated always as (v * 2) stored);
create table chosen (id int, area text, v int, primary key (id, area));
create table few (id int primary key, v int, hidden text);
create table parted (id int, d int, hidden int, primary key (id, d)) partition by range (d);
create table parted_1 partition of parted for values from (0) to (10);
create table parted_2 (hidden int, d int not null, id int not null);
alter table parted attach partition parted_2 for values from (10) to (20);
create table counted (id int, v int);
alter table counted replica identity full;
create table whole (id int primary key, v int);
insert into listed (id, hidden, v) select i, 'x', i from generate_series(1, 9) i;
insert into chosen select i, case i % 2 when 0 then 'eu' else 'us' end, i from generate_series(1, 9) i;
insert into few select i, i, 'x' from generate_series(1, 9) i;
insert into parted select i, i, i from generate_series(1, 19) i;
insert into counted select i, i from generate_series(1, 9) i;
insert into whole values (1, 1);
create publication theirs for table listed (id, v), chosen where (area = 'eu' or id = 1), few (v, id) where (id < 5),
  parted (d, id) where (d > 5), counted where (v > 5 or v is null), whole with (publish_via_partition_root = true);
create schema sent;
create view sent.listed as select id, v from listed;
create view sent.chosen as select * from chosen where area = 'eu' or id = 1;
create view sent.few as select id, v from few where id < 5;
create view sent.parted as select id, d from parted where d > 5;
create view sent.counted as select * from counted where v > 5 or v is null;
create view sent.whole as select * from whole;
"""
CHANGES = """
update listed set v = v + 1, hidden = 'y' where id < 4; delete from listed where id = 9;
update chosen set area = 'eu' where id = 3; update chosen set area = 'us' where id = 4; delete from chosen where id = 6;
update chosen set v = 10 where id in (1, 2); insert into chosen values (20, 'eu', 0), (21, 'us', 0);
update few set v = 0; update few set id = 40 where id = 1; update few set id = 1 where id = 9;
update parted set d = 15 where id = 2; update parted set d = 1 where id = 18; insert into parted values (30, 6);
insert into parted values (31, 3);
update counted set v = 9 where id = 1; update counted set v = 1 where id = 8; update counted set v = null where id = 2;
delete from counted where id = 9; insert into counted values (10, 10), (10, 10), (11, 1);
"""
RENAMED = """
alter table listed rename hidden to secret; alter table listed add more int default 3; update listed set v = 100;
alter table few drop hidden; insert into few values (2, 2) on conflict (id) do update set v = 77;
"""
AGAIN = """
update listed set v = 5 where id = 1; update chosen set v = v + 1; update few set v = 5;
update few set id = 50 where id = 2;
update parted set d = 7 where id = 31; update counted set v = 0 where id = 10; update whole set v = 9;
insert into whole values (2, 2);
"""
NARROWED = """
alter publication theirs set table listed (id), chosen, few (id, v) where (id < 3), parted where (d > 5), counted,
  whole (id);
drop schema sent cascade; create schema sent;
create view sent.listed as select id from listed;
create view sent.chosen as select * from chosen;
create view sent.few as select id, v from few where id < 3;
create view sent.parted as select * from parted where d > 5;
create view sent.counted as select * from counted;
create view sent.whole as select id from whole;
"""
TABLES = ("listed", "chosen", "few", "parted", "counted", "whole")


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", once=True)


def assert_sent(database: str, lake: Path, tables: Sequence[str] = TABLES) -> None:
    """The lake has the columns and rows of the views, published and live."""
    for published in (True, False):
        with connect(is_private=True) as connection:
            cut = tailrace.cut(connection, lake, published=published, register=False)
            found = {f"sent.{name}": cut.tables[f"public.{name}"].to_arrow_table() for name in tables}
        assert {name: sorted(rows.column_names) for name, rows in found.items()} == _columns(database, found)
        assert [each for each in compare_tables(database, found) if not each.equal] == []


def _columns(database: str, found: dict[str, pa.Table]) -> dict[str, list[str]]:
    with psycopg.connect(database) as conn:
        return {name: sorted(c.name for c in conn.execute(f"select * from {name}").description or ()) for name in found}


def test_the_lake_has_the_columns_and_rows_that_a_publication_sends(database: str, settings: ConnectorSettings) -> None:
    execute(database, DATABASE)
    states = sync_once(settings, source_of(database, publication="theirs"))
    assert set(states.values()) == {TableState.LIVE}
    assert_sent(database, settings.lake)
    for script in (CHANGES, RENAMED, NARROWED, AGAIN):
        execute(database, script)
        # Not named again: the lake knows it.
        sync_once(settings, source_of(database))
        assert_sent(database, settings.lake)
    report = verify(database, settings.lake)
    assert {str(each.table): each.verdict for each in report.tables} == {
        f"public.{name}": TableVerdict.EQUAL for name in TABLES
    }


GENERATED = """
create table g (id int primary key, v int, twice int generated always as (v * 2) stored,
                thrice int generated always as (v * 3) virtual);
create table by_generated (v int not null, k int generated always as (v * 2) stored, w text, primary key (k));
create table f (v int, k int generated always as (v * 2) stored);
alter table f replica identity full;
insert into g values (1, 1), (2, 2);
insert into by_generated values (1, default, 'a'), (2, default, 'b');
insert into f values (1), (1);
create schema sent;
create view sent.g as select id, v, twice from g;
create view sent.by_generated as select * from by_generated;
create view sent.f as select * from f;
"""
COMPUTED = """
update g set v = 10 where id = 1; insert into g (id, v) select max(id) + 1, 3 from g;
update by_generated set v = 7 where v = 1; update by_generated set w = 'c' where v = 2;
update f set v = 2 where ctid = '(0,1)'; insert into f values (null);
"""
OTHERWISE = """
alter table g alter twice set expression as (v * 20); update g set v = 4 where id = 2;
alter table g add more int generated always as (id + v) stored;
create or replace view sent.g as select id, v, twice, more from g;
"""


@pytest.fixture
def sends_generated(postgres: EmbeddedPostgres) -> None:
    if postgres.version < 18:
        pytest.skip("generated columns are sent since Postgres 18")


@pytest.mark.usefixtures("sends_generated")
@pytest.mark.parametrize("publication", ["theirs", pytest.param(None, marks=pytest.mark.proof)])
def test_generated_columns_are_copied_where_the_publication_sends_them(
    database: str, settings: ConnectorSettings, publication: str | None
) -> None:
    execute(database, GENERATED)
    if publication is not None:
        execute(database, "create publication theirs for all tables with (publish_generated_columns = stored)")
    source = source_of(database, publication=publication, generated=publication is None)
    tables = ("g", "by_generated", "f")
    for script in ("select", COMPUTED, OTHERWISE, COMPUTED):
        execute(database, script)
        states = sync_once(settings, source)
        assert set(states.values()) == {TableState.LIVE}
        assert_sent(database, settings.lake, tables)
    cuts = len(list((settings.lake / "public" / "g" / "_delta_log").glob("*.json")))
    sync_once(settings, source)
    assert len(list((settings.lake / "public" / "g" / "_delta_log").glob("*.json"))) == cuts


@pytest.mark.usefixtures("sends_generated")
@pytest.mark.proof
def test_generated_columns_come_and_go_with_the_option(database: str, settings: ConnectorSettings) -> None:
    execute(database, GENERATED)
    chosen = replace(settings, tables=("g",))
    sync_once(chosen, source_of(database))
    with connect(is_private=True) as connection:
        cut = tailrace.cut(connection, settings.lake, register=False)
        assert cut.tables["public.g"].columns == ["id", "v"]
    sync_once(chosen, source_of(database, generated=True))
    assert_sent(database, settings.lake, ("g",))
    sync_once(chosen, source_of(database))
    with connect(is_private=True) as connection:
        cut = tailrace.cut(connection, settings.lake, register=False)
        assert cut.tables["public.g"].columns == ["id", "v"]


LEAVES = """
create table t (id int, d int, primary key (id, d)) partition by range (d);
create table a partition of t for values from (0) to (10);
create table b partition of t for values from (10) to (20) partition by range (id);
create table b1 (d int not null, id int not null);
alter table b attach partition b1 for values from (0) to (100);
insert into t select i, i from generate_series(1, 19) i;
create schema elsewhere;
create table elsewhere.c partition of t for values from (20) to (30);
"""
ATTACHED = """
create table free (id int, d int, primary key (id, d));
insert into free values (40, 40), (41, 41);
alter table t attach partition free for values from (40) to (50);
update t set d = 25 where id = 3;
"""
DETACHED = """
alter table t detach partition a;
insert into a values (90, 9);
alter table t attach partition a for values from (0) to (10);
truncate b1;
insert into t values (50, 12);
"""
ALL_LEAVES = ("public.a", "public.b1", "elsewhere.c")


OTHERS = [pytest.param(each, marks=pytest.mark.proof) for each in ("all tables", "tables in schema public")]


@pytest.mark.parametrize("what", ["table t", *OTHERS])
def test_partitions_that_are_sent_by_their_own_names_are_tables_of_their_own(
    database: str, settings: ConnectorSettings, what: str
) -> None:
    execute(database, f"{LEAVES}; create publication theirs for {what}")
    source = source_of(database, publication="theirs")
    for script, more in (("select", ()), (ATTACHED, ("public.free",)), (DETACHED, ("public.free",))):
        execute(database, script)
        states = sync_once(settings, source)
        assert states == dict.fromkeys((*ALL_LEAVES, *more), TableState.LIVE)
        assert_equal(database, settings.lake, *states)
    execute(database, "truncate t; insert into t values (1, 1), (2, 12), (3, 23)")
    sync_once(settings, source)
    assert_equal(database, settings.lake, *states)
    execute(database, "alter publication theirs set (publish_via_partition_root = true)")
    states = sync_once(settings, source)
    assert {name for name, state in states.items() if state is TableState.LIVE} == {"public.t"}
    assert_equal(database, settings.lake, "public.t")


LEAVING = """
create schema archive; create schema dropped; create schema parts;
create table moved (id int primary key, v int);
create table dropped.schemas (id int primary key, v int);
create table root (id int, v int, primary key (id)) partition by range (id);
create table parts.low partition of root for values from (0) to (10);
create table leaf partition of root for values from (10) to (20);
create schema listed;
create table listed.one (id int primary key, v int);
create table listed.filtered (id int primary key, v int);
create table listed.still (id int primary key, v int);
"""
LEFT = {
    "moved": "alter table moved set schema archive; {0}; alter table archive.moved set schema public",
    "dropped.schemas": "alter publication theirs drop tables in schema dropped; {0}; "
    "alter publication theirs add tables in schema dropped",
    "root": "alter table root set schema archive; {0}; alter table archive.root set schema public",
    "listed.one": "alter publication theirs drop table listed.one; {0}; alter publication theirs add table listed.one",
    "listed.filtered": "alter publication theirs drop table listed.filtered; "
    "alter publication theirs add table listed.filtered where (id < 0); {0}; "
    "alter publication theirs drop table listed.filtered; alter publication theirs add table listed.filtered",
}
"""What takes each table out of its publication, a change that is not sent, what brings it back."""


@pytest.mark.parametrize(
    ("via_root", "together"),
    [
        (True, True),
        (False, False),
        pytest.param(True, False, marks=pytest.mark.proof),
        pytest.param(False, True, marks=pytest.mark.proof),
    ],
)
def test_tables_that_left_their_publication_and_came_back_are_copied_again(
    database: str, settings: ConnectorSettings, via_root: bool, together: bool
) -> None:
    execute(database, LEAVING)
    for table in [*LEFT, "listed.still"]:
        execute(database, f"insert into {table} select i, i from generate_series(1, 15) i")
    execute(
        database,
        "create publication theirs for tables in schema public, dropped, table listed.one, listed.filtered, "
        f"listed.still with (publish_via_partition_root = {via_root})",
    )
    source = source_of(database, publication="theirs")
    copied = sync_once(settings, source)
    assert set(copied.values()) == {TableState.LIVE}
    _leave_and_return(database, together=together)
    assert sync_once(settings, source) == copied
    assert_equal(database, settings.lake, *copied)
    with running(replace(settings, once=False, publish_every_seconds=0.2), source) as run:
        run.catch_up()
        _leave_and_return(database, together=together)
        run.catch_up()
        run.wait_for(lambda: {each.state for each in run.connector.tables().values()} == {TableState.LIVE})
        run.catch_up()
    assert_equal(database, settings.lake, *copied)
    copies = {str(table): record.copy for table, record in run.connector.tables().items()}
    assert [table for table, copy in copies.items() if copy < 3] == ["listed.still"]


def _leave_and_return(database: str, *, together: bool) -> None:
    """Each table leaves its publication, is changed, and comes back; one that did not leave is changed last."""
    with psycopg.connect(database, autocommit=True) as conn:
        for table, script in LEFT.items():
            away = f"archive.{table}" if "archive" in script else table
            change = f"update {away} set v = v + 100 where id in (3, 12); delete from {away} where v in (5, 14, 103)"
            statements = script.format(change).split("; ")
            for statement in [f"begin; {'; '.join(statements)}; commit"] if together else statements:
                conn.execute(statement)
        conn.execute("update listed.still set v = v + 1")
