"""Small files that are merged keep the order of the key, so that a reader passes over what it does not want."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.doors.writing import maintained

from tailrace.lake.delta.table import DeltaTable
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.storage.local import LocalFolder

SCHEMA = TableSchema(
    TableId("a", "t"), 7, (Column("part", "string", "TEXT", 1), Column("id", "int", "INT", 2)), ("part", "id")
)
FIELDS = [
    (DELETED, pa.bool_()),
    (FRESH, pa.bool_()),
    (UNCHANGED, pa.list_(pa.string())),
    (ORIGIN, pa.struct([("part", pa.string()), ("id", pa.int32())])),
]


def test_what_many_small_publishes_wrote_is_merged_in_the_order_of_the_key(tmp_path: Path) -> None:
    table, path = DeltaTable(LocalFolder(tmp_path / "t")), tmp_path / "t"
    draft = table.copy(SCHEMA, Stamp(SourcePosition(0), 7, 1, None))
    draft.commit([draft.write([])])
    keys = [(part, id) for part in "abc" for id in range(40)]
    random.Random(5).shuffle(keys)
    nothing = {DELETED: False, FRESH: True, UNCHANGED: None, ORIGIN: None}
    for seq in range(1, 11):
        states = [{"part": part, "id": id, **nothing} for part, id in keys[12 * (seq - 1) : 12 * seq]]
        draft = table.publish(SCHEMA, Stamp(SourcePosition(seq), 7, 1, seq))
        draft.commit(
            [draft.write(pa.Table.from_pylist(states, pa.schema([*row_schema(SCHEMA), *FIELDS])).to_batches())]
        )
    before = set(path.glob("*.parquet"))
    assert maintained(table) is not None
    (merged,) = set(path.glob("*.parquet")) - before
    found = pq.read_table(merged)
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert rows == sorted(keys)
    for each in before:
        columns = pq.read_table(each).columns
        assert (written := list(zip(*(column.to_pylist() for column in columns), strict=True))) == sorted(written)
