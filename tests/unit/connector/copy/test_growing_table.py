"""A table that grows: its rows and how far its copy is become one version, whatever gets in the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.one_thread import OneThread
from tests.doors.parquet_lake import ParquetTable
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource

from tailrace.connector.copy.growing_table import GrowingTable
from tailrace.connector.copy.growth import Growth
from tailrace.connector.publish.batch import ATTEMPTS, Batch, Publisher
from tailrace.connector.publish.following_table import FollowingTable, Move, Standing
from tailrace.lake.door import ConflictError
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import TaskSizes

ORDERS = TableId("shop", "orders")


class BusyTable(ParquetTable):
    """Another writer comes first, some times."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.conflicts = 0

    def _meet(self) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("another writer was faster")

    def evolve(self, schema: TableSchema) -> int:
        if "later" in schema.names:
            self._meet()
        return super().evolve(schema)

    def restamp(self, stamp: Stamp) -> int:
        self._meet()
        return super().restamp(stamp)


@dataclass
class World:
    """A table of three rows, of which its copy has none yet."""

    script: Script
    lake: MadeLake
    stored: BusyTable
    grown: GrowingTable

    def batch(self) -> Batch:
        """Everything that the source has."""
        self.lake.log()
        reader = LogReader(self.lake.home.log)
        upto = reader.head.seq
        return Batch.read(reader, upto, reader.position_of(upto), [self.grown])

    def bring(self, batch: Batch) -> None:
        publisher = Publisher(OneThread(), TaskSizes(), ThreadPoolExecutor(1), "test")
        assert publisher.bring([self.grown], batch) == {ORDERS: None}

    def stored_growth(self) -> Growth:
        version = self.stored.version()
        assert version is not None
        assert version.stamp is not None
        return Growth.from_json(version.stamp.growth)


@pytest.fixture
def world(tmp_path: Path) -> World:
    script = Script(tmp_path / "shop.jsonl")
    schema = script.create_table(str(ORDERS), {"id": "int", "note": "string"}, key=["id"])
    lake = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([Insert(str(ORDERS), {"id": n, "note": "first"}) for n in (1, 2, 3)])
    lake.log()
    seq, growth = LogReader(lake.home.log).head.seq, Growth(["3"])
    stamp = Stamp(SourcePosition(0), schema.relation, 1, seq, growth.to_json())
    stored = BusyTable(lake.path_of(ORDERS))
    standing = Standing(stored.copy(schema, stamp).commit([]), stamp)
    following = FollowingTable(ORDERS, stored, ScriptedSource, standing, seq, schema.definition)
    return World(script, lake, stored, GrowingTable(following, growth, durable_seq=seq))


def test_a_row_that_came_without_its_large_columns_is_noted_in_the_version_that_lacks_it(world: World) -> None:
    world.script.transaction([Update(str(ORDERS), (3,), {"id": 7}, leave_out=("note",))])
    world.bring(world.batch())
    for growth in (world.grown.growth, world.stored_growth()):
        assert growth.again is not None
        assert growth.again.to_pylist() == [{"id": 7}]
    assert world.grown.following.is_durable
    assert world.grown.durable_seq == world.grown.seq


def test_what_is_to_be_read_again_is_not_forgotten_when_the_next_shape_meets_another_writer(world: World) -> None:
    """The rows are in by then, and are not published once more."""
    world.script.transaction([Update(str(ORDERS), (3,), {"id": 7}, leave_out=("note",))])
    batch = world.batch()
    world.script.alter(str(ORDERS), add={"later": "int"})
    schema = world.lake.source.describe([ORDERS])[ORDERS].schema
    world.grown.following.move = Move(schema, batch.position)
    world.stored.conflicts = ATTEMPTS
    world.bring(batch)
    assert world.stored.conflicts == 0
    assert world.grown.growth.again is not None
    assert world.grown.following.definition == schema.definition
    version = world.stored.version()
    assert version is not None
    assert version.number == 2, "begun, with the change, in another shape"


def test_a_stamp_that_meets_another_writer_is_tried_again_a_few_times(world: World) -> None:
    world.grown.following.reach(world.grown.seq + 1)
    world.stored.conflicts = ATTEMPTS
    with pytest.raises(ConflictError):
        world.grown.restamp(SourcePosition(50))
    assert world.grown.following.standing.stamp.seq == world.grown.seq - 1, "the table is where it was"
    world.stored.conflicts = ATTEMPTS - 1
    world.grown.restamp(SourcePosition(50))
    version = world.stored.version()
    assert version is not None
    assert version.stamp is not None
    assert (version.stamp.seq, version.stamp.position) == (world.grown.seq, SourcePosition(50))
    assert version.stamp.is_of(world.grown.following.standing.named)
    assert world.stored_growth().last == ("3",), "it still grows"
