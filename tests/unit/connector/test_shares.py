"""How much of the time publishing and upkeep take for themselves."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.doors.parquet_lake import ParquetFormat
from tests.doors.scripted import ScriptedSource

from tailrace.connector._apply import Applier, LakeParts
from tailrace.connector._pace import due_after
from tailrace.connector._upkeep import Upkeep
from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.door import Definition
from tailrace.spark.session import LazySession


def test_a_publish_is_followed_by_three_times_as_long_for_others_unless_the_log_is_ahead() -> None:
    assert due_after(100.0, 102.0, 1.0, is_behind=False) == 108.0
    assert due_after(100.0, 100.01, 1.0, is_behind=False) == 101.0, "as often as was asked for, at most"
    assert due_after(100.0, 160.0, 1.0, is_behind=False) == 190.0, "no batch waits for longer than half a minute"
    assert due_after(100.0, 102.0, 1.0, is_behind=True) == 102.0


class Silent:
    """Listens and says nothing."""

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        raise AssertionError

    def table_followed(self, table: TableId, definition: Definition | None) -> None:
        raise AssertionError


def test_upkeep_takes_a_quarter_of_the_time(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    parts = LakeParts(LazySession(lambda: None), home, ParquetFormat(), ScriptedSource)  # type: ignore[arg-type]
    applier = Applier(parts, 1, Silent())
    seconds = itertools.count(0.0)
    upkeep = Upkeep(parts, ConnectorSettings(home.path), applier, lambda: next(seconds))
    taken = 0
    for _ in range(40):
        # A step finds that nobody has looked at this lake yet, and notes that.
        home.maintained_file.unlink(missing_ok=True)
        upkeep.step()
        taken += home.maintained_file.exists()
    applier.close()
    # Each took one second.
    assert 0.2 < taken / next(seconds) < 0.27
