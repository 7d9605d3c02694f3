"""Rows of a base that newer ones replace: told by a condition where Spark can decide it early, else by a join."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.script import Delete, Insert, Script, Step, Update
from tests.doors.scripted import ScriptedSource
from tests.engines import rows_in_both
from tests.running import running

import tailrace
from tailrace.lake.frames import frame_of
from tailrace.lake.home import LakeHome
from tailrace.read.cut import cut_by
from tailrace.read.duckdb import connect
from tailrace.read.key_filter import KEYS_MAX, TEXT_BYTES_MAX, is_not_among
from tailrace.read.spark import SparkReadEngine
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ODD = 'it\'s "odd".`x` y'
TEXTS = ["", " ", "a", "a ", "A", "null", "[]", "'", '"', "\\", "\\u0041", "`", "ü", "u\u0308", "\u2028", "\n\t"]
TEXTS += ["\U0001f600"]
WHOLE = {pa.int16(): 1 << 15, pa.int32(): 1 << 31, pa.int64(): 1 << 63}
CASES = [(pa.string(), TEXTS), (pa.string(), [f"{n:08x}-e29b-41d4" for n in range(500)])]
CASES += [(type_, [-end, 1 - end, -7, -1, 0, 1, 2, 6, 7, end - 2, end - 1]) for type_, end in WHOLE.items()]
CASES += [(pa.int64(), list(range(-4000, 4000, 2)))]
ORDERS, PLACES, PAIRS = "shop.orders", "shop.places", "shop.pairs"


@pytest.mark.parametrize(("type_", "values"), CASES)
def test_a_row_stays_unless_its_key_is_among_the_others(spark: SparkSession, type_: Any, values: list[Any]) -> None:
    base = frame_of(spark, pa.table({ODD: pa.array([*values, None], type_)}))
    for touched in (values[::2], values[1::2], values[:1], values, []):
        stays = is_not_among(pa.table({ODD: pa.array([*touched, None], type_)}))
        assert stays is not None
        found = base.where(stays).toArrow().column(0).to_pylist()
        assert sorted(map(repr, found)) == sorted(repr(each) for each in [*values, None] if each not in touched)


def test_a_key_that_is_among_the_others_is_known_before_any_row_is_read(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    spark.range(100).selectExpr("id", "string(id) as name").write.format("delta").save(path)
    for column, key, absent, all_keys in (("id", "8", "9", range(0, 60, 2)), ("name", "'8'", "'9'", ["8", "x"])):
        stays = is_not_among(pa.table({column: pa.array(all_keys)}))
        assert stays is not None
        rest = spark.read.format("delta").load(path).where(stays)
        plan = rest.where(f"{column} = {key}")._jdf.queryExecution().optimizedPlan().toString()
        assert plan.startswith("LocalRelation <empty>"), plan
        assert rest.where(f"{column} = {absent}").count() == 1


def test_keys_of_several_columns_or_other_types_or_too_many_are_left_to_a_join() -> None:
    assert is_not_among(pa.table({"a": [1], "b": [2]})) is None
    for odd in (0.0, True, Decimal("1.00"), b"x"):
        assert is_not_among(pa.table({"a": [odd]})) is None
    assert is_not_among(pa.table({"a": ["x" * TEXT_BYTES_MAX]})) is None
    assert is_not_among(pa.table({"a": [101 * n for n in range(400)]})) is None, "all in one of 101 buckets"
    assert is_not_among(pa.table({"a": [1, 2, 3]}), keys_max=2) is None


@pytest.mark.parametrize("keys_max", [KEYS_MAX, 2])
def test_a_live_read_is_the_source_whichever_way_the_keys_are_told(
    spark: SparkSession, tmp_path: Path, keys_max: int
) -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
    script.create_table(PLACES, {ODD: "string", "note": "string"}, key=[ODD])
    script.create_table(PAIRS, {"a": "int", "b": "string", "note": "string"}, key=["a", "b"])
    script.transaction([Insert(ORDERS, {"id": n, "note": f"order {n}"}) for n in range(-20, 20)])
    script.transaction([Insert(PLACES, {ODD: text, "note": "old"}) for text in TEXTS])
    script.transaction([Insert(PAIRS, {"a": n % 3, "b": TEXTS[n], "note": "old"}) for n in range(9)])
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=3600)
    with running(settings, ScriptedSource(str(script.path)), spark) as run:
        run.catch_up()
        script.transaction(_changes())
        run.wait_for_live_reads()
        cut = cut_by(SparkReadEngine(spark, keys_max), LakeHome.find(run.lake))
        for table in (ORDERS, PLACES, PAIRS):
            rows_of_table = sorted((row.asDict() for row in cut.tables[table].collect()), key=repr)
            assert rows_of_table == rows_in_both(spark, run.lake, table) == sorted(script.state(table), key=repr)
        with connect(is_private=True) as connection:
            cuts = [cut, tailrace.cut(connection, run.lake)]
            for order in (-21, -20, -19, 1, 2, 3, 5, 7, 8, 40, 41, 70):
                query = f"select note from orders where id = {order}"
                rows = [list(cut.engine.rows(cut.sql(query))) for cut in cuts]
                assert rows[0] == rows[1], query
                assert rows[0] == [(row["note"],) for row in script.state(ORDERS) if row["id"] == order], query


def _changes() -> list[Step]:
    """Rows that change, leave values out, move, go, come, and come back."""
    orders: list[Step] = [Update(ORDERS, (n,), {"note": "changed"}) for n in range(-20, 0, 3)]
    orders += [Update(ORDERS, (1,), {"id": 40}), Delete(ORDERS, (2,)), Insert(ORDERS, {"id": 41, "note": "new"})]
    orders += [Delete(ORDERS, (3,)), Insert(ORDERS, {"id": 3, "note": "back"}), Update(ORDERS, (5,), {"id": 2})]
    orders += [Update(ORDERS, (7,), {"id": 70}, leave_out=["note"]), Update(ORDERS, (8,), {}, leave_out=["note"])]
    places: list[Step] = [Update(PLACES, (text,), {"note": "new"}) for text in TEXTS[::2]]
    places += [Delete(PLACES, (TEXTS[1],)), Update(PLACES, (TEXTS[3],), {ODD: "moved"})]
    pairs: list[Step] = [Update(PAIRS, (n % 3, TEXTS[n]), {"note": "new"}) for n in range(0, 9, 2)]
    return [*orders, *places, *pairs, Delete(PAIRS, (1, TEXTS[1]))]
