"""A table compared in one task and by many, on an engine of one thread to which everything travels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.one_thread import OneThread
from tests.doors.script import Delete, Insert, Script, Update
from tests.doors.scripted import ScriptedSource

from tailrace.engine.dividing import TooLargeError, work_through
from tailrace.engine.door import Job
from tailrace.engine.spark.errors import is_spark_gone
from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.settings import TaskSizes
from tailrace.verify.judged_tables import Judged, ShapeError, report_of
from tailrace.verify.report import KeyDifference, RowDifference, TableVerdict
from tailrace.verify.sides import Sides
from tailrace.verify.table_comparison import Limits, TableComparison

ORDERS = TableId("shop", "orders")
NOTES = TableId("shop", "notes")
JOB = Job("verify 2 tables", "verify")
SIZES = TaskSizes()
SMALL = TaskSizes(compare_bytes=4096)
"""Tables of some hundred rows are divided."""
LOW = TaskSizes(compare_bytes=32 << 10, decoded_bytes_max=16 << 10)
"""They are taken for small, and turn out to be too large for a task."""


@pytest.fixture
def lake(tmp_path: Path) -> tuple[Script, MadeLake]:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(str(ORDERS), {"id": "bigint", "note": "string", "price": "double"}, key=["id"])
    script.create_table(str(NOTES), {"id": "string"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([Insert(str(ORDERS), {"id": n, "note": f"note {n}", "price": n / 2}) for n in range(400)])
    script.transaction([Insert(str(NOTES), {"id": "a"}), Insert(str(NOTES), {"id": "b"})])
    made.log()
    return script, made


def comparison(made: MadeLake, table: TableId, sizes: TaskSizes, keys_max: int = 20) -> TableComparison:
    found = made.source.describe([table])[table]
    with made.source.snapshot() as point:
        sides = Sides.of(made.source, point, made.home)
        known = made.home.tables.load()[table].definition
        return TableComparison.of(sides, found, Judged(found.schema, known), Limits(sizes, 3, keys_max))


def differing(script: Script) -> dict[str, list[dict[str, Any]]]:
    """The source's rows but for some."""
    rows = [dict(row) for row in script.state(str(ORDERS)) if row["id"] not in (22, 333)]
    rows[11]["note"] = "another"
    rows[12]["price"] = -0.0
    rows.append({"id": 5000, "note": None, "price": float("nan")})
    rows += [dict(rows[33]), dict(rows[33])]
    return {str(ORDERS): rows, str(NOTES): script.state(str(NOTES))}


@pytest.mark.parametrize("sizes", [SIZES, SMALL, LOW], ids=["whole", "divided", "too large"])
@pytest.mark.parametrize("keys_max", [3, 20])
def test_a_table_is_reported_the_same_whether_it_is_divided_or_not(
    lake: tuple[Script, MadeLake], sizes: TaskSizes, keys_max: int
) -> None:
    script, made = lake
    made.publish(differing(script))
    # What is in the log alone is laid over the lake's tables.
    steps = [Delete(str(ORDERS), (50,)), Update(str(ORDERS), (60,), {"note": "later"})]
    script.transaction([*steps, Insert(str(ORDERS), {"id": 400, "note": "later", "price": 0.0})])
    made.log()
    engine = OneThread(travels=True)
    pieces = [comparison(made, table, sizes, keys_max) for table in (ORDERS, NOTES)]
    orders, notes = work_through(engine, JOB, pieces, sizes.compare_bytes, is_spark_gone)
    assert orders.error is None
    assert notes.error is None
    assert orders.result is not None
    assert (orders.result.source_rows, orders.result.lake_rows) == (400, 401)
    assert orders.result.differing == {RowDifference.MISSING: 2, RowDifference.EXTRA: 2, RowDifference.CHANGED: 2}
    assert (
        orders.result.keys
        == (
            KeyDifference({"id": "11"}, RowDifference.CHANGED, 1, 1, ("note",)),
            KeyDifference({"id": "12"}, RowDifference.CHANGED, 1, 1, ("price",)),
            KeyDifference({"id": "22"}, RowDifference.MISSING, 1, 0),
            KeyDifference({"id": "34"}, RowDifference.EXTRA, 1, 3),
            KeyDifference({"id": "333"}, RowDifference.MISSING, 1, 0),
            KeyDifference({"id": "5000"}, RowDifference.EXTRA, 0, 1),
        )[:keys_max]
    )
    assert report_of(NOTES, notes).verdict is TableVerdict.EQUAL
    divided = [job.description for job in engine.jobs if job != JOB]
    assert divided == {SIZES: [], SMALL: ["verify shop.orders"] * 2, LOW: ["verify shop.orders"] * 3}[sizes]


def test_equal_tables_are_equal_in_every_lake_format(tmp_path: Path) -> None:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(str(ORDERS), {"id": "bigint", "note": "string", "price": "decimal(12,2)"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)), "delta")
    script.transaction([Insert(str(ORDERS), {"id": n, "note": f"note {n}"}) for n in range(300)])
    made.log()
    made.publish({str(ORDERS): script.state(str(ORDERS))})
    for sizes in (SIZES, SMALL):
        piece = comparison(made, ORDERS, sizes)
        found = piece.whole() if sizes is SIZES else piece.divided(OneThread(travels=True), JOB)
        assert (found.source_rows, found.lake_rows, dict(found.differing)) == (300, 300, {})


def test_tables_without_rows_are_equal(tmp_path: Path) -> None:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(str(ORDERS), {"id": "bigint"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([])
    made.log()
    made.publish({str(ORDERS): []})
    piece = comparison(made, ORDERS, SIZES)
    assert piece.whole() == piece.divided(OneThread(travels=True), JOB)
    assert piece.whole().source_rows == 0


def test_a_task_holds_no_more_than_its_limit(lake: tuple[Script, MadeLake]) -> None:
    script, made = lake
    made.publish(differing(script))
    with pytest.raises(TooLargeError):
        comparison(made, ORDERS, LOW).whole()


def test_errors_are_the_tables_own_and_come_back_as_they_are(lake: tuple[Script, MadeLake]) -> None:
    script, made = lake
    made.publish({str(table): script.state(str(table)) for table in (ORDERS, NOTES)})
    damaged, piece = comparison(made, ORDERS, SMALL), comparison(made, NOTES, SIZES)
    (file,) = made.path_of(ORDERS).rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-200] + b"?" * 200)
    another = replace(piece.judged.found, columns=(replace(piece.judged.found.columns[0], name="key"),), key=("key",))
    shaped = replace(piece, judged=Judged(another, another.definition))
    pieces = [damaged, shaped, piece]
    found = work_through(OneThread(travels=True), JOB, pieces, SMALL.compare_bytes, is_spark_gone)
    assert isinstance(found[0].error, DefiniteError)
    assert "it cannot be read" in found[0].error.message
    assert isinstance(found[1].error, ShapeError)
    reports = [report_of(each.judged.table, outcome) for each, outcome in zip(pieces, found, strict=True)]
    assert [each.verdict for each in reports] == [
        TableVerdict.NOT_COMPARED,
        TableVerdict.SHAPE_DIFFERS,
        TableVerdict.EQUAL,
    ]
    assert reports[1].reason == "column key is missing in the lake; column id is in the lake only"
    script.forbid(str(NOTES))
    (refused,) = work_through(OneThread(), JOB, [piece], SIZES.compare_bytes, is_spark_gone)
    assert report_of(NOTES, refused).reason == "may not read shop.notes"


def test_no_more_readers_than_allowed_read_the_source(lake: tuple[Script, MadeLake]) -> None:
    script, made = lake
    made.publish(differing(script))
    piece = comparison(made, ORDERS, SMALL)
    assert len(piece.chunks) > 3
    the_lake, *readers = piece._parts()
    assert the_lake is None
    assert len(readers) == 3
    assert sum(map(len, filter(None, readers))) == len(piece.chunks)
