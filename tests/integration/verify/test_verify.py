"""A lake compared with its Postgres, on real parts: no false alarm, and nothing that differs is missed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.errors import DeadlockDetected
from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread
from tests.running import running, sync_once
from tests.verifying import verify
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes, VerifySettings
from tailrace.source.kinds import source_of
from tailrace.verify.catch_up import LakeCatchUp
from tailrace.verify.report import LakeReport, RowDifference, TableVerdict
from tailrace.verify.verification import Verification

EVERY_TYPE = """
create type mood as enum ('sad', 'ok');
create table every_type (
  id int primary key, b boolean, s smallint, i bigint, f real, d float8, n numeric(38,10), free numeric, t text,
  c char(5), by bytea, da date, ti time, ts timestamp, tt timestamptz, iv interval, u uuid, j jsonb, m mood, a int[]);
insert into every_type values (1);
insert into every_type values (2, true, -32768, -9223372036854775808, '-0', 'NaN',
  '9999999999999999999999999999.0123456789', '1e-30', E'line\\nbreak "\\t', 'ab', '\\x00ff', '0001-01-01', '24:00:00',
  '0001-01-01', '9999-12-31 23:59:59.999999+00', '-1 year 2 mons', gen_random_uuid(), '{"b": [null]}', 'ok',
  '{1,null}'), (3, false, 0, 0, '0', '-Infinity', 0, 'NaN', '', '', '', '9999-12-31', '0:0', '1970-01-01',
  '1970-01-01+00', '0', null, 'null', 'sad', '{}');
"""
TABLES = """
create table notes (id int primary key, v text);
insert into notes select n, 'text ' || n from generate_series(1, 500) n;
create schema odd;
create table odd."ta.b[le]" ("k ` 1" text, "k 2" timestamptz, v float8, primary key ("k ` 1", "k 2"));
insert into odd."ta.b[le]"
  select 'a' || n, '2024-01-01+00'::timestamptz + n * interval '1 hour', n from generate_series(1, 50) n;
create table keyless (v text);
"""


def execute(dsn: str, script: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


def verdicts(report: LakeReport) -> dict[str, TableVerdict]:
    return {str(each.table): each.verdict for each in report.tables}


@pytest.mark.timeout(400)
def test_an_equal_lake_is_equal_and_each_change_made_in_it_by_others_is_found_by_its_key(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    execute(database, EVERY_TYPE + TABLES)
    sync_once(ConnectorSettings(lake, once=True), source_of(database), spark)
    # The lake is behind, and no sync runs.
    execute(database, "create table later (id int primary key); update notes set v = v || '!' where id % 7 = 0")
    equal = {
        "public.every_type": TableVerdict.EQUAL,
        "public.notes": TableVerdict.EQUAL,
        'odd."ta.b[le]"': TableVerdict.EQUAL,
    }
    for engine in (None, spark):
        report = verify(database, lake, engine)
        assert verdicts(report) == {**equal, "public.keyless": TableVerdict.NOT_COMPARED}
    assert [each.reason for each in report.tables if "no primary key" in (each.reason or "")] != []
    assert not report.is_equal

    places = (
        Path(LakeHome(lake).place_of(TableId(*name)).address) for name in (("public", "notes"), ("odd", "ta.b[le]"))
    )
    notes, odd = (f"delta.`{place}`" for place in places)
    for statement in (
        f"update {notes} set v = 'tExt 11' where id = 11",
        f"delete from {notes} where id = 22",
        f"insert into {notes} values (999, 'text 999')",
        f"insert into {notes} select * from {notes} where id = 33",
        f"update {odd} set v = -0.0 where `k 2` = '2024-01-01 01:00:00'",
    ):
        spark.sql(statement)
    whole, divided = (verify(database, lake, engine, "notes", "ta*").tables for engine in (None, spark))
    assert whole == divided
    found = {str(each.table): each for each in whole}
    assert set(found) == {"public.notes", 'odd."ta.b[le]"'}
    assert [(each.key, each.difference, each.columns) for each in found["public.notes"].keys] == [
        ({"id": "11"}, RowDifference.CHANGED, ("v",)),
        ({"id": "22"}, RowDifference.MISSING, ()),
        ({"id": "33"}, RowDifference.EXTRA, ()),
        ({"id": "999"}, RowDifference.EXTRA, ()),
    ]
    assert found["public.notes"].differing == {
        RowDifference.CHANGED: 1,
        RowDifference.MISSING: 1,
        RowDifference.EXTRA: 2,
    }
    assert [(each.key, each.columns) for each in found['odd."ta.b[le]"'].keys] == [
        ({"k ` 1": "a1", "k 2": "2024-01-01 01:00:00"}, ("v",))
    ]
    flip_a_bit(lake / "public" / "every_type")
    for engine in (None, spark):
        (flipped,) = verify(database, lake, engine, "every_type").tables
        assert flipped.verdict in (TableVerdict.DIFFERENT, TableVerdict.NOT_COMPARED), flipped


def flip_a_bit(table: Path) -> None:
    """Of a value of the fourth column, in the table's only file. Spark does not look at checksums of pages."""
    (path,) = table.glob("*.parquet")
    column = pq.read_metadata(path).row_group(0).column(3)
    content = bytearray(path.read_bytes())
    assert not column.has_dictionary_page, "the values themselves end the column"
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)


def test_what_cannot_be_compared_says_why_and_the_command_exits_with_1_or_2(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    names = ("changed", "dropped", "equal", "retyped", "widened")
    execute(database, "".join(f"create table {name} (id int primary key, v int);" for name in names))
    execute(database, "".join(f"insert into {name} select n, n from generate_series(1, 30) n;" for name in names))
    settings = ConnectorSettings(lake, publish_every_seconds=0.5, look_at_tables_seconds=3600)
    # The sync that runs looks at tables only before it publishes: here, never.
    with running(settings, source_of(database), spark) as run:
        run.catch_up()
        execute(database, "alter table retyped alter v type bigint; alter table widened add w int; drop table dropped")
        spark.sql(f"alter table delta.`{lake / 'public' / 'changed'}` add columns (w int)")
        report = verify(database, lake)
        assert [(str(each.table), each.verdict, each.reason) for each in report.tables] == [
            ("public.changed", TableVerdict.SHAPE_DIFFERS, "column w is in the lake only"),
            ("public.dropped", TableVerdict.NOT_COMPARED, "it is gone from the source"),
            ("public.equal", TableVerdict.EQUAL, None),
            ("public.retyped", TableVerdict.NOT_COMPARED, report.tables[3].reason),
            ("public.widened", TableVerdict.NOT_COMPARED, "its columns changed, and the lake has not followed yet"),
        ]
        assert "bigint" in str(report.tables[3].reason)
        with pytest.raises(DefiniteError, match="no table of the lake matches 'equals'"):
            verify(database, lake, None, "equals")
        spark.sql(f"update delta.`{lake / 'public' / 'equal'}` set v = 0 where id > 27")
        shown = CliRunner().invoke(app, ["verify", database, str(lake), "--table", "equal", "--keys", "2", "--json"])
    assert shown.exit_code == 1, shown.output
    table = json.loads(shown.stdout)["tables"][0]
    assert table["differing"] == {"missing": 0, "extra": 0, "changed": 3}
    assert [each["key"] for each in table["keys"]] == [{"id": "28"}, {"id": "29"}]
    wrong = CliRunner().invoke(app, ["verify", database, str(tmp_path / "no lake")])
    assert wrong.exit_code == 2


def test_what_sync_was_told_and_verify_was_not_stays_as_it_is_at_the_source(
    database: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    execute(
        database,
        "create table orders (id int primary key); insert into orders values (1);"
        "create table signals (id text primary key, type text, data text)",
    )
    follows = ConnectorSettings(lake, once=True, signal_table="public.signals")
    sync_once(follows, source_of(database, signal_table="public.signals"), spark)
    with psycopg.connect(database, autocommit=True) as conn:
        query = "select prrelid::regclass::text, xmin::text from pg_publication_rel order by 1"
        sent = conn.execute(query).fetchall()
        conn.execute("insert into orders values (2); insert into signals values ('s', 'log', '{}')")
        engine = SparkEngine(LazySession(lambda: spark, spark))
        settings = VerifySettings(lake)
        catching_up = LakeCatchUp(LakeHome.find(lake), source_of(database), engine, lambda event: None, settings)
        catching_up.to_the_present()
        assert conn.execute(query).fetchall() == sent
    assert [name for name, _ in sent] == ["orders", "signals"]
    log = LogReader(LakeHome(lake).log)
    assert len(log.relations(0, log.head.seq)) == 2, "both tables' changes have come"


@pytest.mark.parametrize(
    ("sizes", "divided"),
    [
        (TaskSizes(), set()),
        (TaskSizes(compare_bytes=16 << 10), {"verify public.packed", "verify public.parts"}),
        (TaskSizes(compare_bytes=2 << 20, decoded_bytes_max=256 << 10), {"verify public.packed"}),
    ],
    ids=["whole", "divided", "turns out to be large"],
)
def test_what_is_large_is_divided_also_where_that_turns_out_while_it_is_read(
    database: str, tmp_path: Path, sizes: TaskSizes, divided: set[str]
) -> None:
    """Values that repeat take little room at the source, and much in memory."""
    execute(
        database,
        "create table packed (id int primary key, v text);"
        "insert into packed select n, repeat('text', 20000) || n from generate_series(1, 40) n;"
        "create table parts (id int, part int, primary key (id, part)) partition by list (part);"
        + "".join(f"create table part{n} partition of parts for values in ({n});" for n in range(12))
        + "insert into parts select n, n % 12 from generate_series(1, 50) n",
    )
    lake, engine = tmp_path / "lake", OneThread(travels=True)
    sync_once(ConnectorSettings(lake, once=True), source_of(database))
    report = Verification(VerifySettings(lake, sizes=sizes), source_of(database), engine, lambda event: None).run()
    assert {str(each.table): (each.verdict, each.source_rows) for each in report.tables} == {
        "public.packed": (TableVerdict.EQUAL, 40),
        "public.parts": (TableVerdict.EQUAL, 50),
    }
    assert {job.description for job in engine.jobs if job.description.startswith("verify public")} == divided


def test_spark_is_not_started_where_nothing_can_be_compared(database: str, tmp_path: Path) -> None:
    execute(database, "create table keyless (v text)")
    lake, engine = tmp_path / "lake", OneThread(travels=True)
    with suppress(DefiniteError):
        sync_once(ConnectorSettings(lake, once=True), source_of(database))
    report = Verification(VerifySettings(lake), source_of(database), engine, lambda event: None).run()
    assert [each.verdict for each in report.tables] == [TableVerdict.NOT_COMPARED]
    assert not [job for job in engine.jobs if "verify" in job.description]


@pytest.mark.timeout(400)
def test_writers_and_a_running_sync_cause_no_false_alarm(database: str, tmp_path: Path, spark: SparkSession) -> None:
    execute(
        database,
        """
        create table accounts (id int primary key, balance int, big text);
        alter table accounts alter big set storage external;
        insert into accounts select n, 100, repeat(md5(n::text), 100) from generate_series(1, 300) n;
        create table transfers (id bigserial primary key, one int, other int, amount int);
        """,
    )
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.5)
    with running(settings, source_of(database), spark) as run, _writers(database, 2) as committed:
        run.wait_for_state("public.transfers", TableState.LIVE)
        found = []
        for engine in (None, spark, None):
            before = committed()
            found.append(verify(database, settings.lake, engine))
            assert committed() > before
    assert [verdicts(each) for each in found] == [
        {"public.accounts": TableVerdict.EQUAL, "public.transfers": TableVerdict.EQUAL}
    ] * len(found)
    positions = [each.seq for each in found]
    assert positions == sorted(set(positions))


@contextmanager
def _writers(dsn: str, count: int) -> Iterator[Callable[[], int]]:
    """Transactions over both tables, with rows that move to another key; says how many were committed."""
    stop = threading.Event()
    done = [0] * count

    def write(number: int) -> None:
        chance = random.Random(number)
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stop.wait(0.01):  # As fast as a busy shop, not as fast as it can.
                one, other = chance.sample(range(1, 301), 2)
                with suppress(DeadlockDetected), conn.transaction():
                    conn.execute("update accounts set balance = balance - 1 where id = %s", [one])
                    conn.execute("insert into transfers (one, other, amount) values (%s, %s, 1)", [one, other])
                    conn.execute("update accounts set balance = balance + 1 where id = %s", [other])
                    conn.execute("delete from transfers where id %% 5 = %s and id < 50", [chance.randrange(5)])
                    conn.execute("update accounts set id = 1000 - id where id in (%s, %s)", [other, 1000 - other])
                    done[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(done)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
