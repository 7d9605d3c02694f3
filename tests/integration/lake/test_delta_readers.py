"""A Delta table that we write is what readers and writers that others wrote take for one."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession
from tests.doors.writing import copy, finish, maintained, publish
from tests.integration.doors.test_odd_names import KEY, ODD, Row, odd_row, states

from tailrace.errors import DefiniteError, ResyncError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.delta.rows.row_files import RowSizes
from tailrace.lake.delta.table import DeltaTable as OurTable
from tailrace.lake.door import Wanted
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableSchema
from tailrace.storage.local import LocalFolder


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(10 * (seq or 0)), 7, 1, seq)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders"


@pytest.fixture
def table(path: Path) -> OurTable:
    return DeltaFormat().table(LocalFolder(path))


def by_spark(spark: SparkSession, path: Path) -> list[Row]:
    return ordered(spark.read.format("delta").load(str(path)).toArrow())


def by_delta_rs(path: Path, version: int | None = None) -> list[Row]:
    table = DeltaTable(path, version=version)
    return ordered(pa.table(QueryBuilder().register("orders", table).execute("select * from orders")))


def by_duckdb(path: Path, version: int | None = None) -> list[Row]:
    at = "" if version is None else f", version => {version}"
    return ordered(loaded().execute(f"from delta_scan('{path}'{at})").to_arrow_table())


def loaded() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob(f"v{duckdb.__version__}/*.duckdb_extension"))
    return connection.execute(f"load '{extension}'")


def ordered(found: pa.Table) -> list[Row]:
    """Readers carry the same values in different types of Arrow."""
    wanted = {field.name: field.type for field in row_schema(ODD)}
    columns = [found.column(name).cast(wanted.get(name, found.schema.field(name).type)) for name in found.column_names]
    rows: list[Row] = pa.table(columns, found.column_names).to_pylist()
    return sorted(rows, key=lambda each: each[KEY[0]])


def empty_row(number: int) -> Row:
    return odd_row(number, ODD) | {column.name: None for column in ODD.columns if column.name not in KEY}


def land(table: OurTable, rows: list[Row], schema: TableSchema = ODD) -> None:
    copy(table, pa.Table.from_pylist(rows, schema=row_schema(schema)), schema, stamp(None), parts=2)


def test_three_readers_agree_on_every_type_nulls_deleted_rows_and_columns_that_came_and_went(
    spark: SparkSession, path: Path
) -> None:
    table = DeltaFormat(RowSizes(group_rows_max=3)).table(LocalFolder(path))
    oracle = {number: odd_row(number, ODD) for number in range(20)} | {20: empty_row(20)}
    land(table, list(oracle.values()))
    for seq, number in enumerate((3, 4, 17), 1):
        changed, gone, left_out = odd_row(number, ODD, **{"a,b": -1}), odd_row(number + 1, ODD), "it's"
        partial = odd_row(number + 2, ODD, **{"a,b": -2, left_out: None})
        batch = states(
            ODD,
            changed | {FRESH: number not in oracle},
            gone | {DELETED: True},
            partial | {UNCHANGED: [left_out]},
            empty_row(100 + seq) | {FRESH: True},
        )
        publish(table, batch, ODD, stamp(seq), parts=seq)
        oracle |= {number: changed, 100 + seq: empty_row(100 + seq)}
        oracle[number + 2] = partial | {left_out: oracle[number + 2][left_out]}
        del oracle[number + 1]
        if number == 3:
            oracle[4] = odd_row(4, ODD)
            publish(table, states(ODD, oracle[4] | {FRESH: True}), ODD, stamp(seq))
    expected = [oracle[number] for number in sorted(oracle)]
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == expected

    renamed = [replace(column, name=f"{column.name}!") if column.number == 4 else column for column in ODD.columns]
    narrower = replace(ODD, columns=tuple(column for column in renamed if column.number != 3))
    table.evolve(narrower)
    expected = [{name: row["a,b" if name == "a,b!" else name] for name in narrower.names} for row in expected]
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == expected

    again = replace(narrower, columns=(*narrower.columns, Column(ODD.columns[2].name, "boolean", "BOOLEAN", 50)))
    left_out = ["it's", "a,b!"]
    partial = expected[0] | {ODD.columns[2].name: False} | dict.fromkeys(left_out)
    publish(table, states(again, partial | {UNCHANGED: left_out}, expected[1] | {DELETED: True}), again, stamp(9))
    expected = [row | {ODD.columns[2].name: None} for row in (expected[0], *expected[2:])]
    expected[0][ODD.columns[2].name] = False
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == expected


def test_three_readers_find_texts_of_any_letters_and_length_by_the_bounds_of_their_files(
    spark: SparkSession, table: OurTable, path: Path
) -> None:
    last = "\U0010ffff"
    texts = [
        "z" * 32 + last + "a",
        last * 40,
        "\uffff" * 33,
        "z" * 40,
        "z" * 31 + "\U00010000" * 5,
        "\U0001f600",
        "\u2028",
    ]
    schema = replace(ODD, columns=(Column("id", "int", "INT", 1), Column("note", "string", "TEXT", 2)), key=("id",))
    rows = pa.table({"id": pa.array(range(len(texts)), pa.int32()), "note": texts})
    copy(table, rows, schema, stamp(None), parts=len(texts))
    spark.read.format("delta").load(str(path)).createOrReplaceTempView("orders")
    rust = QueryBuilder().register("orders", DeltaTable(path))
    duck = loaded()
    for number, text in enumerate(texts):
        query = f"select id from orders where note = '{text}'"
        assert [row["id"] for row in spark.sql(query).collect()] == [number]
        assert pa.table(rust.execute(query)).to_pydict() == {"id": [number]}
        assert duck.execute(query.replace("orders", f"delta_scan('{path}')")).fetchall() == [(number,)]


def test_an_empty_table_and_an_empty_publish_are_versions(spark: SparkSession, table: OurTable, path: Path) -> None:
    land(table, [])
    publish(table, states(ODD), ODD, stamp(1))
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == []
    publish(table, states(ODD, odd_row(1, ODD) | {FRESH: True}), ODD, stamp(2))
    publish(table, states(ODD, odd_row(1, ODD) | {DELETED: True}), ODD, stamp(3))
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == []


@pytest.mark.proof
def test_delta_s_own_history_time_travel_optimize_vacuum_and_checkpoints_work_and_publishing_goes_on(
    spark: SparkSession, table: OurTable, path: Path
) -> None:
    land(table, [odd_row(number, ODD) for number in range(6)])
    publish(table, states(ODD, odd_row(1, ODD, **{"a,b": 1}), odd_row(2, ODD) | {DELETED: True}), ODD, stamp(1))
    history = spark.sql(f"describe history delta.`{path}`").orderBy("version").collect()
    assert [(row["version"], row["operation"], row["userMetadata"]) for row in history] == [
        (0, "COPY", stamp(None).to_json()),
        (1, "PUBLISH", stamp(1).to_json()),
    ]
    assert spark.read.format("delta").option("versionAsOf", 0).load(str(path)).count() == 6

    draft = table.publish(ODD, stamp(2))
    batch = states(ODD, odd_row(3, ODD, **{"a,b": 2}))
    part = draft.write(batch.to_batches())
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointInterval' = '2')")
    spark.sql(f"optimize delta.`{path}`")
    with pytest.raises(Exception, match="another writer made version 2"):
        draft.commit([part])
    assert finish(table.publish(ODD, stamp(2)), batch) == 4
    with_setting(spark, f"vacuum delta.`{path}` retain 0 hours")
    assert list((path / "_delta_log").glob("*.checkpoint.parquet"))

    again = DeltaFormat().table(LocalFolder(path))
    publish(again, states(ODD, odd_row(4, ODD) | {DELETED: True}), ODD, stamp(3))
    changes = {1: {"a,b": 1}, 3: {"a,b": 2}}
    expected = [odd_row(number, ODD, **changes.get(number, {})) for number in (0, 1, 3, 5)]
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == expected


def with_setting(spark: SparkSession, statement: str) -> None:
    """Any retention is allowed, and no more tasks are started than these small tables need."""
    settings = {"spark.databricks.delta.retentionDurationCheck.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    spark.sql(statement)
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.parametrize(
    "statement",
    [
        "update {t} set `a,b` = 99 where `order id` = 1",
        "delete from {t} where `order id` = 1",
        "insert into {t} select 77 as `order id`, * except (`order id`) from {t} limit 1",
        "merge into {t} using (select 2 as id) s on {t}.`order id` = s.id when matched then delete",
        pytest.param("restore table {t} to version as of 0", marks=pytest.mark.proof),
    ],
    ids=["update", "delete", "insert", "merge", "restore"],
)
def test_what_a_user_does_to_the_rows_is_noticed_and_a_copy_repairs_it(
    spark: SparkSession, table: OurTable, path: Path, statement: str
) -> None:
    rows = [odd_row(number, ODD) for number in range(4)]
    land(table, rows)
    publish(table, states(ODD, odd_row(0, ODD, **{"a,b": 1})), ODD, stamp(1))
    spark.sql(statement.format(t=f"delta.`{path}`"))
    for each in (table, DeltaFormat().table(LocalFolder(path))):
        with pytest.raises(ResyncError, match=f"another writer's {statement.split(maxsplit=1)[0].upper()}|WRITE"):
            publish(each, states(ODD, odd_row(3, ODD)), ODD, stamp(2))
    land(table, rows)
    publish(table, states(ODD, odd_row(3, ODD, **{"a,b": 3})), ODD, stamp(2))
    assert by_spark(spark, path) == by_duckdb(path) == [*rows[:3], odd_row(3, ODD, **{"a,b": 3})]


def test_a_table_with_features_that_we_do_not_keep_is_refused_by_name(
    spark: SparkSession, table: OurTable, path: Path
) -> None:
    land(table, [odd_row(1, ODD)])
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableRowTracking' = 'true')")
    with pytest.raises(DefiniteError, match="cannot keep: rowTracking") as error:
        publish(table, states(ODD, odd_row(1, ODD)), ODD, stamp(1))
    assert error.value.table == "shop.orders"


def test_without_deletion_vectors_files_are_written_again(spark: SparkSession, table: OurTable, path: Path) -> None:
    land(table, [odd_row(number, ODD) for number in range(4)])
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableDeletionVectors' = 'false')")
    publish(table, states(ODD, odd_row(1, ODD) | {DELETED: True}, odd_row(2, ODD, **{"a,b": 1})), ODD, stamp(1))
    expected: list[Any] = [odd_row(0, ODD), odd_row(2, ODD, **{"a,b": 1}), odd_row(3, ODD)]
    assert by_spark(spark, path) == by_delta_rs(path) == expected
    assert not list(path.glob("*.bin"))


@pytest.mark.proof
def test_three_readers_agree_on_what_is_left_of_the_past_and_refuse_the_rest(
    spark: SparkSession, table: OurTable, path: Path
) -> None:
    """Versions that are not kept are missing in the middle of the table's log. Users' own commands still work on it."""
    oracle = {number: odd_row(number, ODD) for number in range(30)}
    land(table, list(oracle.values()))
    other = {"commitInfo": {"operation": "WRITE"}}, {"txn": {"appId": "theirs", "version": 3, "lastUpdated": 1}}
    (path / "_delta_log" / f"{1:020d}.json").write_text("\n".join(map(json.dumps, other)))
    history: dict[int, list[Row]] = {}
    for seq in range(1, 40):
        oracle[seq % 30] = odd_row(seq % 30, ODD, **{"a,b": seq})
        oracle[100 + seq] = odd_row(100 + seq, ODD)
        version = publish(table, states(ODD, oracle[seq % 30], oracle[100 + seq] | {FRESH: True}), ODD, stamp(seq))
        while version is not None:
            history[version] = [oracle[number] for number in sorted(oracle)]
            version = maintained(table)
    newest, wanted = max(history), frozenset({10, 11, 25})
    now = time.time()
    pruned = table.prune(Wanted(wanted, until=now, strangers_until=now))
    assert (pruned.commits > 20, pruned.files > 20) == (True, True)
    assert table.prune(Wanted(wanted, until=now, strangers_until=now)).files == 0
    with_setting(spark, f"vacuum delta.`{path}`")
    for version in (*wanted, newest):
        in_spark = spark.read.format("delta").option("versionAsOf", version).load(str(path)).toArrow()
        assert ordered(in_spark) == by_duckdb(path, version) == by_delta_rs(path, version) == history[version]
        assert DeltaFormat().table(LocalFolder(path)).version(version) == table.version(version)
    with pytest.raises(Exception, match="non-existent version 20"):
        spark.read.format("delta").option("versionAsOf", 20).load(str(path)).toArrow()
    with pytest.raises(duckdb.Error, match="end version"):
        by_duckdb(path, 20)
    assert table.version(20) is None
    assert DeltaTable(path).transaction_version("theirs") == 3

    spark.sql(f"optimize delta.`{path}`")
    publish(DeltaFormat().table(LocalFolder(path)), states(ODD, oracle.pop(3) | {DELETED: True}), ODD, stamp(41))
    assert spark.sql(f"describe history delta.`{path}`").count() > 3
    written = [file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert {file.parent for file in written} > {path}, "Delta puts its own files of such a table into folders"
    assert by_spark(spark, path) == by_delta_rs(path) == by_duckdb(path) == [oracle[n] for n in sorted(oracle)]
