"""Every format of lake tables against a dictionary, and against the promises of the door: one suite for all."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.parquet_lake import ParquetFormat, interfere_once
from tests.doors.writing import copy, publish
from tests.spark_columns import lake_columns

from tailrace.errors import ResyncError
from tailrace.lake import formats
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import ConflictError, LakeFormat, LakeTable, TableVersion
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, PREFIX, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

FORMATS: list[LakeFormat] = [ParquetFormat(), DeltaFormat()]
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    7,
    (
        Column("id", "int", "INT", 1),
        Column("part", "string", "TEXT", 2),
        Column("note", "string", "TEXT", 3),
        Column("odd `name", "decimal(12,2)", "NUMERIC(12,2)", 4),
        Column("made", "timestamp_ntz", "TIMESTAMP", 5),
        Column("paid", "timestamp", "TIMESTAMPTZ", 6),
        Column("day", "date", "DATE", 7),
        Column("raw", "binary", "BYTEA", 8),
    ),
    ("id", "part"),
)
KEY = pa.struct([("id", pa.int32()), ("part", pa.string())])
STATES = pa.schema(
    [
        *row_schema(SCHEMA),
        (DELETED, pa.bool_()),
        (FRESH, pa.bool_()),
        (UNCHANGED, pa.list_(pa.string())),
        (ORIGIN, KEY),
    ]
)
LATER = Column("later", "int", "INT", 9)

Row = dict[str, Any]


def row(number: int, note: str = "") -> Row:
    return {
        "id": number,
        "part": "ab"[number % 2],
        "note": note,
        "odd `name": Decimal(number).scaleb(-2),
        "made": datetime(2024, 1, 1, 0, 0, 0, number),
        "paid": datetime(2024, 1, 1, 0, 0, 0, number, tzinfo=UTC),
        "day": date(2024, 1, 1 + number % 28),
        "raw": bytes([number % 256]),
    }


def state(values: Row, **metadata: Any) -> Row:
    ours = {DELETED: False, FRESH: False, UNCHANGED: None, ORIGIN: None}
    return values | ours | {f"{PREFIX}{name}": value for name, value in metadata.items()}


def states(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=STATES)


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(10 * (seq or 0), 5, b"gtid:1-7"), 7, 1, seq)


@pytest.fixture(params=FORMATS, ids=lambda each: each.name)
def lake_format(request: pytest.FixtureRequest) -> LakeFormat:
    found: LakeFormat = request.param
    return found


@pytest.fixture
def table(lake_format: LakeFormat, tmp_path: Path) -> LakeTable:
    """Not there yet."""
    return lake_format.table(LocalFolder(tmp_path).at("orders"))


def land(table: LakeTable, rows: list[Row]) -> int:
    return copy(table, pa.Table.from_pylist(rows, schema=row_schema(SCHEMA)), SCHEMA, stamp(None))


def newest(table: LakeTable) -> int:
    found = table.version()
    assert found is not None
    return found.number


def content(table: LakeTable, version: int | None = None) -> list[Row]:
    rows: list[Row] = in_duckdb(table, newest(table) if version is None else version).to_pylist()
    return sorted(rows, key=lambda each: each["id"])


def in_duckdb(table: LakeTable, version: int) -> pa.Table:
    scan = table.scan(version)
    with connect(is_private=True) as connection:
        if scan.extension:
            connection.execute(f"load '{scan.extension}'")
        return connection.sql(f"select * from {scan.sql}").to_arrow_table()


def test_a_landed_snapshot_is_the_whole_table_and_carries_its_stamp(spark: SparkSession, table: LakeTable) -> None:
    assert table.version() is None
    assert land(table, [row(1), row(2)]) == newest(table)
    assert content(table) == [row(1), row(2)]
    frame = table.open(spark, newest(table))
    assert sorted(frame.toArrow().to_pylist(), key=lambda each: each["id"]) == [row(1), row(2)]
    for found in (lake_columns(frame.schema), table.columns(newest(table))):
        assert [(column.name, column.type, column.source_type, column.number) for column in found] == [
            (column.name, column.type, column.source_type, column.number) for column in SCHEMA.columns
        ]
    land(table, [row(3)])
    assert content(table) == [row(3)]
    land(table, [])
    assert content(table) == []
    standing = table.version()
    assert standing is not None
    assert (standing.stamp, standing.stamp and standing.stamp.position.detail) == (stamp(None), b"gtid:1-7")


def test_the_size_of_a_version_counts_the_rows_that_a_reader_finds(table: LakeTable) -> None:
    first = land(table, [row(number) for number in range(50)])
    going = [state(row(number), deleted=True) for number in range(20)]
    second = publish(table, states(*going, state(row(90), fresh=True)), SCHEMA, stamp(1))
    for version in (first, second):
        found = table.size(version)
        assert found is not None
        assert found.rows == len(content(table, version))
        assert found.bytes > 0
    assert table.size(second + 1) is None


@pytest.mark.parametrize("parts", [1, 3])
def test_published_states_come_to_what_a_dictionary_comes_to(table: LakeTable, parts: int) -> None:
    rng = random.Random(7)
    oracle = {number: row(number, "first") for number in range(20)}
    first = land(table, list(oracle.values()))
    for seq in range(1, 4):
        old = sorted(oracle)
        touched = rng.sample(old, 6)
        changed = [state(row(number, f"in {seq}")) for number in touched[:2]]
        partial = [state(row(n, f"in {seq}") | {"raw": None}, unchanged=["raw"]) for n in touched[2:4]]
        deleted = [state(row(number), deleted=True) for number in touched[4:5]]
        origin = {"id": touched[5], "part": "ab"[touched[5] % 2]}
        target = 1000 * seq + touched[5]
        moved = [
            state(row(touched[5]), deleted=True),
            state(row(target) | {"note": None}, fresh=True, unchanged=["note"], origin=origin),
        ]
        fresh = [state(row(100 + seq, "new"), fresh=True)]
        for each in changed + partial:
            oracle[each["id"]] = row(each["id"], f"in {seq}")
        oracle[target] = row(target, oracle[touched[5]]["note"])
        oracle[100 + seq] = row(100 + seq, "new")
        for number in touched[4:]:
            del oracle[number]
        batch = states(*changed, *partial, *deleted, *moved, *fresh)
        publish(table, batch, SCHEMA, stamp(seq), parts=parts)
        standing = table.version()
        assert standing is not None
        assert standing.stamp == stamp(seq)
        assert content(table) == [oracle[key] for key in sorted(oracle)]
    assert content(table, first) == [row(number, "first") for number in range(20)]


def test_states_that_replace_all_leave_nothing_else(table: LakeTable) -> None:
    first = land(table, [row(1), row(2)])
    publish(table, states(state(row(2, "again"), fresh=True)), SCHEMA, stamp(1), replaces_all=True)
    assert content(table) == [row(2, "again")]
    publish(table, states(), SCHEMA, stamp(2), replaces_all=True)
    assert content(table) == []
    assert newest(table) == first + 2


def test_every_version_has_the_newest_stamp_one_without_rows_and_one_of_another_shape_too(table: LakeTable) -> None:
    first = land(table, [row(1)])
    for seq, batch in enumerate([states(state(row(1, "changed"))), states(state(row(2), fresh=True)), states()], 1):
        published = publish(table, batch, SCHEMA, stamp(seq))
        assert (published, table.version()) == (first + seq, TableVersion(first + seq, stamp(seq)))
    table.evolve(replace(SCHEMA, columns=(*SCHEMA.columns, LATER)))
    assert table.version() == TableVersion(first + 4, stamp(3))


def test_a_partial_state_without_its_old_row_changes_nothing(table: LakeTable) -> None:
    first = land(table, [row(1)])
    with pytest.raises(ResyncError, match="drifted from the source: row 2, a is missing"):
        publish(table, states(state(row(2), unchanged=["note"])), SCHEMA, stamp(1))
    assert newest(table) == first


def test_a_conflict_leaves_nothing_of_ours_and_the_second_try_succeeds(
    spark: SparkSession, table: LakeTable, lake_format: LakeFormat, tmp_path: Path
) -> None:
    first = land(table, [row(1), row(3)])
    batch = states(state(row(2), fresh=True), state(row(3, "changed")))
    draft = table.publish(SCHEMA, stamp(1))
    part = draft.write(batch.to_batches())
    if lake_format.name == "delta":
        spark.sql(f"alter table delta.`{tmp_path / 'orders'}` set tblproperties ('a.user' = 'was here')")
    else:
        interfere_once(tmp_path / "orders")
    with pytest.raises(ConflictError):
        draft.commit([part])
    standing = table.version()
    assert standing is not None
    assert (standing.number, standing.stamp) == (first + 1, stamp(None))
    assert content(table) == [row(1), row(3)]
    publish(table, batch, SCHEMA, stamp(1))
    assert content(table) == [row(1), row(2), row(3, "changed")]


def test_a_new_column_is_null_in_old_rows_and_a_renamed_one_keeps_its_values(table: LakeTable) -> None:
    first = land(table, [row(1)])
    wider = replace(SCHEMA, columns=(*SCHEMA.columns, LATER))
    assert table.evolve(SCHEMA) == first == newest(table)
    assert table.evolve(wider) == first + 1
    standing = table.version()
    assert standing is not None
    assert (standing.number, standing.stamp) == (first + 1, stamp(None))
    added = pa.Table.from_pylist(
        [state(row(2) | {"later": 5}, fresh=True)], schema=STATES.append(pa.field("later", pa.int32()))
    )
    publish(table, added, wider, stamp(1))
    assert content(table) == [row(1) | {"later": None}, row(2) | {"later": 5}]
    assert table.columns(newest(table))[-1].number == 9
    renamed = replace(wider, columns=(*SCHEMA.columns, replace(LATER, name="latest")))
    table.evolve(renamed)
    assert content(table) == [row(1) | {"latest": None}, row(2) | {"latest": 5}]
    assert table.columns(newest(table))[-1].number == 9
    retyped = replace(wider, columns=(*SCHEMA.columns, replace(LATER, type="string", source_type="text")))
    with pytest.raises(ResyncError, match="is now text"):
        table.evolve(retyped)


def test_a_column_that_the_source_dropped_goes_and_older_versions_keep_it(table: LakeTable) -> None:
    first = land(table, [row(1, "old"), row(2, "old")])
    narrower = replace(SCHEMA, columns=tuple(column for column in SCHEMA.columns if column.name != "note"))
    table.evolve(narrower)
    publish(table, states(state(row(2))).drop_columns(["note"]), narrower, stamp(1))
    without = [{name: value for name, value in each.items() if name != "note"} for each in (row(1), row(2))]
    assert content(table) == without
    assert content(table, first) == [row(1, "old"), row(2, "old")]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (states(state(row(1), fresh=True)), "row 1, b is there already"),
        (states(state(row(5))), "row 5, b is missing"),
        (states(state(row(6), deleted=True)), "row 6, a is missing"),
    ],
    ids=["an insert that finds its key", "an update that finds none", "a delete that finds none"],
)
def test_every_publish_proves_its_base(table: LakeTable, batch: pa.Table, reason: str) -> None:
    first = land(table, [row(1), row(2)])
    with pytest.raises(ResyncError, match=f"the lake had drifted from the source: {reason}"):
        publish(table, pa.concat_tables([states(state(row(2, "fine"))), batch]), SCHEMA, stamp(1))
    assert newest(table) == first


def test_the_format_is_found_by_its_name() -> None:
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
    assert formats.format_named("parquet").name == "parquet"
    builder = object()
    assert formats.format_named("parquet").configure(builder) is builder
