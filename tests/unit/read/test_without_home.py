"""A lake whose home is somewhere else: the lake alone answers from its published cuts, with its home live.

The lake here is a folder that is taken for a bucket, so that both can be had: its home is a folder beside it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource

from tailrace.connector.status import lake_status
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.lake_address import BucketLake
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import TableState
from tailrace.read.cut import NO_HOME, Cut, cut_of
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

ORDERS = "shop.orders"
BUCKET = BucketLake("s3://bucket/shop")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two cuts, of one row and of two, and a third row in the log."""
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint"}, key=["id"])
    made = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)), "delta")
    for number in range(3):
        script.transaction([Insert(ORDERS, {"id": number})])
        made.log()
        if number < 2:
            made.publish({ORDERS: [{"id": each} for each in range(number + 1)]})
    made.home.runs.vouched.store(LogReader(made.home.log).head.ordinal)
    return tmp_path / "lake"


def home_in(folder: Path, lake: Path) -> LakeHome:
    return LakeHome.find(replace(BUCKET, home=folder), LocalFolder(lake))


def ids(home: LakeHome, as_of: SourcePosition | datetime | None = None) -> tuple[list[int], Cut[object]]:
    with connect(is_private=True) as connection:
        found = cut_of(connection, home, as_of=as_of)
        return [row[0] for row in found.sql("select id from orders order by id").fetchall()], found


def test_the_newest_cut_is_read_without_a_home_and_the_newest_commit_with_it(lake: Path, tmp_path: Path) -> None:
    elsewhere, here = home_in(tmp_path / "none", lake), home_in(lake / "_tailrace", lake)
    rows, found = ids(elsewhere)
    assert (rows, found.note) == ([0, 1], NO_HOME)
    rows, found = ids(here)
    assert (rows, found.note) == ([0, 1, 2], None)
    assert not (tmp_path / "none").exists()


def test_without_a_home_the_past_is_read_where_a_cut_was_published_and_nowhere_else(lake: Path, tmp_path: Path) -> None:
    home = home_in(tmp_path / "none", lake)
    first, second = home.cuts.all()
    assert ids(home, first.position)[0] == [0]
    assert ids(home, second.position)[0] == [0, 1]
    between = SourcePosition(second.position.ordinal - 1)
    now = datetime.now(UTC)
    for point in (between, SourcePosition(second.position.ordinal + 1), now):
        with pytest.raises(DefiniteError, match="only published cuts can be read") as error:
            ids(home, point)
        assert "the last one before" in str(error.value.hint)


def test_a_home_that_the_lake_has_left_behind_is_not_read(lake: Path) -> None:
    """The lake was continued elsewhere: its newest cut has what the log here never had."""
    home = home_in(lake / "_tailrace", lake)
    newest = home.cuts.newest()
    assert newest is not None
    home.cuts.append(replace(newest, seq=LogReader(home.log).head.seq + 1))
    rows, found = ids(home)
    assert (rows, found.note) == ([0, 1], NO_HOME)


def test_a_folder_has_its_home_inside_and_reads_nothing_without_its_log(lake: Path) -> None:
    assert ids(LakeHome.find(lake))[0] == [0, 1, 2]
    (lake / "_tailrace" / "log").rename(lake / "_tailrace" / "gone")
    with pytest.raises(DefiniteError, match="has no log yet"):
        ids(LakeHome.find(lake))


def test_tables_are_listed_without_a_home(lake: Path, tmp_path: Path) -> None:
    for folder, is_here in ((tmp_path / "none", False), (lake / "_tailrace", True)):
        status = lake_status(home_in(folder, lake))
        assert [(str(each.table), each.record.state) for each in status.tables] == [(ORDERS, TableState.LIVE)]
        assert status.is_here is is_here
