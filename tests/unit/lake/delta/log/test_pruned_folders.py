"""What Delta's own commands write into folders of a table goes like everything else when no version needs it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
from tests.doors.writing import maintained

from tailrace.lake.delta.table import DeltaTable
from tailrace.lake.door import Wanted
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.storage.local import LocalFolder

SCHEMA = TableSchema(TableId("a", "t"), 7, (Column("id", "int", "INT", 1),), ("id",))
FIELDS = [
    (DELETED, pa.bool_()),
    (FRESH, pa.bool_()),
    (UNCHANGED, pa.list_(pa.string())),
    (ORIGIN, pa.struct([("id", pa.int32())])),
]


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(seq or 0), 7, 1, seq)


def optimize(path: Path) -> Path:
    """What `OPTIMIZE` does to a table of one file. The new one."""
    log = path / "_delta_log"
    (add,) = [
        each["add"] for line in (log / f"{0:020d}.json").read_text().splitlines() if "add" in (each := json.loads(line))
    ]
    moved = path / "aB" / add["path"].replace("00000", "00001")
    moved.parent.mkdir()
    moved.write_bytes((path / add["path"]).read_bytes())
    actions = [
        {"commitInfo": {"operation": "OPTIMIZE"}},
        {"remove": {"path": add["path"], "dataChange": False, "deletionTimestamp": 1}},
        {"add": {**add, "path": f"aB/{moved.name}", "dataChange": False}},
    ]
    (log / f"{1:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    return moved


def test_a_file_in_a_folder_that_no_version_needs_is_deleted_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = DeltaTable(LocalFolder(path))
    draft = table.copy(SCHEMA, stamp(None))
    draft.commit([draft.write(pa.table({"id": pa.array(range(10), pa.int32())}, row_schema(SCHEMA)).to_batches())])
    moved, mine = optimize(path), path / "mine" / "own.parquet"
    mine.parent.mkdir()
    mine.write_bytes(b"a user's")
    everything = Wanted(frozenset(), until=time.time() + 60, strangers_until=time.time() + 60)
    table.prune(everything)
    assert (moved.exists(), list(path.glob("*.parquet"))) == (True, [])
    states = [{"id": id, DELETED: True, FRESH: False, UNCHANGED: None, ORIGIN: None} for id in range(5)]
    draft = table.publish(SCHEMA, stamp(1))
    draft.commit([draft.write(pa.Table.from_pylist(states, pa.schema([*row_schema(SCHEMA), *FIELDS])).to_batches())])
    assert maintained(table) is not None, "the file has lost half of its rows"
    table.prune(everything)
    assert not moved.parent.exists()
    assert mine.exists()
    assert len(list(path.glob("*.parquet"))) == 1
