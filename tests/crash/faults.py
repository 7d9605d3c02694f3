"""`python -m tests.crash.faults DSN LAKE FOLDER VICTIM TIMES STEP... [--table NAME --master URL --conf NAME=VALUE...]`:
steps of a lake's life in one Spark session, in each of which the engine meets a fault. FOLDER has a file for each time.

    copy      the first copy of three tables
    publish   changes to all of them, too large for a task
    small     changes to two of them, together in a task
    read      a table that is added: its rows are read by windows
    write     and written
    merge     small files of a table become one
    verify    every row is compared
    sync      what is left to do, without a fault
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import psycopg
from tests.doors.faulty import Fault, FaultyEngine, Victim
from tests.running import sync_once

from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named
from tailrace.settings import ConnectorSettings, SparkSettings, TaskSizes, VerifySettings
from tailrace.source.kinds import source_of
from tailrace.verify.verification import Verification

JOBS = {
    "copy": "copy",
    "publish": "publish",
    "small": "publish",
    "read": "read rows",
    "write": "write rows",
    "merge": "write files",
    "verify": "verify",
    "sync": "nothing",
}
"""What the jobs of a step are called, from the first letter on."""
SIZES = TaskSizes(read_bytes=64 << 10, fold_bytes=256 << 10, window_bytes=1 << 20)
SMALL_COMMITS = 9
STATEMENTS = {
    "copy": """
        create table a (id int primary key, v text);
        insert into a select n, repeat('a', 100) from generate_series(1, 20000) n;
        create table b (id int, v text);
        alter table b replica identity full;
        insert into b select n % 10, 'b' from generate_series(1, 100) n;
        create table c (id int primary key, v text);
        insert into c select n, 'c' from generate_series(1, 1000) n
    """,
    "publish": """
        begin;
        update a set v = v || '.' where id % 2 = 0;
        delete from b where ctid in (select min(ctid) from b group by id);
        insert into c select n, 'new' from generate_series(1001, 1010) n;
        commit
    """,
    "small": "begin; insert into b values (77, 'small'); update c set v = 'small' where id < 4; commit",
    "read": "create table d (id int primary key, v text); insert into d select n, 'd' from generate_series(1, 9000) n",
    "write": "create table e (id int primary key, v text); insert into e select n, 'e' from generate_series(1, 9000) n",
}


def main(arguments: argparse.Namespace) -> None:
    lake, victim = Path(arguments.lake), Victim(arguments.victim)
    conf = tuple(tuple(each.split("=", 1)) for each in arguments.conf)
    spark = SparkSettings(arguments.master, conf)
    started = LazySession(lambda: session(format_named("delta"), settings=spark, lake=lake), master=spark.master)
    told = {}
    with SparkEngine(started) as engine:
        for step in arguments.steps:
            place = Path(arguments.folder)
            fault = Fault(victim, JOBS[step], place, arguments.times, os.getpid(), arguments.table)
            told[step] = run(step, arguments.dsn, lake, spark, FaultyEngine(engine, fault))
    print(json.dumps(told))


def run(step: str, dsn: str, lake: Path, spark: SparkSettings, engine: FaultyEngine) -> object:
    """What a person would be told: the tables' states, or whether they are equal."""
    if step == "verify":
        settings = VerifySettings(lake, spark=spark, sizes=SIZES)
        return Verification(settings, source_of(dsn), engine, lambda event: None).run().is_equal
    if step == "merge":
        for number in range(SMALL_COMMITS):
            execute(dsn, f"insert into c select -{number} * 10 - n, 'later' from generate_series(1, 10) n")
            sync(dsn, lake, spark, engine)
    elif step in STATEMENTS:
        execute(dsn, STATEMENTS[step])
    return sync(dsn, lake, spark, engine)


def sync(dsn: str, lake: Path, spark: SparkSettings, engine: FaultyEngine) -> dict[str, str]:
    settings = ConnectorSettings(lake, once=True, spark=spark, sizes=SIZES)
    return {table: str(state) for table, state in sync_once(settings, source_of(dsn), engine).items()}


def execute(dsn: str, statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statements)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("dsn", "lake", "folder", "victim"):
        parser.add_argument(name)
    parser.add_argument("times", type=int)
    parser.add_argument("steps", nargs="+")
    parser.add_argument("--table")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", nargs="*", default=[])
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
