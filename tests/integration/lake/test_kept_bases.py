"""A Spark session reads on over the cut that it read last, as long as the lake keeps that."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.engines import rows_in_both
from tests.running import sync_once

from tailrace.cli.maintain import run_maintain
from tailrace.lake.home import LakeHome
from tailrace.lake.retention import Retention
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS = "shop.orders"


def test_a_session_whose_last_cut_retention_has_deleted_reads_over_the_newest(
    tmp_path: Path, spark: SparkSession
) -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script, lake = Script(tmp_path / "shop.jsonl"), tmp_path / "lake"
    script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(20)])
    source, settings = ScriptedSource(str(script.path)), ConnectorSettings(lake, once=True)
    sync_once(settings, source, spark)
    assert rows_in_both(spark, lake, ORDERS) == sorted(script.state(ORDERS), key=repr)
    (first,) = LakeHome(lake).cuts.all()
    script.transaction([Update(ORDERS, (n,), {"note": "second"}) for n in range(20)])
    sync_once(settings, source, spark)
    run_maintain(lake, Retention(0, 0), Console(file=StringIO()), dry_run=False)
    assert not LakeHome(lake).cuts.has(first)
    assert rows_in_both(spark, lake, ORDERS) == sorted(script.state(ORDERS), key=repr)
