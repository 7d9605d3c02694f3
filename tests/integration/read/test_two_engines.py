"""A table of every lake type, published and live: Spark and DuckDB show and print the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests import journey
from tests.engines import assert_same_in_duckdb, compiled
from tests.integration.lake.equality import assert_live, execute
from tests.postgres import wait_until
from tests.running import Running, running

import tailrace
from tailrace.cli.lake.query import Format, QueryCommand, answer
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

EVERY = "public.every type"
SETUP = """
create table "every type" (
    id int primary key, yes boolean, small smallint, large bigint, "real" real, "double" float8, price numeric(12,3),
    huge numeric(38,0), note text, raw bytea, day date, local timestamp, at timestamptz, "it's ""odd"".`x`" text
);
insert into "every type" values
    (1, true, 1, 3, 'NaN', '-0', 1.234, 12345678901234567890123456789012345678, 'x', '\\x00ff', '0001-01-01',
     '0001-01-01', '0001-01-01 00:00:00+00', 'a'),
    (2, false, -32768, -9223372036854775808, '-0', 'NaN', -0.001, -5, '', '', '9999-12-31',
     '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', ''),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null);
insert into "every type" (id) values (4);
create table floats (k float8, g int, big text, primary key (k, g));
alter table floats alter big set storage external;
insert into floats select v::float8, n, repeat(md5(v), 200)
    from unnest(array['-0', 'NaN', '1.5', 'Infinity']) v, generate_series(1, 2) n;
"""
CHANGES = """
update "every type" set yes = true, "real" = 'Infinity', price = 7, raw = '\\x01', day = '1582-10-10', note = 'ünï [x]',
    local = '2024-03-31 02:30:00.123456', at = '2024-03-31 02:30:00.123456+02' where id = 4;
insert into "every type" (id, note) values (5, E'two\\nlines, and "more"');
update floats set k = '0' where k = '-0' and g = 1;
update floats set g = 20 where k = 'NaN' and g = 1;
delete from floats where k = 'NaN' and g = 2;
insert into floats values ('NaN', 1, 'new');
"""
ALL_ROWS = "select * from {every} order by id"
OTHERS = (
    "select count(*) as n, sum(large) as total, max(local) as latest from {every}",
    "select a.id, b.id as other from {every} a join {every} b on a.id = b.id order by 1",
    "select g from floats where k = 0 order by g",
    "select g from public.floats where k > 1000 order by g",
)


@pytest.fixture
def copy(database: str, tmp_path: Path, spark: SparkSession) -> Iterator[Running]:
    """A lake with changes that are not published."""
    execute(database, SETUP)
    settings = ConnectorSettings(tmp_path / "a lake's [folder]", publish_every_seconds=3600)
    with running(settings, source_of(database), spark) as run, compiled(spark):
        run.catch_up()
        execute(database, CHANGES)
        run.wait_for_live_reads()
        yield run


def test_both_engines_show_and_print_the_same_and_duckdb_does_it_without_spark(
    database: str, copy: Running, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_live(database, copy.lake, [EVERY, "public.floats"], spark)
    assert_same_in_duckdb(
        tailrace.cut(spark, copy.lake, published=True), copy.lake, [EVERY, "public.floats"], published=True
    )
    found = tailrace.arrow(copy.lake, "every type")
    assert found.schema == tailrace.cut(spark, copy.lake).tables[EVERY].toArrow().schema
    asked = [(ALL_ROWS, style) for style in Format] + [(sql, Format.JSON) for sql in OTHERS]
    with connect() as connection:
        for sql, style in asked:
            shown = []
            for name, session in (("`every type`", spark), ('"every type"', connection)):
                query = QueryCommand(copy.lake, sql.format(every=name), session is spark, style)
                answer(query, query.cut(session))
                shown.append(capsys.readouterr())
            assert shown[0] == shown[1], sql
    assert_answered_from_the_shell(copy.lake, tmp_path / "home")
    assert_followed(database, copy.lake)
    assert_interrupted(copy.lake, tmp_path / "begun.csv")


def assert_answered_from_the_shell(lake: Path, home: Path) -> None:
    """In a home that is not there, without Java, and without Spark's modules."""
    variables = {"HOME": str(home), "JAVA_HOME": str(home), "PYTHONPROFILEIMPORTTIME": "1"}
    done = journey.run("query", str(lake), 'select id, price from "every type" where id = 4', "--csv", **variables)
    assert (done.returncode, done.stdout.split()) == (0, ["id,price", "4,7.000"]), done.stderr
    imported = set(re.findall(r"\| +(\S+)$", done.stderr, re.MULTILINE))
    assert "tailrace.read.duckdb" in imported
    assert imported.isdisjoint({"pyspark", "delta", "py4j", "pandas.core"})
    assert not home.exists()


def assert_followed(database: str, lake: Path) -> None:
    """An answer for every new cut, until Ctrl-C."""
    process = journey.start("query", str(lake), 'select count(*) as n from "every type"', "--follow", "--csv")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "n\n"
        for rows in (5, 6, 7):
            assert process.stdout.readline() == f"{rows}\n"
            assert process.stderr.readline().startswith("cut "), "one line for each result"
            execute(database, f'insert into "every type" (id) values ({rows + 1})')
        assert journey.interrupt(process)[0] == 0
    finally:
        process.kill()


def assert_interrupted(lake: Path, begun: Path) -> None:
    """Ctrl-C ends a query that would take hours."""
    long = "select count(*) from range(100000000000000) where range % 7 = 1"
    process = journey.start("query", str(lake), f"copy (select 1) to '{begun}'; {long}")
    try:
        wait_until(begun.exists, 60)
        code, output, errors = journey.interrupt(process, 30)
        assert (code, output, errors) == (130, "", "interrupted\n")
    finally:
        process.kill()
