"""Files of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows.row_files import read_columns, write_rows
from tailrace.storage.local import LocalFolder

TYPES = {"id": "bigint", "status": "string", "tags": "array<string>", "note": "string"}


def test_only_columns_that_repeat_themselves_have_a_dictionary(tmp_path: Path) -> None:
    fields = [Field(name, f"col-{name}", number, type_, {}) for number, (name, type_) in enumerate(TYPES.items(), 1)]
    columns = {
        "id": pa.array(range(5000), pa.int64()),
        "status": pa.array(["open", "done", None, "sent"] * 1250),
        "tags": pa.array([["a", "b"], [], None, ["a"]] * 1250),
        "note": pa.array([f"number {number}" for number in range(5000)]),
    }
    added = write_rows(LocalFolder(tmp_path), pa.table(columns).to_batches(), fields)
    assert added is not None
    group = pq.read_metadata(tmp_path / added["path"]).row_group(0)
    written = [group.column(index) for index in range(group.num_columns)]
    assert {each.path_in_schema for each in written if each.has_dictionary_page} == {
        "col-status",
        "col-tags.list.element",
    }
    found = read_columns(LocalFolder(tmp_path), added["path"], fields)
    assert found == [column.combine_chunks() for column in pa.table(columns).columns]
