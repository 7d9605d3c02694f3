"""Every commit of a source read back from its lake, whatever statements came between: what the source showed, or a
definite error. Never a state that the source never had."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo.embedded import EmbeddedPostgres
from pyspark.sql import SparkSession
from tests.integration.read.as_of_reading import REFUSED, WRONG, Judge, Read, read_commit, read_live
from tests.integration.read.as_of_record import Recorder, State, parse_lsn
from tests.integration.read.as_of_trials import (
    ALL,
    SLICE,
    Scenario,
    run_killed,
    run_running,
    run_stopped,
    settle,
)
from tests.journey import run as run_command
from tests.postgres import wait_until
from tests.running import running, sync_once

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.kinds import source_of

WAYS = {"running": run_running, "stopped": run_stopped, "killed": run_killed}
CASES = [
    pytest.param("running", SLICE[::2], 0, id="running"),
    pytest.param("stopped", SLICE, 1, id="stopped"),
    pytest.param("killed", SLICE[1::2], 2, id="killed"),
]
PROOF = [pytest.param(way, turn, id=f"{way} {turn}") for way in WAYS for turn in range(2)]
IN_SPARK = ("add with a default", "rename label", "drop and create alike", "rename")


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.2, look_at_tables_seconds=0.5)


def assert_right(scenario: Scenario, judge: Judge, said: str) -> None:
    report = scenario.report(judge, said)
    print(report)
    assert [str(each) for each in judge.of(WRONG)[:10]] == [], report
    assert [str(each) for each in scenario.needless(judge)[:10]] == [], report


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("way", "names", "turn"), CASES)
def test_commits_around_statements_are_read_back_as_the_source_showed_them_or_refused(
    postgres: EmbeddedPostgres,
    database: str,
    settings: ConnectorSettings,
    way: str,
    names: tuple[str, ...],
    turn: int,
) -> None:
    scenario = Scenario.make(postgres, database, settings, names, turn)
    judge = WAYS[way](scenario)
    with closing(connect(is_private=True)) as connection:
        scenario.read_back(judge, connection)
    assert_right(scenario, judge, f"{way}, DuckDB")


@pytest.mark.timeout(900)
def test_spark_reads_commits_around_statements_back_as_the_source_showed_them_or_refuses(
    postgres: EmbeddedPostgres, database: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    scenario = Scenario.make(postgres, database, settings, IN_SPARK, 0)
    judge = run_stopped(scenario)
    scenario.read_back(judge, spark, every=4)
    assert_right(scenario, judge, "stopped, Spark")


@pytest.mark.proof
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("way", "turn"), PROOF)
def test_every_commit_around_every_statement_is_read_back_in_both_engines_or_refused(
    postgres: EmbeddedPostgres,
    database: str,
    settings: ConnectorSettings,
    spark: SparkSession,
    way: str,
    turn: int,
) -> None:
    scenario = Scenario.make(postgres, database, settings, tuple(ALL), turn)
    judge = WAYS[way](scenario)
    with closing(connect(is_private=True)) as connection:
        scenario.read_back(judge, connection)
    in_spark = scenario.judge()
    scenario.read_back(in_spark, spark)
    print(scenario.report(in_spark, f"{way}, Spark"))
    assert_right(scenario, judge, f"{way}, DuckDB")
    assert_right(scenario, in_spark, f"{way}, Spark")


def test_after_a_repaired_gap_no_commit_shows_what_came_later(database: str, settings: ConnectorSettings) -> None:
    """The repair has no commit of its own in the log; its cut must not pass for the last one before the gap."""
    recorder, once = Recorder(database), replace(settings, once=True)
    with recorder.connect("gap") as conn:
        made = "create schema gap; create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)"
        recorder.commit(conn, "gap", made)
        sync_once(once, source_of(database))
        for number in (3, 4):
            recorder.commit(conn, "gap", f"insert into t values ({number}, {number})")
        sync_once(once, source_of(database))
        recorder.commit(conn, "gap", "delete from t where id = 1")
        recorder.commit(conn, "gap", "insert into t values (5, 5)")
        record = LakeHome(settings.lake).source()
        assert record is not None
        conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [record.claim["slot"]])
        reads: list[Read] = []
        with closing(connect(is_private=True)) as connection:
            for change in ("select", "update t set v = 100 where id = 2", "insert into t values (6, 6)"):
                recorder.commit(conn, "gap", change)
                # The server's log grows without a commit: a repair lies between two then.
                conn.execute("checkpoint")
                needed = replace(once, snapshot_mode=SnapshotMode.WHEN_NEEDED)
                assert sync_once(needed, source_of(database)) == {"gap.t": TableState.LIVE}
                live = read_live(connection, settings.lake, ["gap.t"])
                assert [each.shown for each in live] == [recorder.newest("gap.t")]
                for commit in recorder.commits:
                    reads += read_commit(connection, settings.lake, commit, ["gap.t"])
                reads += live
    judge = Judge(recorder, settings.lake)
    judge.take(reads)
    print(f"as of: gap: {dict(judge.count())}")
    assert [str(each) for each in judge.of(WRONG)] == []
    last = [each for each in judge.of(REFUSED) if each.read.wanted is recorder.commits[-1]]
    assert [str(each) for each in last] == []


STATEMENTS = (
    "insert into t values (3, 3)",
    "alter table t add d int default 5",
    "insert into t values (4, 4)",
    "update t set v = v + 1",
    "drop table t; create table t (id int primary key, v int, d int); insert into t values (1, 10, 10)",
    "insert into t values (2, 20, 20)",
)
CUT = re.compile(r"cut ([0-9A-F]+/[0-9A-F]+), transaction ([\d,]+), committed")


def test_the_command_line_shows_what_the_source_showed_or_refuses(database: str, settings: ConnectorSettings) -> None:
    """`query --follow` while it happens, and `query --as-of` for every other commit afterwards."""
    recorder, lake = Recorder(database), settings.lake
    with recorder.connect("shop") as conn, running(settings, source_of(database)) as run:
        made = "create schema shop; create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)"
        recorder.commit(conn, "shop", made)
        run.wait_for_state("shop.t", TableState.LIVE)
        first = recorder.commit(conn, "shop", "update t set v = 7 where id = 1")
        settle(run)
        with following(lake, "select * from shop.t") as shown:
            wait_until(lambda: shown)
            for statement in STATEMENTS:
                recorder.commit(conn, "shop", statement)
                run.wait_for_log()
            settle(run)
        recorder.commit(conn, "shop", "insert into t values (9, 9, 9)")
        settle(run)
    judge = Judge(recorder, lake)
    judge.take(shown)
    for commit in (*recorder.commits[first.number :: 2], recorder.commits[-1]):
        found = run_command("query", str(lake), "select * from shop.t", "--as-of", commit.text, "--json")
        judge.take([_printed(found.stdout.splitlines(), found.stderr, commit)])
    print(f"as of: command line: {dict(judge.count())}")
    assert [str(each) for each in judge.of(WRONG)] == []
    refused = {each.read.wanted.number for each in judge.of(REFUSED) if each.read.wanted}
    assert refused & {first.number, recorder.commits[-1].number} == set()


def _printed(rows: list[str], told: str, wanted: Any = None) -> Read:
    """What a command printed, as a read."""
    cut = CUT.search(told)
    if cut is None:
        assert told.startswith("error: "), told
        return Read("shop.t", DefiniteError(told, None), wanted)
    found = [json.loads(row) for row in rows]
    texts = [[None if value is None else str(value) for value in row.values()] for row in found]
    return Read("shop.t", State.of(list(found[0]), texts), wanted, int(cut[2].replace(",", "")), parse_lsn(cut[1]))


@contextmanager
def following(lake: Path, query: str) -> Iterator[list[Read]]:
    """What `query --follow` prints inside the `with`, cut by cut. It ends by itself where a table is refused."""
    command = [sys.executable, "-m", "tailrace.cli.main", "query", str(lake), query, "--json", "--follow"]
    variables = os.environ | {"COLUMNS": "200"}
    pipe = subprocess.PIPE
    reads: list[Read] = []

    def hear() -> None:
        assert process.stdout is not None
        rows: list[str] = []
        for line in process.stdout:
            if line.startswith("{"):
                rows.append(line)
            elif CUT.search(line):
                reads.append(_printed(rows, line))
                rows = []

    process = subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=variables)
    with process, ThreadPoolExecutor(1) as pool:
        heard = pool.submit(hear)
        try:
            yield reads
        finally:
            process.send_signal(signal.SIGINT)
            heard.result()
