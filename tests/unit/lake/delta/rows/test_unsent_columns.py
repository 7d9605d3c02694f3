"""Columns that were left out of states, from the rows of a Delta table: any amount of them in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.lake.delta.rows.row_files import RowSizes
from tailrace.lake.delta.table import DeltaTable
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

SCHEMA = TableSchema(
    TableId("a", "t"),
    7,
    (Column("id", "int", "INT", 1), Column("n", "int", "INT", 2), Column("big", "string", "TEXT", 3)),
    ("id",),
)
STATES = pa.schema(
    [
        *row_schema(SCHEMA),
        (DELETED, pa.bool_()),
        (FRESH, pa.bool_()),
        (UNCHANGED, pa.list_(pa.string())),
        (ORIGIN, pa.struct([("id", pa.int32())])),
    ]
)
POOL = pa.proxy_memory_pool(pa.default_memory_pool())
"""Outlives every buffer that it gave."""


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    pa.set_memory_pool(POOL)
    yield POOL
    pa.set_memory_pool(pa.default_memory_pool())


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(seq or 0), 7, 1, seq)


def state(id: int, big: str | None = None, *, fresh: bool = False, origin: int | None = None) -> dict[str, Any]:
    """One that leaves `big` out unless it has one."""
    ours = {
        DELETED: False,
        FRESH: fresh,
        UNCHANGED: None if big else ["big"],
        ORIGIN: {"id": origin} if origin else None,
    }
    return {"id": id, "n": -id, "big": big, **ours}


def copied(path: Path, rows: int, text_bytes: int, sizes: RowSizes) -> DeltaTable:
    """A table of one file, of which no more than a few rows have been in memory."""
    table = DeltaTable(LocalFolder(path), sizes)
    draft = table.copy(SCHEMA, stamp(None))
    batches = (
        pa.RecordBatch.from_pylist([{"id": id, "n": id, "big": chr(97 + id % 26) * text_bytes}], row_schema(SCHEMA))
        for id in range(1, rows + 1)
    )
    draft.commit([draft.write(batches)])
    return table


def publish(table: DeltaTable, states: list[dict[str, Any]]) -> None:
    draft = table.publish(SCHEMA, stamp(1))
    draft.commit([draft.write(pa.Table.from_pylist(states, STATES).to_batches())])


def content(table: DeltaTable) -> dict[int, tuple[int, str, int]]:
    version = table.version()
    assert version is not None
    scan = table.scan(version.number)
    with connect() as connection:
        connection.execute(f"load '{scan.extension}'")
        found = connection.sql(f"select id, n, big[1], length(big) from {scan.sql}").fetchall()
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row[1:] for row in found}


def test_memory_does_not_grow_with_what_was_left_out(tmp_path: Path, pool: Any) -> None:
    sizes = RowSizes(filled_bytes_max=1 << 20, collected_bytes=1 << 20)
    table = copied(tmp_path / "t", rows=32, text_bytes=1 << 19, sizes=sizes)
    publish(table, [state(id) for id in range(1, 33)])
    assert pool.max_memory() < 10 << 20
    assert content(table) == {id: (-id, chr(97 + id % 26), 1 << 19) for id in range(1, 33)}


def test_part_by_part_every_state_gets_the_values_of_its_own_row(tmp_path: Path) -> None:
    table = copied(tmp_path / "t", rows=20, text_bytes=9, sizes=RowSizes(filled_bytes_max=40))
    states = [state(id) for id in (17, 3, 11, 4, 19)] + [state(7, "whole"), state(30, "new", fresh=True)]
    gone = {**state(5, "x"), DELETED: True, "big": None}
    publish(table, [*states, gone, state(40, fresh=True, origin=5)])
    wanted = {id: (id, chr(97 + id % 26), 9) for id in range(1, 21) if id != 5}
    wanted |= {id: (-id, chr(97 + id % 26), 9) for id in (17, 3, 11, 4, 19)}
    assert content(table) == wanted | {7: (-7, "w", 5), 30: (-30, "n", 3), 40: (-40, chr(97 + 5), 9)}


def test_a_group_of_rows_has_no_more_than_memory_should_hold(tmp_path: Path) -> None:
    table = copied(tmp_path / "t", rows=1, text_bytes=1, sizes=RowSizes(group_bytes_max=4000))
    publish(table, [state(id, "a" * 1000, fresh=True) for id in range(2, 42)])
    groups = [pq.read_metadata(path).num_row_groups for path in (tmp_path / "t").glob("*.parquet")]
    assert max(groups) >= 10
