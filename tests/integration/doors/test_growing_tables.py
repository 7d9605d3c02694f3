"""Tables that do not have all their rows yet, in every format of lake tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.doors.parquet_lake import ParquetFormat
from tests.doors.writing import copy, finish, maintained, publish, written

from tailrace.errors import ResyncError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import LakeFormat, LakeTable, TableVersion
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, PREFIX, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

FORMATS: list[LakeFormat] = [ParquetFormat(), DeltaFormat()]
COLUMNS = (Column("id", "int", "INT", 1), Column("note", "string", "TEXT", 2), Column("big", "string", "TEXT", 3))
SCHEMA = TableSchema(TableId("shop", "orders"), 7, COLUMNS, ("id",))
STATES = pa.schema(
    [
        *row_schema(SCHEMA),
        (DELETED, pa.bool_()),
        (FRESH, pa.bool_()),
        (UNCHANGED, pa.list_(pa.string())),
        (ORIGIN, pa.struct([("id", pa.int32())])),
    ]
)

Rows = dict[int, tuple[str, str]]


@pytest.fixture(params=FORMATS, ids=lambda each: each.name)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    found: LakeTable = request.param.table(LocalFolder(tmp_path).at("orders"))
    return found


def stamp(seq: int, growth: Any = None) -> Stamp:
    return Stamp(SourcePosition(10 * seq, 5), 7, 1, seq, growth)


def begun(table: LakeTable, rows: Rows) -> LakeTable:
    """With the rows that have been read."""
    read = [{"id": number, "note": note, "big": big} for number, (note, big) in rows.items()]
    copy(table, pa.Table.from_pylist(read, schema=row_schema(SCHEMA)), SCHEMA, stamp(1, ["2"]))
    return table


def state(number: int, note: str | None = None, big: str | None = None, **metadata: Any) -> dict[str, Any]:
    ours = {DELETED: False, FRESH: False, UNCHANGED: None, ORIGIN: None}
    return {"id": number, "note": note, "big": big} | ours | {f"{PREFIX}{key}": each for key, each in metadata.items()}


def partial(number: int, note: str, origin: int | None = None) -> dict[str, Any]:
    return state(number, note, unchanged=["big"], origin=None if origin is None else {"id": origin})


def states(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=STATES)


def grow(table: LakeTable, changes: pa.Table, *, replaces_all: bool = False) -> int:
    return finish(table.publish(SCHEMA, stamp(2), is_growing=True), changes, replaces_all=replaces_all)


def content(table: LakeTable) -> Rows:
    standing = table.version()
    assert standing is not None
    scan = table.scan(standing.number)
    with connect(is_private=True) as connection:
        if scan.extension:
            connection.execute(f"load '{scan.extension}'")
        rows = connection.sql(f"select id, note, big from {scan.sql} order by id").fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    return {number: (note, big) for number, note, big in rows}


@pytest.mark.parametrize("parts", [1, 3])
def test_a_key_may_be_there_or_not(table: LakeTable, parts: int) -> None:
    begun(table, {1: ("a", "A"), 2: ("b", "B"), 3: ("c", "C"), 4: ("d", "D")})
    changes = states(
        state(1, "a2", "A2", fresh=True),
        state(2, deleted=True),
        partial(3, "c2"),
        state(11, "k", "K"),
        state(12, deleted=True),
        partial(13, "m2"),
        partial(14, "d2", origin=4),
        state(4, deleted=True),
    )
    draft = table.publish(SCHEMA, stamp(2), is_growing=True)
    found = written(draft, changes, parts)
    assert draft.again(found) is None
    draft.commit(found)
    assert content(table) == {1: ("a2", "A2"), 3: ("c2", "C"), 11: ("k", "K"), 14: ("d2", "D")}


@pytest.mark.parametrize("parts", [1, 2])
def test_a_row_that_moved_here_from_a_row_that_is_missing_is_to_be_read_again(table: LakeTable, parts: int) -> None:
    """Where the key had another row before, that one is gone."""
    begun(table, {1: ("a", "A"), 2: ("b", "B")})
    draft = table.publish(SCHEMA, stamp(2, ["2"]), is_growing=True)
    found = written(draft, states(partial(1, "x", origin=9), partial(7, "y", origin=8), state(3, "c", "C")), parts)
    again = draft.again(found)
    assert again is not None
    assert sorted(again.to_pylist(), key=lambda each: each["id"]) == [{"id": 1}, {"id": 7}]
    number = draft.commit(found, stamp(2, ["2", again.column("id").to_pylist()]))
    assert content(table) == {2: ("b", "B"), 3: ("c", "C")}
    standing = table.version()
    assert standing is not None
    assert (standing.number, standing.stamp and standing.stamp.growth[0]) == (number, "2")
    assert standing.stamp is not None
    assert sorted(standing.stamp.growth[1]) == [1, 7]


@pytest.mark.parametrize("change", [state(1, "new", "NEW"), partial(5, "new", origin=1)], ids=["itself", "moved"])
def test_a_key_that_is_there_twice_is_still_an_error(table: LakeTable, change: dict[str, Any]) -> None:
    rows = pa.Table.from_pylist([{"id": 1, "note": "a", "big": "A"}] * 2, schema=row_schema(SCHEMA))
    copy(table, rows, SCHEMA, stamp(1))
    before = table.version()
    with pytest.raises(ResyncError, match="drifted from the source: row 1 is there more than once"):
        grow(table, states(change))
    assert table.version() == before


def test_a_truncate_leaves_what_came_after_it(table: LakeTable) -> None:
    begun(table, {1: ("a", "A")})
    grow(table, states(state(2, "b", "B", fresh=True)), replaces_all=True)
    assert content(table) == {2: ("b", "B")}


def test_the_cursor_stays_until_a_stamp_without_one(table: LakeTable) -> None:
    """A version of another shape and upkeep pass it on."""
    begun(table, {1: ("a", "A")})
    number = table.evolve(replace(SCHEMA, columns=(*COLUMNS, Column("later", "int", "INT", 4))))
    assert table.version() == TableVersion(number, stamp(1, ["2"]))
    maintained(table)
    assert table.version(number) == TableVersion(number, stamp(1, ["2"]))
    number = publish(table, states(), SCHEMA, stamp(2))
    assert table.version() == TableVersion(number, stamp(2))


def test_a_stamp_may_move_while_no_row_does(table: LakeTable) -> None:
    begun(table, {1: ("a", "A"), 2: ("b", "B")})
    number = table.restamp(stamp(7, ["2"]))
    assert table.version() == TableVersion(number, stamp(7, ["2"]))
    assert content(table) == {1: ("a", "A"), 2: ("b", "B")}
    grow(table, states(partial(1, "a2")))
    assert content(table) == {1: ("a2", "A"), 2: ("b", "B")}


def test_a_table_without_a_key_does_not_grow(table: LakeTable) -> None:
    begun(table, {})
    with pytest.raises(AssertionError):
        table.publish(replace(SCHEMA, key=()), stamp(2), is_growing=True)
