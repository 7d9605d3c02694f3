"""Keys that are equal and look different, in every kind of type that has such: the lake is the source all the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_live, assert_published, execute
from tests.running import DIVIDED, running

from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.kinds import source_of

FORMS = {
    "doubles": ("float8", "default", "'-0'", "'0'"),
    "floats": ("float4", "full", "'-0'", "'0'"),
    "numerics": ("numeric", "full", "1.0", "1.00"),
    "padded": ("bpchar", "default", "'a'", "'a '"),
}
"""A type, a replica identity, and two values that Postgres takes for one key."""
SETUP = """
    create table {table} (k {type}, g int, v int, big text, primary key (k, g));
    alter table {table} replica identity {identity};
    alter table {table} alter big set storage external;
    insert into {table} select {one}, n, n, repeat(md5(n::text), 200) from generate_series(1, 4) n;
"""
ROUNDS = (
    """
    -- the other form, with a large value left out
    update {table} set k = {other}, v = -v where g = 1;
    -- a key that is gone and comes back in the other form
    delete from {table} where g = 2; insert into {table} values ({other}, 2, 1, 'back');
    -- a new key in one form and then in the other
    insert into {table} values ({one}, 5, 1, 'new'); update {table} set k = {other} where g = 5;
    update {table} set v = 0 where g = 5; delete from {table} where g = 4;
    """,
    """
    -- a row that moves away in the other form, and one that takes its place
    update {table} set g = 10, k = {other} where g = 3;
    insert into {table} values ({other}, 3, 5, 'place'); update {table} set k = {one} where g = 3;
    -- a row that comes and goes
    insert into {table} values ({one}, 4, 1, 'b'); update {table} set k = {other} where g = 4;
    delete from {table} where g = 4;
    """,
)
WITH_NAN = ("doubles", "floats")
NAN_SETUP = "insert into {table} select 'NaN', n, n, repeat(md5(n::text), 200) from generate_series(20, 22) n;"
NAN_ROUNDS = (
    """
    update {table} set v = v + 1 where k = 'NaN';
    delete from {table} where g = 22; insert into {table} values ('NaN', 22, 7, 'back');
    """,
    "update {table} set k = 1 where g = 20; update {table} set g = 121 where g = 21; delete from {table} where g = 22;",
)


def for_all_tables(script: str, nan_script: str) -> str:
    names = ("type", "identity", "one", "other")
    filled = [script.format(table=table, **dict(zip(names, form, strict=True))) for table, form in FORMS.items()]
    return "".join(filled + [nan_script.format(table=table) for table in WITH_NAN])


@pytest.mark.proof
def test_a_key_is_the_same_key_where_postgres_says_so(database: str, tmp_path: Path, spark: SparkSession) -> None:
    tables = [f"public.{table}" for table in FORMS]
    execute(database, for_all_tables(SETUP, NAN_SETUP))
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1)
    with running(settings, source_of(database), spark) as run:
        run.catch_up()
        assert_live(database, run.lake, tables)
    for *scripts, sizes in zip(ROUNDS, NAN_ROUNDS, cycle([DIVIDED, TaskSizes()]), strict=False):
        with running(replace(settings, sizes=sizes), source_of(database), spark) as run:
            execute(database, for_all_tables(*scripts))
            run.catch_up()
            assert_published(database, run.lake, tables)
            assert_live(database, run.lake, tables, spark)
