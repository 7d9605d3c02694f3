"""The whole connector on a source that plays a script and a lake of plain Parquet files: the doors are doors."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.doors.parquet_lake import interfere_once
from tests.doors.script import Alter, Delete, Insert, Script, Truncate, Update
from tests.doors.scripted import ScriptedSource
from tests.engines import rows_in_both, rows_in_duckdb
from tests.running import Running, running, sync_once
from tests.verifying import verify

import tailrace
from tailrace.connector.events import StateChanged
from tailrace.connector.signals.sender import send_resync
from tailrace.connector.status import lake_status
from tailrace.errors import DefiniteError
from tailrace.lake import formats
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS, LINES = "shop.orders", "shop.lines"
TABLES = (ORDERS, LINES)


@pytest.fixture(autouse=True)
def doors() -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint", "note": "string", "big": "string"}, key=["id"])
    script.create_table(LINES, {"id": "int", "at": "timestamp"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "new", "big": "x" * 100}) for n in range(1, 21)])
    return script


@pytest.fixture
def source(script: Script) -> ScriptedSource:
    return ScriptedSource(str(script.path))


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", format="parquet", publish_every_seconds=0.1, look_at_tables_seconds=0.2)


@pytest.fixture
def copy(settings: ConnectorSettings, source: ScriptedSource) -> Iterator[Running]:
    with running(settings, source) as run:
        run.catch_up()
        yield run


@pytest.fixture
def copy_by_spark(settings: ConnectorSettings, source: ScriptedSource, spark: SparkSession) -> Iterator[Running]:
    """Executors copy the table of many chunks."""
    with running(replace(settings, chunk_bytes_max=500), source, spark) as run:
        run.catch_up()
        yield run


def rows(lake: Path, table: str, spark: SparkSession | None = None, **options: Any) -> list[dict[str, Any]]:
    """As DuckDB shows them; with Spark given, as both do."""
    found = rows_in_duckdb(lake, table, **options) if spark is None else rows_in_both(spark, lake, table, **options)
    return sorted(found, key=lambda row: row["id"])


def assert_equal(lake: Path, script: Script, *tables: str, spark: SparkSession | None = None) -> None:
    """Published and live."""
    for table in tables or TABLES:
        wanted = sorted(script.state(table), key=lambda row: row["id"])
        assert rows(lake, table, spark, published=True) == wanted
        assert rows(lake, table, spark) == wanted


def test_snapshot_stream_cut_and_live_read_equal_the_script_an_empty_table_included(
    copy_by_spark: Running, script: Script, spark: SparkSession
) -> None:
    assert_equal(copy_by_spark.lake, script, spark=spark)
    script.transaction(
        [
            Insert(ORDERS, {"id": 21, "note": "more", "big": None}),
            Update(ORDERS, (1,), {"note": "paid"}, leave_out=["big"]),
            Update(ORDERS, (2,), {"id": 200}, leave_out=["big"]),
            Delete(ORDERS, (3,)),
            Insert(LINES, {"id": 1, "at": None}),
        ]
    )
    copy_by_spark.catch_up()
    assert_equal(copy_by_spark.lake, script, spark=spark)
    script.transaction([Truncate(ORDERS), Insert(ORDERS, {"id": 5, "note": "after", "big": None})])
    script.transaction([Alter(ORDERS, add={"extra": "int"}), Update(ORDERS, (5,), {"extra": 7})])
    copy_by_spark.catch_up()
    assert_equal(copy_by_spark.lake, script, spark=spark)


def test_a_lake_is_verified_through_the_doors_alone_at_the_very_commit_that_a_snapshot_shows(
    copy_by_spark: Running, source: ScriptedSource, script: Script, spark: SparkSession
) -> None:
    for table in TABLES:
        copy_by_spark.wait_for_state(table, TableState.LIVE)
    script.transaction([Insert(LINES, {"id": 1, "at": None}), Update(ORDERS, (2,), {"id": 200}, leave_out=["big"])])
    report = verify(source, copy_by_spark.lake, spark)
    counts = {str(each.table): (each.source_rows, each.lake_rows) for each in report.tables}
    assert counts == {LINES: (1, 1), ORDERS: (20, 20)}
    assert report.is_equal


def test_positions_stay_the_source_s_own_all_the_way_to_the_cut(copy: Running, script: Script) -> None:
    position = script.transaction([Insert(LINES, {"id": 1, "at": None})])
    copy.catch_up()
    with connect() as connection:
        cut = tailrace.cut(connection, copy.lake, register=False)
    assert (cut.position.ordinal, cut.position.detail) == (position.ordinal, position.detail)
    assert cut.position.detail
    assert cut.text == f"@{position.ordinal}"
    script.transaction([Delete(LINES, (1,))])
    copy.catch_up()
    assert rows(copy.lake, LINES, as_of=cut.text) == [{"id": 1, "at": None}]
    assert rows(copy.lake, LINES) == []


def test_a_stopped_connector_continues_and_a_second_run_without_a_change_adds_nothing(
    settings: ConnectorSettings, source: ScriptedSource, script: Script
) -> None:
    once = replace(settings, once=True)
    assert set(sync_once(once, source).values()) == {TableState.LIVE}
    script.transaction([Delete(ORDERS, (1,))])
    sync_once(once, source)
    cuts = LakeHome(settings.lake).cuts.all()
    sync_once(once, source)
    assert LakeHome(settings.lake).cuts.all() == cuts
    assert_equal(settings.lake, script)


def test_a_paused_connector_takes_nothing_and_publishes_nothing_until_it_is_resumed(
    copy: Running, script: Script
) -> None:
    copy.connector.pause()
    copy.wait_for(lambda: any(e == StateChanged("paused") for e in copy.events))  # type: ignore[arg-type]
    before = len(LakeHome(copy.lake).cuts.all())
    script.transaction([Delete(ORDERS, (1,))])
    assert len(LakeHome(copy.lake).cuts.all()) == before
    assert len(rows(copy.lake, ORDERS)) == 20
    copy.connector.resume()
    copy.catch_up()
    assert_equal(copy.lake, script)


def test_another_writer_s_change_meanwhile_is_no_trouble(copy: Running, script: Script) -> None:
    interfere_once(copy.lake / "shop" / "orders")
    script.transaction([Delete(ORDERS, (1,))])
    copy.catch_up()
    assert_equal(copy.lake, script)


def test_a_value_the_lake_cannot_hold_stops_its_table_only_until_it_is_copied_again(
    copy_by_spark: Running, script: Script, spark: SparkSession, settings: ConnectorSettings, source: ScriptedSource
) -> None:
    script.transaction([Insert(LINES, {"id": 1, "at": "infinity"}), Delete(ORDERS, (1,))])
    copy_by_spark.wait_for_state(LINES, TableState.ERRORED)
    script.transaction([Delete(ORDERS, (2,))])
    copy_by_spark.catch_up()
    assert_equal(copy_by_spark.lake, script, ORDERS, spark=spark)
    with pytest.raises(DefiniteError, match=r"table shop\.lines is errored: .*infinity") as caught:
        rows(copy_by_spark.lake, LINES, spark)
    assert "--as-of" in str(caught.value.hint)
    copy_by_spark.connector.stop()
    copy_by_spark.connector.wait()

    states = sync_once(replace(settings, once=True), source, spark)
    assert states == {ORDERS: TableState.LIVE, LINES: TableState.ERRORED}
    (lines,) = [each for each in lake_status(LakeHome.find(settings.lake)).tables if str(each.table) == LINES]
    assert lines.changes_behind == 1

    script.transaction([Delete(LINES, (1,)), Insert(LINES, {"id": 2, "at": None})])
    send_resync(settings.lake, TableId("shop", "lines"))
    assert set(sync_once(replace(settings, once=True), source, spark).values()) == {TableState.LIVE}
    assert_equal(settings.lake, script, spark=spark)


def test_columns_are_renamed_dropped_and_added_with_and_without_a_change_that_tells_of_it(
    settings: ConnectorSettings, source: ScriptedSource, script: Script
) -> None:
    once = replace(settings, once=True)
    sync_once(once, source)
    script.transaction([Update(ORDERS, (1,), {"note": "before"})])
    script.transaction([Alter(ORDERS, rename={"note": "remark"}), Update(ORDERS, (2,), {"remark": "after"})])
    script.alter(LINES, rename={"id": "line"}, drop=["at"], add={"n": "int"})
    assert set(sync_once(once, source).values()) == {TableState.LIVE}
    assert_equal(settings.lake, script)
    cuts = LakeHome(settings.lake).cuts.all()
    sync_once(once, source)
    assert LakeHome(settings.lake).cuts.all() == cuts
    assert {table.copy for table in cuts[-1].tables.values()} == {1}


def test_a_live_read_goes_no_further_than_a_table_that_has_yet_to_follow_or_to_be_copied(
    settings: ConnectorSettings, source: ScriptedSource, script: Script, spark: SparkSession
) -> None:
    with running(replace(settings, publish_every_seconds=3600, look_at_tables_seconds=3600), source, spark) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)
        altered = Alter(ORDERS, rename={"note": "remark"}, add={"n": "int"})
        before = script.state(ORDERS)
        script.transaction([altered, Update(ORDERS, (1,), {"remark": "x", "n": 1})])
        run.wait_for_live_reads()
        assert rows(run.lake, ORDERS, spark) == script.state(ORDERS)
        before = script.state(ORDERS)
        script.alter(ORDERS, rewrite=True)
        script.transaction([Update(ORDERS, (1,), {"remark": "y"})])
        after = script.state(ORDERS)
        found = [shown_or_why(run.lake, spark)]
        run.wait_for_state(ORDERS, TableState.RESYNCING)
        found.append(shown_or_why(run.lake, spark))
        run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        assert all(each in (before, after) or "rewritten" in str(each) for each in found), found


def shown_or_why(lake: Path, spark: SparkSession) -> Any:
    try:
        return rows(lake, ORDERS, spark)
    except DefiniteError as error:
        return error


@pytest.mark.parametrize("change", [{"rewrite": True}, {"retype": {"note": "binary"}}])
def test_what_a_copy_cannot_follow_is_copied_again_beside_the_others(
    copy: Running, script: Script, change: dict[str, Any]
) -> None:
    script.transaction([Update(ORDERS, (number,), {"note": None}) for number in range(1, 21)])
    script.alter(ORDERS, **change)
    script.transaction([Insert(LINES, {"id": 9, "at": None})])
    copy.wait_for_state(ORDERS, TableState.RESYNCING)
    copy.wait_for_state(ORDERS, TableState.LIVE, copy=2)
    script.transaction([Delete(ORDERS, (3,))])
    copy.catch_up()
    assert_equal(copy.lake, script)
    assert copy.connector.tables()[TableId("shop", "orders")].copy == 2, "the shape before the copy is of no concern"


def test_tables_that_come_and_go_while_it_streams_are_taken_in_and_let_go_beside_the_others(
    copy: Running, script: Script
) -> None:
    script.create_table("shop.later", {"id": "int"}, key=["id"])
    script.transaction([Insert("shop.later", {"id": 1})])
    copy.wait_for_state("shop.later", TableState.LIVE)
    script.drop_table(LINES)
    copy.wait_for_state(LINES, TableState.ERRORED)
    script.transaction([Insert("shop.later", {"id": 2}), Delete(ORDERS, (1,))])
    copy.catch_up()
    assert_equal(copy.lake, script, ORDERS, "shop.later")
    with pytest.raises(DefiniteError, match="gone from the source"):
        rows(copy.lake, LINES)


def test_a_right_that_is_missing_keeps_its_table_out_until_it_is_granted(
    settings: ConnectorSettings, source: ScriptedSource, script: Script
) -> None:
    script.forbid(LINES)
    with running(settings, source) as run:
        run.wait_for_state(LINES, TableState.ERRORED)
        run.wait_for_state(ORDERS, TableState.LIVE)
        script.transaction([Insert(LINES, {"id": 1, "at": None}), Delete(ORDERS, (1,))])
        run.catch_up()
        assert_equal(run.lake, script, ORDERS)
        script.allow(LINES)
        run.wait_for_state(LINES, TableState.LIVE)
        run.catch_up()
        assert_equal(run.lake, script)


def test_a_table_that_is_left_out_and_chosen_again_is_copied_again(
    settings: ConnectorSettings, source: ScriptedSource, script: Script
) -> None:
    once = replace(settings, once=True)
    sync_once(once, source)
    states = sync_once(replace(once, exclude=(LINES,)), source)
    assert states == {ORDERS: TableState.LIVE, LINES: TableState.REMOVED}
    script.transaction([Insert(LINES, {"id": 1, "at": None})])
    with pytest.raises(DefiniteError, match=r"shop\.lines is removed"):
        rows(settings.lake, LINES)
    assert set(sync_once(once, source).values()) == {TableState.LIVE}
    assert_equal(settings.lake, script)


def test_an_older_cut_of_a_table_that_was_removed_and_built_again_says_that_its_version_is_gone(
    settings: ConnectorSettings, source: ScriptedSource, script: Script, spark: SparkSession
) -> None:
    once = replace(settings, once=True)
    sync_once(once, source, spark)
    script.transaction([Delete(ORDERS, (1,)), Insert(LINES, {"id": 1, "at": None})])
    sync_once(once, source, spark)
    older = source.format(source.now())
    lines = rows(settings.lake, LINES, spark, as_of=older)
    shutil.rmtree(settings.lake / "shop" / "orders")
    for number in (2, 3):
        script.transaction([Delete(ORDERS, (number,)), Insert(LINES, {"id": number, "at": None})])
        sync_once(once, source, spark)
    assert_equal(settings.lake, script, spark=spark)
    with pytest.raises(DefiniteError, match=r"version of table shop\.orders that this cut names is gone") as caught:
        rows(settings.lake, ORDERS, spark, as_of=older)
    assert "read a later cut" in str(caught.value.hint)
    assert rows(settings.lake, LINES, spark, as_of=older) == lines


def test_killed_in_the_snapshot_and_between_two_publishes_the_lake_equals_the_script(
    settings: ConnectorSettings, script: Script
) -> None:
    """In processes that import no particular database and no particular lake, as the last one says itself."""
    script.transaction([Insert(LINES, {"id": 1, "at": None})])
    assert _sync(settings, script, TAILRACE_FAILPOINT="snapshot.table.copied").returncode == -signal.SIGKILL
    assert LakeHome(settings.lake).cuts.all() == []
    script.transaction([Delete(ORDERS, (1,)), Delete(LINES, (1,))])
    assert _sync(settings, script, TAILRACE_FAILPOINT="publish.table").returncode == -signal.SIGKILL
    script.transaction([Delete(ORDERS, (2,)), Insert(LINES, {"id": 2, "at": None})])
    ended = _sync(settings, script)
    assert (ended.returncode, ended.stdout) == (0, "particular modules: []\n")
    assert_equal(settings.lake, script)


def _sync(settings: ConnectorSettings, script: Script, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.doors.sync", str(script.path), str(settings.lake)],
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)} | variables,
        check=False,
        capture_output=True,
        text=True,
    )
