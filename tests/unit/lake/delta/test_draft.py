"""A version in the making: nothing counts that is not where the table is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.errors import DefiniteError
from tailrace.lake.delta.table import DeltaTable
from tailrace.lake.stamp import Stamp
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.storage.local import LocalFolder

SCHEMA = TableSchema(TableId("public", "t"), 7, (Column("id", "bigint", "bigint", 1),), ("id",))


def test_a_file_that_an_executor_wrote_elsewhere_makes_no_version(tmp_path: Path) -> None:
    table = DeltaTable(LocalFolder(tmp_path / "t"))
    draft = table.copy(SCHEMA, Stamp(SourcePosition(1), 7, 1))
    parts = [draft.write([pa.record_batch([pa.array([number], pa.int64())], ["id"])]) for number in range(2)]
    written = tmp_path / "t" / parts[1].added[0]["path"]
    written.rename(tmp_path / "elsewhere")
    with pytest.raises(DefiniteError, match="was written by an executor and is not here"):
        draft.commit(parts)
    assert table.version() is None
    (tmp_path / "elsewhere").rename(written)
    draft.commit(parts)
    assert table.version() is not None
