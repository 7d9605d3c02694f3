"""A Spark session reads on over the cut that it read last, as long as the lake keeps that."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.engines import rows_in_both
from tests.running import sync_once

from tailrace.cli.lake.maintain import MaintainCommand, run_maintain
from tailrace.cli.lake.query import Format, QueryCommand, answer, follow_cuts
from tailrace.lake.home import LakeHome
from tailrace.lake.retention import Retention
from tailrace.read.cut import Cut
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS = "shop.orders"


class Shop:
    """A lake of which only the newest cut is kept."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
        self.script, self.lake, self._spark = Script(folder / "shop.jsonl"), folder / "lake", spark
        self.script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
        self.script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(20)])
        self.sync()

    def sync(self) -> None:
        sync_once(ConnectorSettings(self.lake, once=True), ScriptedSource(str(self.script.path)), self._spark)
        # What it prints is not what a query answers.
        with redirect_stdout(io.StringIO()):
            run_maintain(self.lake, MaintainCommand(Retention(0, 0)))


@dataclass(frozen=True)
class FollowedQuery(QueryCommand):
    """Before each of its cuts something happens."""

    happens: Callable[[], None] = lambda: None

    def cut(self, session: Any) -> Cut[Any]:
        self.happens()
        return super().cut(session)


def test_a_session_whose_last_cut_retention_has_deleted_reads_over_the_newest(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark)
    assert rows_in_both(spark, shop.lake, ORDERS) == sorted(shop.script.state(ORDERS), key=repr)
    (first,) = LakeHome(shop.lake).cuts.all()
    shop.script.transaction([Update(ORDERS, (n,), {"note": "second"}) for n in range(20)])
    shop.sync()
    assert not LakeHome(shop.lake).cuts.has(first)
    assert rows_in_both(spark, shop.lake, ORDERS) == sorted(shop.script.state(ORDERS), key=repr)


def test_a_query_that_spark_follows_answers_at_every_new_cut(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shop, rounds = Shop(tmp_path, spark), iter((1, 2))

    def happens() -> None:
        number = next(rounds, None)
        if number is None:
            raise KeyboardInterrupt
        shop.script.transaction([Insert(ORDERS, {"id": 100 + number, "note": "new"})])
        shop.sync()

    query = FollowedQuery(shop.lake, "select count(*) as n from orders", True, Format.CSV)
    shown = query.cut(spark)
    answer(query, shown)
    with pytest.raises(KeyboardInterrupt):
        follow_cuts(replace(query, happens=happens), LakeHome(shop.lake), shown, spark)
    assert capsys.readouterr().out.split() == ["n", "20", "21", "22"]
