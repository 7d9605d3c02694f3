"""What a power cut leaves of a lake table, in every format: whole versions, found again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.doors.damage import DAMAGES, lose, record_syncs, zero
from tests.doors.writing import publish
from tests.integration.doors.test_lake_tables import FORMATS, SCHEMA, content, land, newest, row, stamp, state, states

from tailrace.errors import ResyncError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import LakeFormat, LakeTable, TableVersion
from tailrace.storage.local import LocalFolder

NEW = "ends of lines to Unicode: \u2028\x85\x1c"
BATCH = states(state(row(1, "changed")), state(row(2), deleted=True), state(row(9, NEW), fresh=True))
BEFORE, AFTER = [row(1), row(2), row(3)], [row(1, "changed"), row(3), row(9, NEW)]


@pytest.fixture(params=FORMATS, ids=lambda each: each.name)
def lake_format(request: pytest.FixtureRequest) -> LakeFormat:
    found: LakeFormat = request.param
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "shop" / "orders"


@pytest.fixture
def table(lake_format: LakeFormat, path: Path) -> LakeTable:
    """At version 0: what landed."""
    table = lake_format.table(LocalFolder(path.parents[1]).at("shop/orders"))
    land(table, BEFORE)
    return table


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def contents(folder: Path, among: set[Path]) -> dict[Path, bytes]:
    return {path: (folder / path).read_bytes() for path in files(folder) & among}


def commit_of(path: Path, version: int) -> Path:
    """The file without which there is no such version."""
    commit = path / "_delta_log" / f"{version:020d}.json"
    return commit if commit.exists() else path / f"v{version:08d}" / "rows.parquet"


def is_rows(file: Path) -> bool:
    return file.suffix in (".parquet", ".bin")


@pytest.mark.proof
def test_whatever_file_is_damaged_the_table_is_the_whole_new_version_or_the_one_before(
    table: LakeTable, lake_format: LakeFormat, path: Path, tmp_path: Path
) -> None:
    durable = files(path)
    publish(table, BATCH, SCHEMA, stamp(1))
    commit = commit_of(path, 1).relative_to(path)
    rows_read: dict[frozenset[Path], Any] = {}
    for file, damage in product(sorted(files(path) - durable), DAMAGES):
        copied = tmp_path / f"{damage.__name__}_{file.name}"
        shutil.copytree(path, copied)
        damage(copied / file)
        again = lake_format.table(LocalFolder(copied))
        moved = again.recover(0, tmp_path / "aside" / copied.name)
        left = files(copied)
        if newest(again) == 0:
            assert moved == [1]
            assert contents(copied, durable) == contents(path, durable)
            assert {each.parts[0] for each in left - durable} & {"_delta_log", "v00000001"} == set()
        else:
            assert not is_rows(file), (file, damage)
            assert file != commit, damage
            if frozenset(left) not in rows_read:
                rows_read[frozenset(left)] = content(again)
            assert rows_read[frozenset(left)] == AFTER, (file, damage)
            assert contents(copied, left) == contents(path, left), (file, damage)


@pytest.mark.parametrize(
    ("damage", "trusted"), [(zero, 0), (lose, 1)], ids=["zeros", "lost although it was made durable"]
)
def test_after_going_back_the_same_states_can_be_published_again(
    table: LakeTable,
    path: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    trusted: int,
) -> None:
    publish(table, BATCH, SCHEMA, stamp(1))
    assert table.version(0) == TableVersion(0, stamp(None))
    assert table.version(1) == table.version() == TableVersion(1, stamp(1))
    assert table.version(2) is None
    damage(commit_of(path, 1))
    table.recover(trusted, tmp_path / "aside")
    assert table.version() == TableVersion(0, stamp(None))
    assert content(table) == BEFORE
    assert publish(table, BATCH, SCHEMA, stamp(1)) == 1
    assert content(table) == AFTER
    assert (table.recover(0, tmp_path / "aside"), newest(table)) == ([], 1)


def test_a_lost_version_takes_the_later_ones_with_it_and_without_any_there_is_no_table(
    table: LakeTable, path: Path, tmp_path: Path
) -> None:
    for seq in (1, 2):
        publish(table, states(state(row(1, f"in {seq}"))), SCHEMA, stamp(seq))
    lose(commit_of(path, 1))
    table.recover(0, tmp_path / "aside")
    assert table.version() == TableVersion(0, stamp(None))
    assert [file for file in files(tmp_path / "aside") if "2" in file.name or "2" in file.parent.name]
    lose(commit_of(path, 0))
    table.recover(None, tmp_path / "aside")
    assert table.version() is None
    land(table, AFTER)
    assert (newest(table), content(table)) == (0, AFTER)


def test_what_is_made_durable_is_every_file_of_the_version_and_every_folder_up_to_the_lake_s(
    table: LakeTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = record_syncs(monkeypatch)
    table.make_durable(None)
    folders = {path, path.parent, path.parent.parent}
    assert (
        set(synced) >= {path / file for file in files(path)} | {(path / file).parent for file in files(path)} | folders
    )
    before = files(path)
    publish(table, BATCH, SCHEMA, stamp(1))
    synced.clear()
    table.make_durable(0)
    new = {path / file for file in files(path) - before}
    assert set(synced) >= new | {file.parent for file in new} | {path}
    assert not set(synced) & {path / file for file in before}, "what was durable is not synced again"


@pytest.mark.proof
def test_a_damaged_checkpoint_of_delta_is_put_aside_and_its_version_stays(spark: SparkSession, path: Path) -> None:
    table = DeltaFormat().table(LocalFolder(path))
    land(table, BEFORE)
    publish(table, BATCH, SCHEMA, stamp(1))
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointInterval' = '2')")
    log = path / "_delta_log"
    checkpoint = log / "00000000000000000002.checkpoint.parquet"
    zero(checkpoint)
    assert table.recover(1, path / "aside") == [2]
    assert (checkpoint.exists(), (log / "_last_checkpoint").exists()) == (False, False)
    assert (newest(table), content(table)) == (2, AFTER)


@pytest.mark.proof
def test_delta_forgets_the_stamps_of_old_versions_and_then_their_rows(spark: SparkSession, path: Path) -> None:
    table = DeltaFormat().table(LocalFolder(path))
    land(table, BEFORE)
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointInterval' = '2')")
    spark.sql(f"update delta.`{path}` set note = note")
    assert table.version(2) == TableVersion(2, stamp(None))
    for version in (0, 1):
        commit_of(path, version).unlink()
    assert table.version(2) == TableVersion(2, None)
    assert table.version(1) is None
    assert (table.recover(2, path / "aside"), newest(table)) == ([], 2)


def test_rows_and_vectors_that_are_damaged_while_a_connector_runs_are_noticed_by_the_publish_that_needs_them(
    path: Path, tmp_path: Path
) -> None:
    table = DeltaFormat().table(LocalFolder(path))
    land(table, [row(number, str(number)) for number in range(9)])
    publish(table, states(state(row(1, "changed")), state(row(2), deleted=True)), SCHEMA, stamp(1))
    partial = states(state(row(3), unchanged=["note"]), state(row(1, "again")))
    for suffix, damage in product((".parquet", ".bin"), DAMAGES):
        copied = tmp_path / f"{damage.__name__}{suffix}"
        shutil.copytree(path, copied)
        for file in copied.glob(f"*{suffix}"):
            damage(file)
        with pytest.raises(ResyncError, match=r"its file .* is gone|its file .* damaged"):
            publish(DeltaFormat().table(LocalFolder(copied)), partial, SCHEMA, stamp(2))
