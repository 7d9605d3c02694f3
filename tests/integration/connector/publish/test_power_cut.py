"""A lake of Delta tables after a power cut: what was not yet on disk is taken back, and taken from the log again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.doors.damage import lose, record_syncs, zero
from tests.doors.script import Delete, Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.running import sync_once

import tailrace
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS, LINES = "shop.orders", "shop.lines"


def newest_commit(table: Path) -> Path:
    return max((table / "_delta_log").glob("[0-9]*.json"))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
    script.create_table(LINES, {"id": "int", "n": "int"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(20)])
    script.transaction([Insert(LINES, {"id": 1, "n": 0})])
    return script


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    """A batch is one transaction."""
    return ConnectorSettings(tmp_path / "lake", once=True, batch_bytes_max=1)


def change(script: Script, number: int) -> None:
    """Something of every kind in one table, and something in the other that follows it."""
    script.transaction(
        [
            Insert(ORDERS, {"id": 100 + number, "note": "new"}),
            Update(ORDERS, (number,), {"note": f"in {number}"}),
            Delete(ORDERS, (19 - number,)),
        ]
    )
    script.transaction([Update(LINES, (1,), {"n": number + 1})])


def published(spark: SparkSession, lake: Path, table: str) -> list[dict[str, Any]]:
    cut = tailrace.cut(spark, lake, published=True, register=False)
    return sorted((row.asDict() for row in cut.tables[table].collect()), key=lambda row: row["id"])


def assert_equal(spark: SparkSession, lake: Path, script: Script) -> None:
    start_again(spark)
    for table in (ORDERS, LINES):
        assert published(spark, lake, table) == script.state(table)


@pytest.mark.parametrize(
    ("damage", "is_in_cut"), [(lose, True), (zero, False)], ids=["lost, in the newest cut", "zeros, after it"]
)
def test_a_damaged_version_is_taken_back_and_what_follows_the_last_whole_one_comes_from_the_log(
    script: Script,
    settings: ConnectorSettings,
    spark: SparkSession,
    damage: Callable[[Path], None],
    is_in_cut: bool,
) -> None:
    source = ScriptedSource(str(script.path))
    sync_once(settings, source, spark)
    change(script, 1)
    sync_once(settings, source, spark)
    if not is_in_cut:
        forget_newest_cut(settings.lake)
    for table in ("orders", "lines") if is_in_cut else ("orders",):
        damage(newest_commit(settings.lake / "shop" / table))
    start_again(spark)
    if is_in_cut:
        with pytest.raises(DefiniteError, match=r"version of table shop\.orders that this cut names is gone"):
            published(spark, settings.lake, ORDERS)
    assert sync_once(settings, source, spark) == dict.fromkeys((ORDERS, LINES), TableState.LIVE)
    assert_equal(spark, settings.lake, script)
    change(script, 2)
    sync_once(settings, source, spark)
    assert_equal(spark, settings.lake, script)
    home = LakeHome(settings.lake)
    assert home.tables.load()[TableId("shop", "orders")].copy == 1, "it need not be copied again"
    seqs = [cut.seq for cut in home.cuts.all()]
    assert seqs == sorted(seqs), "a cut is never older than the one before, also if every table went back"
    kept = list(home.damaged_path(TableId("shop", "orders")).rglob("00000000000000000001*"))
    assert bool(kept) == (damage is zero), "what is damaged is kept, and what is lost is lost"


def start_again(spark: SparkSession) -> None:
    """Forget what a new process would not know."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def forget_newest_cut(lake: Path) -> None:
    """As if the power had gone before it was recorded."""
    cuts = lake / "_tailrace" / "cuts.jsonl"
    cuts.write_bytes(b"".join(cuts.read_bytes().splitlines(keepends=True)[:-1]))


def test_a_cut_is_recorded_when_everything_that_it_names_has_been_synced(
    script: Script, settings: ConnectorSettings, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, lake = ScriptedSource(str(script.path)), settings.lake
    synced = record_syncs(monkeypatch)
    known: set[Path] = set()
    for number in range(2):
        sync_once(settings, source, spark)
        before_cut = set(synced[: synced.index(lake / "_tailrace" / "cuts.jsonl")])
        new = {path for path in (lake / "shop").rglob("*") if path.is_file()} - known
        assert new - before_cut == set()
        assert {path.parent for path in new} - before_cut == set()
        if number == 0:
            assert {lake, lake.parent, lake / "shop", lake / "_tailrace"} - before_cut == set()
        known |= new
        synced.clear()
        script.transaction([Insert(ORDERS, {"id": 1000 + number, "note": "later"})])
