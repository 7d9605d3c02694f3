"""Tables that follow a new log, begun after the newest cut of a lake whose log was lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.parquet_lake import ParquetFormat
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.unit.connector.publish.test_applier import ORDERS, PARTS, TABLES, World

from tailrace.connector.start.new_log import begin_after_cut
from tailrace.errors import ResyncError
from tailrace.lake.records.confirmed import Confirmed
from tailrace.log.write.writer import LogOptions
from tailrace.model.cut import PublishedCut


@pytest.fixture
def world(tmp_path: Path) -> World:
    script = Script(tmp_path / "shop.jsonl")
    for name in TABLES:
        script.create_table(name, {"id": "int", "note": "string"}, key=["id"])
    lake = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([Insert(name, {"id": 1, "note": "first"}) for name in TABLES])
    lake.log()
    lake.publish({name: script.state(name) for name in TABLES})
    lake.home.confirmed.store(Confirmed(0))
    return World(script, lake)


def lose_log(world: World) -> PublishedCut:
    """The machine is gone; the next one begins a log."""
    shutil.rmtree(world.lake.home.log)
    cut = begin_after_cut(world.lake.home, ParquetFormat(), world.lake.source.identify(), LogOptions())
    assert cut is not None
    world.lake.log()
    return cut


def test_a_table_that_had_nothing_to_publish_is_not_copied_again_because_another_is_ahead(world: World) -> None:
    """The connector died between two tables: orders is ahead of the newest cut. Parts has nothing since long before."""
    applier = world.applier()
    world.publish(applier, Insert(ORDERS, {"id": 2}))
    world.publish(applier, Insert(ORDERS, {"id": 3}))
    cuts = world.lake.home.cuts
    cuts.replace(cuts.all()[:-1])
    lose_log(world)
    upto = world.commit(Insert(PARTS, {"id": 2}), Insert(ORDERS, {"id": 4}))
    cut = world.applier().advance(world.reader, upto)
    assert cut is not None
    assert {name: world.rows(name, cut) for name in TABLES} == {name: world.script.state(name) for name in TABLES}


def test_a_table_that_lost_the_version_of_the_cut_is_not_in_what_the_new_log_continues(world: World) -> None:
    applier = world.applier()
    world.publish(applier, Insert(ORDERS, {"id": 2}), Insert(PARTS, {"id": 2}))
    newest = world.lake.home.cuts.newest()
    assert newest is not None
    shutil.rmtree(world.lake.path_of(TABLES[PARTS]) / f"v{newest.tables[PARTS].version:08}")
    assert set(lose_log(world).tables) == {ORDERS}


def test_a_home_that_comes_back_after_another_machine_has_gone_on_does_not_skip_changes(world: World) -> None:
    """The other machine's log gave other numbers: its cut has the number of a later transaction of this log."""
    upto = world.commit(Insert(PARTS, {"id": 2}))
    newest = world.lake.home.cuts.newest()
    assert newest is not None
    world.lake.home.cuts.append(replace(newest, seq=upto))
    with pytest.raises(ResyncError, match="it is another log"):
        world.applier()


def test_a_table_that_is_ahead_with_a_transaction_that_the_source_lost_is_copied_again(world: World) -> None:
    """A standby took over that did not have what one table had already, and the machine with the log is gone, too."""
    applier = world.applier()
    world.publish(applier, Insert(ORDERS, {"id": 2}))
    cuts = world.lake.home.cuts
    cuts.replace(cuts.all()[:-1])
    kept = world.script.path.read_text().splitlines(keepends=True)
    world.script.path.write_text("".join(kept[:-1]))
    world.script.transaction([Insert(PARTS, {"id": 2}), Insert(PARTS, {"id": 3}), Insert(PARTS, {"id": 4})])
    lose_log(world)
    with pytest.raises(ResyncError, match="the source no longer has a transaction"):
        world.applier()
