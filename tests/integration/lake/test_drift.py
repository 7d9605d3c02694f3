"""A lake table that is not what was published is noticed at the next publish, and copied again with the reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.one_thread import WatchedThread
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.doors.writing import copy as write_copy
from tests.doors.writing import publish
from tests.running import DIVIDED, Running, running

import tailrace
from tailrace.connector.events import TableChanged
from tailrace.engine.door import Job
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import LakeTable
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source import kinds
from tailrace.storage.local import LocalFolder

ORDERS = "shop.orders"
SCHEMA = TableSchema(
    TableId("shop", "orders"), 1, (Column("id", "int", "INT", 1), Column("note", "string", "STRING", 2)), ("id",)
)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "int", "note": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": number, "note": "new"}) for number in range(5)])
    return script


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1)


@pytest.fixture
def copy(script: Script, settings: ConnectorSettings, spark: SparkSession) -> Iterator[Running]:
    with running(settings, ScriptedSource(str(script.path)), spark) as run:
        run.catch_up()
        yield run


def published(spark: SparkSession, lake: Path) -> list[dict[str, Any]]:
    frame = tailrace.cut(spark, lake, published=True, register=False).tables[ORDERS]
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row["id"])


def reasons(run: Running) -> list[str]:
    changed = [event.record for event in run.events if isinstance(event, TableChanged)]
    return [record.reason or "" for record in changed if record.state is TableState.RESYNCING]


def test_rows_that_others_changed_and_a_folder_put_back_from_a_backup_are_repaired(
    copy: Running, script: Script, spark: SparkSession, tmp_path: Path
) -> None:
    path = copy.lake / "shop" / "orders"
    table = f"delta.`{path}`"

    def back_up_and_restore() -> None:
        shutil.copytree(path, tmp_path / "backup")
        script.transaction([Update(ORDERS, (4,), {"note": "after the backup"})])
        copy.catch_up()
        shutil.rmtree(path)
        shutil.copytree(tmp_path / "backup", path)

    ways: list[tuple[Callable[[], Any], str]] = [
        (lambda: spark.sql(f"delete from {table} where id = 1"), "another writer's DELETE"),
        (lambda: spark.sql(f"insert into {table} values (77, 'a user')"), "another writer's WRITE"),
        (lambda: spark.sql(f"update {table} set note = 'a user' where id = 2"), "another writer's UPDATE"),
        (back_up_and_restore, "its lake table is not the one that was published"),
        (lambda: ours(path, 99, FRESH), "the lake had drifted from the source: row 99 is there already"),
    ]
    for number, (interfere, reason) in enumerate(ways, 2):
        interfere()
        also = [Insert(ORDERS, {"id": 99, "note": "the source's"})] if "99" in reason else []
        script.transaction([Update(ORDERS, (3,), {"note": f"{number}"}), *also])
        copy.wait_for_state(ORDERS, TableState.LIVE, copy=number)
        copy.catch_up()
        assert reason in reasons(copy)[-1]
        assert published(spark, copy.lake) == script.state(ORDERS)


@pytest.mark.parametrize("sizes", [TaskSizes(), DIVIDED], ids=["whole", "divided"])
def test_tasks_prove_that_a_row_is_there_and_only_once(
    script: Script, settings: ConnectorSettings, spark: SparkSession, sizes: TaskSizes
) -> None:
    path = settings.lake / "shop" / "orders"
    ways = (
        (lambda: ours(path, 3, DELETED), "row 3 is missing"),
        (lambda: twice(path, script, 3), "row 3 is there more than once"),
    )
    with running(replace(settings, sizes=sizes), ScriptedSource(str(script.path)), spark) as run:
        run.catch_up()
        for number, (interfere, reason) in enumerate(ways, 2):
            interfere()
            script.transaction([Update(ORDERS, (3,), {"note": f"{number}"})])
            run.wait_for_state(ORDERS, TableState.LIVE, copy=number)
            assert reason in reasons(run)[-1]
            assert tailrace.arrow(run.lake, ORDERS).sort_by("id").to_pylist() == script.state(ORDERS)


def test_an_optimize_between_a_look_at_the_table_and_the_commit_is_no_trouble(
    script: Script, settings: ConnectorSettings, spark: SparkSession
) -> None:
    path = settings.lake / "shop" / "orders"
    waiting = True
    published: list[Job] = []

    def interfere(job: Job) -> None:
        """Tasks have written the rows, and nothing is committed yet."""
        if not waiting and job.description.startswith("publish"):
            published.append(job)
            if len(published) == 1:
                spark.sql(f"optimize delta.`{path}`")

    with running(settings, ScriptedSource(str(script.path)), WatchedThread(interfere)) as run:
        run.catch_up()
        script.transaction([Update(ORDERS, (3,), {"note": "makes a second file"})])
        run.catch_up()
        waiting = False
        script.transaction([Update(ORDERS, (2,), {"note": "meanwhile"}), Insert(ORDERS, {"id": 9, "note": "new"})])
        run.catch_up()
        assert len(published) == 2, "once more, over the files that the other writer made"
        assert tailrace.arrow(run.lake, ORDERS, published=True).sort_by("id").to_pylist() == script.state(ORDERS)
        assert reasons(run) == []
    commits = "".join(commit.read_text() for commit in (path / "_delta_log").glob("*.json"))
    assert commits.count('"operation":"OPTIMIZE"') == 1


def standing(table: LakeTable) -> Stamp:
    version = table.version()
    assert version is not None
    assert version.stamp is not None
    return version.stamp


def twice(path: Path, script: Script, id: int) -> None:
    """A mistake of our own: one row is there two times."""
    rows = [*script.state(ORDERS), *(row for row in script.state(ORDERS) if row["id"] == id)]
    table = DeltaFormat().table(LocalFolder(path))
    write_copy(table, pa.Table.from_pylist(rows, schema=row_schema(SCHEMA)), SCHEMA, standing(table))


def ours(path: Path, id: int, what: str) -> None:
    """A mistake of our own: a row more or less than the source has, in a version that says it is whole."""
    table = DeltaFormat().table(LocalFolder(path))
    nothing = {DELETED: False, FRESH: False, UNCHANGED: None, ORIGIN: None}
    state = {"id": id, "note": "nobody's", **nothing, what: True}
    fields = [(DELETED, pa.bool_()), (FRESH, pa.bool_()), (UNCHANGED, pa.list_(pa.string()))]
    shape = pa.schema([*row_schema(SCHEMA), *fields, (ORIGIN, pa.struct([("id", pa.int32())]))])
    publish(table, pa.Table.from_pylist([state], schema=shape), SCHEMA, standing(table))
