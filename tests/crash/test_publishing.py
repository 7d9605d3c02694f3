"""A publisher that is killed between any two of its durable writes, or loses what it wrote: the lake is the source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.crash.publishing import HERE, IN_SPARK, IS_DIVIDED, sync
from tests.doors.damage import DAMAGES, empty, lose, zero_the_middle
from tests.doors.script import Delete, Insert, Script, Update

import tailrace
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.delta.rows import locator
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.storage.local import LocalFolder

TABLES = ("shop.orders", "shop.lines", "shop.parts", "shop.bills")
ROWS = 80
BOUNDARIES = (
    "delta.index",
    "delta.rows",
    "delta.vectors",
    "storage.draft",
    "storage.link",
    "delta.commit",
    "publish.table:2",
    "publish.durable",
    "publish.cut",
    "delta.merge",
)
"""In the order of a publish: keys indexed, rows and vectors written, the commit written and in place, the version
durable, the cut recorded; and then small files merged. The first is a task's, the others are the driver's."""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    for table in TABLES:
        script.create_table(table, {"id": "int", "note": "string", "large": "string"}, key=["id"])
        script.transaction([Insert(table, {"id": n, "note": "", "large": f"large {n}"}) for n in range(ROWS)])
    return script


def change(script: Script, number: int, *tables: str) -> None:
    """Something of every kind, in one transaction: every eighth row is touched in every round, the others in turn."""
    script.transaction(
        [
            step
            for table in tables
            for step in (
                Insert(table, {"id": 100 + number, "note": "new", "large": "new"}),
                *(Update(table, (n,), {"note": f"in {number}"}, leave_out=["large"]) for n in range(0, ROWS, 8)),
                Update(table, (1 + 4 * (number % 3),), {"note": "moves"}),
                Update(table, (2 if number % 2 else 1000,), {"id": 1000 if number % 2 else 2}, leave_out=["large"]),
                Delete(table, (ROWS - 1 - 4 * (number % 5),)),
                Insert(table, {"id": ROWS - 1 - 4 * (number % 5), "note": "again", "large": str(number)}),
                Delete(table, (ROWS - 2,) if number == 1 else (100 + number - 1,)),
            )
        ]
    )


def killed(script: Script, lake: Path, boundary: str, how: str = HERE) -> int:
    """The exit code of a run that dies there."""
    command = [sys.executable, "-m", "tests.crash.publishing", script.path, lake, how]
    # Spark's workers import the tests' own source.
    places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TAILRACE_FAILPOINT": boundary, "PYTHONPATH": places}
    return subprocess.run(command, env=environment, check=False).returncode


def rows(lake: Path, table: str, *, published: bool) -> list[dict[str, object]]:
    return tailrace.arrow(lake, table, published=published).sort_by("id").to_pylist()


def assert_equal(lake: Path, script: Script, *, published: bool = True) -> None:
    for table in TABLES:
        assert rows(lake, table, published=published) == script.state(table), table


@pytest.mark.parametrize("how", [HERE, pytest.param(IS_DIVIDED, marks=pytest.mark.proof)])
def test_killed_between_any_two_durable_writes_a_publisher_continues_and_the_lake_is_the_source(
    script: Script, tmp_path: Path, how: str
) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    for number, boundary in enumerate(BOUNDARIES, 1):
        change(script, number, *TABLES[:2])
        assert killed(script, lake, boundary, how) == -signal.SIGKILL, boundary
        assert_equal(lake, script, published=False)
    assert sync(script.path, lake, how) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(lake, script)
    copies = {record.copy for record in LakeHome(lake).tables.load().values()}
    assert copies == {1}, "nothing had to be copied again"


@pytest.mark.parametrize(
    "boundaries",
    [("delta.vectors",), pytest.param(("delta.rows", "delta.commit", "publish.durable"), marks=pytest.mark.proof)],
    ids=" ".join,
)
def test_killed_with_what_sparks_tasks_have_written_a_publisher_continues_and_the_lake_is_the_source(
    script: Script, tmp_path: Path, boundaries: tuple[str, ...]
) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    for number, boundary in enumerate(boundaries, 1):
        change(script, number, *TABLES[:2])
        assert killed(script, lake, boundary, IN_SPARK) == -signal.SIGKILL, boundary
        assert_equal(lake, script, published=False)
    assert killed(script, lake, "none", IN_SPARK) == 0
    assert_equal(lake, script)
    assert {record.copy for record in LakeHome(lake).tables.load().values()} == {1}, "nothing had to be copied again"


def newest_files(table: Path) -> dict[str, Path]:
    """The files of a table's newest version by what they are, and the index of some file."""
    log = CommitLog(LocalFolder(table))
    version = log.newest()
    assert version is not None
    files = {Path(name).suffix: table / name for name in log.read(version).new_files}
    index = next((table / locator.INDEX_FOLDER).iterdir())
    commit = table / log.commit_file(version)
    return {"commit": commit, "rows": files[".parquet"], "vectors": files[".bin"], "index": index}


@pytest.mark.parametrize(
    "damage",
    [pytest.param(each, marks=() if each in (lose, empty, zero_the_middle) else pytest.mark.proof) for each in DAMAGES],
)
def test_what_a_cut_names_may_be_lost_or_damaged_and_the_lake_is_the_source_all_the_same(
    script: Script, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    lake = tmp_path / "lake"
    sync(script.path, lake)
    change(script, 1, *TABLES)
    sync(script.path, lake)
    home = LakeHome(lake)
    for table, kind in zip(TABLES, ("commit", "rows", "vectors", "index"), strict=True):
        damage(newest_files(Path(home.place_of(TableId(*table.split("."))).address))[kind])
    change(script, 2, *TABLES)
    assert sync(script.path, lake) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(lake, script)
    copies = {str(table): record.copy for table, record in home.tables.load().items()}
    assert copies["shop.bills"] == 1, "an index is made again"
