"""How much of the time publishing and upkeep take for themselves."""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from tests.doors.one_thread import OneThread

from tailrace.connector.pace import due_after
from tailrace.connector.publish.batch import Publisher
from tailrace.connector.publish.following_table import FollowingTable, Standing
from tailrace.connector.publish.live_table import LiveTable
from tailrace.connector.publish.upkeep import Upkeep
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.home import LakeHome
from tailrace.lake.stamp import Stamp
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.kinds import codec_of


def test_a_publish_is_followed_by_three_times_as_long_for_others_unless_the_log_is_ahead() -> None:
    assert due_after(100.0, 101.0, 1.0, is_behind=False) == 101.5, "a short one takes two thirds of the time at most"
    assert due_after(100.0, 102.0, 1.0, is_behind=False) == 105.5
    assert due_after(100.0, 110.0, 1.0, is_behind=False) == 137.5, "a long one little more than a quarter"
    assert due_after(100.0, 100.01, 1.0, is_behind=False) == 101.0, "as often as was asked for, at most"
    assert due_after(100.0, 160.0, 1.0, is_behind=False) == 190.0, "no batch waits for longer than half a minute"
    assert due_after(100.0, 102.0, 1.0, is_behind=True) == 102.0


@dataclass
class Live:
    tables: dict[TableId, LiveTable] = field(default_factory=dict)
    publisher: Publisher = field(
        default_factory=lambda: Publisher(OneThread(), TaskSizes(), ThreadPoolExecutor(1), "test")
    )


def test_upkeep_takes_a_quarter_of_the_time(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    seconds = itertools.count(0.0)
    upkeep = Upkeep(home, ConnectorSettings(home.lake), Live(), lambda: next(seconds))
    taken = 0
    for _ in range(40):
        # A step finds that nobody has looked at this lake yet, and notes that.
        home.runs.maintained.unlink(missing_ok=True)
        upkeep.step()
        taken += home.runs.maintained.exists()
    # Each took one second.
    assert 0.2 < taken / next(seconds) < 0.27


def test_tables_that_are_always_written_to_leave_time_for_each_other_and_for_what_can_be_deleted(
    tmp_path: Path,
) -> None:
    home = LakeHome.create(tmp_path / "lake")
    live = Live({table: new_table(home, table) for table in (TableId("a", name) for name in "bcd")})
    for seq in range(5):
        home.cuts.append(
            PublishedCut(seq, SourcePosition(seq), {str(each): t.named for each, t in live.tables.items()})
        )
    home.runs.maintained.touch()
    settings = ConnectorSettings(home.lake, retain_seconds=0, retain_all_seconds=0)
    upkeep, tidied = Upkeep(home, settings, live, lambda: 0.0), Counter[str]()
    for _ in range(12):
        for table in live.tables.values():
            table.is_untidy = True
        upkeep.step()
        tidied.update(str(name) for name, table in live.tables.items() if not table.is_untidy)
    assert min(tidied[name] for name in ("a.b", "a.c", "a.d")) >= 2
    assert len(home.cuts.all()) == 1


def new_table(home: LakeHome, table: TableId) -> LiveTable:
    schema = TableSchema(table, 7, (Column("id", "int", "INT", 1),), ("id",))
    stored = DeltaFormat().table(home.place_of(table))
    stamp = Stamp(SourcePosition(0), 7, 1, None)
    draft = stored.copy(schema, stamp)
    version = draft.commit([draft.write(pa.table({"id": pa.array([1], pa.int32())}).to_batches())])
    following = FollowingTable(table, stored, codec_of("postgres"), Standing(version, stamp, version), seq=0)
    return LiveTable(following, SourcePosition(0))
