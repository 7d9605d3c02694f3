"""Columns that are called like ours, like Spark's or like Delta's: the lake is the source all the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_live, assert_published, execute
from tests.running import DIVIDED, running, sync_once

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.kinds import source_of

COLUMNS = """
    "_key" int, "_from" text, "_OP" int, "_seq" text, "_pos" numeric(10,2), "_ordinal" timestamptz, "_xid" bytea,
    "_commit_ts" date, "_before" text, "_unchanged" text, "_deleted" boolean, "_Fresh" boolean, "_part" float8,
    "_origin" text, "s" text, "t" text, "newer" text, "base" text, ".dot" text, "a.b" text, "tick`" text
"""
SETUP = f"""
create table names ({COLUMNS}, primary key ("_key", "_from", "_OP"));
alter table names alter "_before" set storage external, alter "_unchanged" set storage external;
create table more_names ({COLUMNS}, "_METADATA" text, primary key ("_OP", ".dot", "a.b"));
alter table more_names alter "_before" set storage external, alter "_METADATA" set storage external;
create function fill(first int, last int) returns void language sql as $$
    insert into names select n, 'f' || n, n % 3, 's', n / 4.0, now(), '\\x00', '2024-02-29', repeat(md5(n::text), 200),
        repeat(md5((-n)::text), 200), n % 2 = 0, n % 2 = 1, n, 'o', 's', 't', 'newer', 'base', '.dot', 'a.b', '`'
        from generate_series(first, last) n;
    insert into more_names select n, 'f', n, 's', n / 4.0, now(), '\\x00', '2024-02-29', repeat(md5(n::text), 200),
        'u', n % 2 = 0, n % 2 = 1, n, 'o', 's', 't', 'newer', 'base', '.dot' || n, 'a.b' || n, '`',
        repeat(md5(n::text), 200)
        from generate_series(first, last) n;
$$;
select fill(1, 60);
"""
ROUNDS = (
    """
    select fill(61, 80);
    update names set "_deleted" = not "_deleted", "_seq" = 'again', "_before" = 'short' where "_key" % 3 = 0;
    update more_names set "_METADATA" = 'short', "base" = null where "_OP" % 3 = 0;
    delete from names where "_key" % 7 = 0; delete from more_names where "_OP" % 7 = 0;
    update names set "_part" = -1, "_unchanged" = 'u' where "_key" % 4 = 0;
    update more_names set "_part" = -1, "_unchanged" = 'u' where "_OP" % 4 = 0;
    """,
    """
    update names set "_key" = "_key" + 1000, "_from" = 'moved' where "_key" % 5 = 0;
    update names set "_OP" = "_OP" + 10, "_Fresh" = null where "_key" > 1000;
    update more_names set ".dot" = 'moved' where "_OP" % 5 = 0;
    update more_names set "a.b" = 'moved', "t" = null where ".dot" = 'moved';
    """,
    """
    truncate more_names; select fill(101, 110); update more_names set "_seq" = 'after' where "_OP" < 105;
    """,
)
TABLES = ("public.names", "public.more_names")


@pytest.mark.proof
def test_a_table_may_have_columns_called_like_ours_in_its_key_too(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    execute(database, SETUP)
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1, chunk_bytes_max=1 << 16)
    with running(settings, source_of(database), spark) as run:
        run.catch_up()
        # A session keeps the cut it read first: every later live read lays all changes over that.
        assert_live(database, run.lake, TABLES)
    for script, sizes in zip(ROUNDS, cycle([DIVIDED, TaskSizes()]), strict=False):
        with running(replace(settings, sizes=sizes), source_of(database), spark) as run:
            execute(database, script)
            run.catch_up()
            assert_published(database, run.lake, TABLES)
            assert_live(database, run.lake, TABLES)
    found = tailrace.cut(spark, settings.lake, published=True).sql(
        "select distinct _seq, `_metadata`, `a.b` from more_names where _op = 101 and _key = 101"
    )
    assert [row["_seq"] for row in found.collect()] == ["after"]


@pytest.mark.proof
def test_a_name_that_delta_needs_stops_its_table_until_it_is_renamed_and_one_it_cannot_add_means_a_new_copy(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    settings = ConnectorSettings(tmp_path / "lake", once=True)

    def synced_after(script: str) -> dict[str, TableState]:
        execute(database, script)
        return sync_once(settings, source_of(database), spark)

    states = synced_after("""
        create table later (id int primary key); insert into later select generate_series(1, 9);
        create table taken (id int primary key, "_Row_Id_" int); insert into taken values (1, 1);
    """)
    assert states == {"public.later": TableState.LIVE, "public.taken": TableState.ERRORED}
    assert "a name that Delta Lake uses itself" in reason(settings.lake, "taken")
    synced_after('delete from later where id < 3; alter table taken rename "_Row_Id_" to plain')
    states = synced_after("""
        alter table later add _metadata text, add "odd, name" int; insert into later values (1, 'mine', 1);
        update taken set id = 2;
    """)
    assert states == {"public.later": TableState.LIVE, "public.taken": TableState.LIVE}
    assert LakeHome(settings.lake).tables.load()[TableId("public", "later")].copy == 2
    synced_after('update later set _metadata = id, "odd, name" = id; delete from later where id = 5')
    assert_published(database, settings.lake, ("public.later", "public.taken"))


def reason(lake: Path, table: str) -> str:
    return LakeHome(lake).tables.load()[TableId("public", table)].reason or ""
