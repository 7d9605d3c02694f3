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


def test_elements_of_lists_and_maps_have_numbers_of_their_own(tmp_path: Path) -> None:
    types = {"id": "bigint", "tags": "array<string>", "exact": "map<string,string>", "days": "array<date>"}
    fields = [Field(name, f"col-{name}", number, type_, {}) for number, (name, type_) in enumerate(types.items(), 1)]
    rows = pa.record_batch(
        [
            pa.array([1, 2]),
            pa.array([["a", None], None], pa.list_(pa.string())),
            pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())),
            pa.array([[], None], pa.list_(pa.date32())),
        ],
        names=list(types),
    )
    action = write_rows(LocalFolder(tmp_path), [rows], fields)
    assert action is not None
    file = pq.ParquetFile(tmp_path / action["path"])
    assert numbers(file.schema_arrow) == {
        "id": (1, []),
        "tags": (2, [1_000_004]),
        "exact": (3, [1_000_006, 1_000_007]),
        "days": (4, [1_000_008]),
    }
    assert file.read().rename_columns(list(types)).to_pylist() == rows.to_pylist()


def numbers(schema: pa.Schema) -> dict[str, tuple[int, list[int]]]:
    """Of each column, and of what it has inside."""

    def of(field: pa.Field) -> int:
        return int((field.metadata or {})[b"PARQUET:field_id"])

    def inside(type_: pa.DataType) -> list[pa.Field]:
        if pa.types.is_list(type_):
            return [type_.value_field]
        return [type_.key_field, type_.item_field] if pa.types.is_map(type_) else []

    names = ("id", "tags", "exact", "days")
    return {name: (of(each), [of(i) for i in inside(each.type)]) for name, each in zip(names, schema, strict=True)}
