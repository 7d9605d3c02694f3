"""What a lake's table does with values that its columns cannot hold, in both formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.doors.parquet_lake import ParquetFormat

from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import LakeTable
from tailrace.lake.stamp import Stamp
from tailrace.model.change import COUNT, DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.rows.exact import EXACT, EXACT_TYPE, is_ours
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

COLUMNS = (Column("id", "int", "integer", 1), Column("day", "date", "date", 2), Column("v", "array<int>", "int[]", 3))
SCHEMA = TableSchema(TableId("public", "t"), 7, COLUMNS, ("id",))
BAG = TableSchema(TableId("public", "t"), 7, COLUMNS, ())


@pytest.fixture(params=["delta", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    formats = {"delta": DeltaFormat, "parquet": ParquetFormat}
    return formats[request.param]().table(LocalFolder(tmp_path).at("t"))


def stamp(seq: int) -> Stamp:
    return Stamp(SourcePosition(seq * 10), 7, 1, seq)


def batches(rows: list[dict[str, Any]], schema: TableSchema) -> list[pa.RecordBatch]:
    shape = row_schema(schema)
    if schema.key:
        shape = shape.append(pa.field(DELETED, pa.bool_())).append(pa.field(FRESH, pa.bool_()))
        shape = shape.append(pa.field(UNCHANGED, pa.list_(pa.string())))
        shape = shape.append(pa.field(ORIGIN, pa.struct([("id", pa.int32())])))
    else:
        shape = shape.append(pa.field(COUNT, pa.int64()))
    if any(EXACT in row for row in rows):
        shape = shape.append(pa.field(EXACT, EXACT_TYPE))
    return pa.Table.from_pylist(rows, schema=shape).to_batches()


def copied(table: LakeTable, rows: list[dict[str, Any]], schema: TableSchema = SCHEMA) -> None:
    shape = row_schema(schema)
    plain = [row for row in rows if EXACT not in row]
    odd = pa.Table.from_pylist([row for row in rows if EXACT in row], shape.append(pa.field(EXACT, EXACT_TYPE)))
    draft = table.copy(schema, stamp(1))
    draft.commit([draft.write([*pa.Table.from_pylist(plain, shape).to_batches(), *odd.to_batches()])])


def published(table: LakeTable, seq: int, *rows: dict[str, Any], schema: TableSchema = SCHEMA) -> None:
    draft = table.publish(schema, stamp(seq))
    draft.commit([draft.write(batches(list(rows), schema))])


def state(id_: int, **values: Any) -> dict[str, Any]:
    return {"id": id_, DELETED: False, FRESH: False, **values}


def shown(table: LakeTable) -> dict[int, dict[str, Any]]:
    version = table.version()
    assert version is not None
    scan = table.scan(version.number)
    with connect(is_private=True) as connection:
        if scan.extension is not None:
            connection.execute(f"load '{scan.extension}'")
        rows = connection.sql(f"select * from {scan.sql}").to_arrow_table().to_pylist()
    return {row.pop("id"): {k: v for k, v in row.items() if v is not None} for row in sorted(rows, key=repr)}


def names(table: LakeTable) -> list[str]:
    version = table.version()
    assert version is not None
    return [f"{column.name}!" if is_ours(column) else column.name for column in table.columns(version.number)]


def test_the_column_comes_with_the_first_value_and_follows_rows_that_leave_theirs_out(table: LakeTable) -> None:
    copied(table, [{"id": 1, "v": [1, None]}, {"id": 2, "v": []}])
    published(table, 2, state(2, v=[3]))
    assert names(table) == ["id", "day", "v"]
    published(table, 3, state(1, **{EXACT: [("day", "infinity"), ("v", "{{1}}")]}), state(3, **{FRESH: True}))
    assert names(table) == ["id", "day", "v", "_exact!"]
    odd = {"_exact": [("day", "infinity"), ("v", "{{1}}")]}
    assert shown(table) == {1: odd, 2: {"v": [3]}, 3: {}}
    published(table, 4, state(1, **{UNCHANGED: ["v"], EXACT: [("day", "-infinity")]}), state(2, **{UNCHANGED: ["v"]}))
    assert shown(table) == {1: {"_exact": [("day", "-infinity"), ("v", "{{1}}")]}, 2: {"v": [3]}, 3: {}}
    published(table, 5, state(1, **{UNCHANGED: ["day"]}, v=[7]))
    assert shown(table)[1] == {"v": [7], "_exact": [("day", "-infinity")]}
    moved = state(9, **{UNCHANGED: ["day", "v"], ORIGIN: {"id": 1}, FRESH: True})
    published(table, 6, {**state(1), DELETED: True}, moved)
    assert shown(table) == {2: {"v": [3]}, 3: {}, 9: {"v": [7], "_exact": [("day", "-infinity")]}}


def test_a_copy_has_the_column_only_if_a_row_needs_it(table: LakeTable) -> None:
    copied(table, [{"id": 1}, {"id": 2, EXACT: [("day", "infinity")]}, {"id": 3}])
    assert (names(table)[-1], shown(table)[2]) == ("_exact!", {"_exact": [("day", "infinity")]})
    copied(table, [{"id": 1}])
    assert names(table) == ["id", "day", "v"]


def test_it_makes_room_for_a_column_of_the_source_that_is_called_like_it(table: LakeTable) -> None:
    copied(table, [{"id": 2, EXACT: [("day", "infinity")]}])
    theirs = Column("_exact", "string", "text", 4)
    table.evolve(TableSchema(SCHEMA.table, 7, (*COLUMNS, theirs), ("id",)))
    assert sorted(names(table)) == ["_exact", "_exact_!", "day", "id", "v"]
    assert shown(table) == {2: {"_exact_": [("day", "infinity")]}}


def test_rows_without_a_key_are_told_apart_by_it(table: LakeTable) -> None:
    copied(table, [{"id": 1}, {"id": 1, EXACT: [("day", "infinity")]}, {"id": 2, "v": [1]}], BAG)
    gone = {"id": 1, EXACT: [("day", "infinity")], COUNT: -1}
    published(table, 2, gone, {"id": 2, "v": [1], COUNT: -1}, {"id": 3, EXACT: [("v", "{{1}}")], COUNT: 1}, schema=BAG)
    assert shown(table) == {1: {}, 3: {"_exact": [("v", "{{1}}")]}}
    with pytest.raises(Exception, match="drifted"):
        published(table, 3, {"id": 1, EXACT: [("day", "-infinity")], COUNT: -1}, schema=BAG)
