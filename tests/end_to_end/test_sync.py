"""`tailrace sync` run after run: new tables join, tables made anew or not sent for a while are copied anew."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from pyspark.sql import SparkSession
from tests.journey import cuts, run


def equal(dsn: str, spark: SparkSession, lake: Path, *tables: str) -> None:
    assert [table for table in compare(dsn, spark, lake, tables) if not table.equal] == []


def execute(dsn: str, script: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


@pytest.mark.timeout(600)
def test_a_second_run_takes_in_new_tables_and_tables_made_anew_and_drop_leaves_nothing_in_the_database(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    execute(
        database,
        """
        create table first (id int primary key, v text);
        insert into first select n, 'v' || n from generate_series(1, 1000) n;
        create table anew (id int primary key, v text);
        insert into anew select n, 'old' from generate_series(1, 50) n;
        """,
    )
    once = ("sync", database, str(lake), "--once")
    assert run(*once, "--tables", "public.first", "--tables", "public.anew").returncode == 0
    equal(database, spark, lake, "public.first", "public.anew")
    execute(
        database,
        """
        update first set v = 'streamed' where id % 3 = 0;
        do $$ begin
          execute format('alter publication %I drop table first', (select pubname from pg_publication));
        end $$;
        update first set v = 'not sent' where id % 2 = 0;
        delete from first where id % 5 = 0;
        delete from anew where id > 10;
        drop table anew;
        create table anew (id int primary key, n numeric(8,2));
        insert into anew values (1, 1.5);
        create table parts (id int, region text, primary key (id, region)) partition by list (region);
        create table parts_eu partition of parts for values in ('eu');
        create table parts_rest partition of parts default;
        insert into parts select n, case when n % 2 = 0 then 'eu' else 'us' end from generate_series(1, 100) n;
        """,
    )
    assert run(*once).returncode == 0
    equal(database, spark, lake, "public.first", "public.anew", "public.parts")
    execute(database, "delete from parts where id < 10; update parts set region = 'asia' where id > 90")
    execute(database, "update first set v = 'streamed again' where id < 100")
    assert run(*once).returncode == 0
    equal(database, spark, lake, "public.first", "public.anew", "public.parts")
    count = len(cuts(lake).all())
    assert run(*once).returncode == 0, "an idle database is caught up with at once"
    assert len(cuts(lake).all()) == count

    shown = run("query", str(lake), "select count(*) as n from public.parts p join first on first.id = p.id", "--csv")
    assert shown.stdout.split() == ["n", "72"], shown
    wrong = run("query", str(lake), "select * from public.thrid")
    assert wrong.returncode == 2
    assert "public.first" in wrong.stderr
    assert "Traceback" not in wrong.stderr

    assert run("drop", database, str(lake), "--yes").returncode == 0
    with psycopg.connect(database) as conn:
        assert conn.execute("select count(*) from pg_publication").fetchone() == (0,)
        slots = "select count(*) from pg_replication_slots where database = current_database()"
        assert conn.execute(slots).fetchone() == (0,)
    gone = run(*once)
    assert gone.returncode == 2
    assert "is gone" in gone.stderr
