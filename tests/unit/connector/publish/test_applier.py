"""Live tables, brought to one transaction and named by cuts: a scripted source, a real log, tables of Parquet."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest
from tests.doors.made_lake import MadeLake
from tests.doors.one_thread import OneThread
from tests.doors.parquet_lake import ParquetDraft, ParquetFormat, ParquetTable
from tests.doors.script import Alter, Insert, Script, Update
from tests.doors.scripted import ScriptedSource

from tailrace.connector.publish.applier import Applier
from tailrace.connector.publish.opening import LakeParts
from tailrace.errors import ResyncError, TailraceError, TransientError
from tailrace.lake.records.clean_shutdown import Left
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings, Retries
from tailrace.storage.door import Storage

ORDERS, PARTS = "shop.orders", "shop.parts"
TABLES = {name: TableId.parse(name) for name in (ORDERS, PARTS)}


class FullTable(ParquetTable):
    """Its disk is full for a while."""

    is_full = False

    def make_durable(self, since: int | None) -> None:
        if FullTable.is_full and self._path.name == "parts":
            raise OSError(errno.ENOSPC, "no space left on device")
        super().make_durable(since)


class FullFormat(ParquetFormat):
    def table(self, place: Storage) -> FullTable:
        return FullTable(Path(place.address))


class UnansweredTable(ParquetTable):
    """A commit of a version, which is not answered, is done at once, or when the next version is to be made."""

    when: ClassVar[str | None] = None
    late: ClassVar[dict[Path, Callable[[], int]]] = {}

    def publish(self, *given: Any, **options: Any) -> ParquetDraft:
        draft = super().publish(*given, **options)

        def commit(*parts: Any) -> int:
            UnansweredTable.late.pop(self._path, lambda: 0)()
            when, UnansweredTable.when = UnansweredTable.when, None
            if when is None:
                return draft.finish(*parts)
            if when == "at once":
                draft.finish(*parts)
            else:
                UnansweredTable.late[self._path] = partial(draft.finish, *parts)
            raise TransientError("the store did not answer")

        return replace(draft, finish=commit)


class UnansweredFormat(ParquetFormat):
    def table(self, place: Storage) -> UnansweredTable:
        return UnansweredTable(Path(place.address))


@dataclass
class World:
    """Two tables that are live, a cut that has them, and one order that the cut does not have."""

    script: Script
    lake: MadeLake
    told: dict[TableId, Any] = field(default_factory=dict)

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        self.told[table] = error

    def table_followed(self, table: TableId, definition: Any, version: int) -> None:
        self.told[table] = definition

    @property
    def reader(self) -> LogReader:
        return LogReader(self.lake.home.log)

    @property
    def seq(self) -> int:
        return self.reader.head.seq

    def commit(self, *steps: Any) -> int:
        """A transaction in the log; its number."""
        self.script.transaction(steps)
        self.lake.log()
        return self.seq

    def publish(self, applier: Applier, *steps: Any) -> PublishedCut | None:
        """A transaction, and the batch that ends with it."""
        upto = self.commit(*steps)
        return applier.advance(self.reader, upto)

    def applier(self, lake_format: ParquetFormat | None = None) -> Applier:
        """As a run has it that has just begun."""
        settings = ConnectorSettings(self.lake.home.lake, retries=Retries(publish=Backoff(0.0, 0.0)))
        parts = LakeParts(OneThread(), self.lake.home, lake_format or FullFormat(), ScriptedSource)
        applier = Applier(parts, settings, self)
        for table, record in self.lake.home.tables.load().items():
            version = applier.opener.recover(table)
            assert version is not None
            applier.join(self.reader, table, record, version, None)
        return applier

    def rows(self, name: str, cut: PublishedCut | None) -> list[dict[str, Any]]:
        assert cut is not None
        folder = self.lake.path_of(TABLES[name]) / f"v{cut.tables[name].version:08}"
        return sorted(pq.read_table(folder / "rows.parquet").to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    script = Script(tmp_path / "shop.jsonl")
    for name in TABLES:
        script.create_table(name, {"id": "int", "note": "string"}, key=["id"])
    lake = MadeLake(tmp_path / "lake", ScriptedSource(str(script.path)))
    script.transaction([Insert(name, {"id": 1, "note": "first"}) for name in TABLES])
    lake.log()
    lake.publish({name: script.state(name) for name in TABLES})
    yield World(script, lake)
    FullTable.is_full = False


def test_a_batch_becomes_a_version_of_each_table_that_it_concerns_and_one_cut(world: World) -> None:
    applier = world.applier()
    upto = world.commit(Insert(ORDERS, {"id": 2, "note": "new"}), Update(ORDERS, (1,), {"note": "paid"}))
    before = applier.cut
    cut = applier.advance(world.reader, upto)
    assert cut is not None
    assert (cut.seq, cut) == (upto, world.lake.home.cuts.newest())
    assert world.rows(ORDERS, cut) == world.script.state(ORDERS)
    assert before is not None
    assert cut.tables[PARTS] == before.tables[PARTS], "a table without changes makes no version"
    assert applier.is_level(upto, world.reader.head.ordinal)


@pytest.mark.parametrize("when", ["at once", "late"])
def test_a_commit_that_was_not_answered_is_found_when_it_was_done_after_all(when: str, world: World) -> None:
    """Whether the table has it by the next try, or while that is made: no change is laid over it twice."""
    applier = world.applier(UnansweredFormat())
    UnansweredTable.when = when
    before = applier.cut
    assert world.publish(applier, Insert(ORDERS, {"id": 2, "note": "new"})) is None
    assert applier.trouble is not None
    assert applier.cut == before
    cut = world.publish(applier, Insert(ORDERS, {"id": 3, "note": "newer"}), Insert(PARTS, {"id": 2, "note": "new"}))
    assert cut is not None
    assert cut.seq == world.seq
    assert not any(isinstance(told, TailraceError) for told in world.told.values()), world.told
    assert {name: world.rows(name, cut) for name in TABLES} == {name: world.script.state(name) for name in TABLES}
    assert (UnansweredTable.when, UnansweredTable.late) == (None, {})


def test_a_table_that_is_ahead_after_a_crash_continues_from_its_own_transaction(world: World) -> None:
    """We died after the first table's version, before the second one's."""
    applier = world.applier()
    upto = world.commit(Insert(ORDERS, {"id": 2}), Insert(PARTS, {"id": 2}))
    shutil.copytree(parts := world.lake.path_of(TABLES[PARTS]), kept := parts.with_name("kept"))
    applier.advance(world.reader, upto)
    shutil.rmtree(parts)
    kept.rename(parts)
    world.lake.home.cuts.replace(world.lake.home.cuts.all()[:1])

    again = world.applier()
    assert {str(table): live.seq for table, live in again.tables.items()} == {ORDERS: upto, PARTS: upto - 1}
    version = again.tables[TABLES[ORDERS]].version
    cut = again.advance(world.reader, upto)
    assert cut is not None
    assert cut.tables[ORDERS].version == version, "what it has is not published twice"
    assert world.rows(PARTS, cut) == world.script.state(PARTS)


def test_a_table_that_is_not_as_we_left_it_leaves_and_the_cut_does_without_it(world: World) -> None:
    applier = world.applier()
    world.publish(applier, Insert(ORDERS, {"id": 2}), Insert(PARTS, {"id": 2}))
    shutil.rmtree(world.lake.path_of(TABLES[PARTS]) / "v00000001")
    cut = world.publish(applier, Insert(ORDERS, {"id": 3}), Insert(PARTS, {"id": 3}))
    assert isinstance(world.told[TABLES[PARTS]], ResyncError)
    assert cut is not None
    assert list(cut.tables) == [ORDERS]
    assert world.rows(ORDERS, cut) == world.script.state(ORDERS)


def test_a_cut_waits_for_a_table_whose_disk_is_full_and_names_only_what_is_durable(world: World) -> None:
    applier = world.applier()
    upto = world.commit(Insert(ORDERS, {"id": 2}), Insert(PARTS, {"id": 2}))
    FullTable.is_full = True
    assert applier.advance(world.reader, upto) is None
    assert applier.trouble is not None
    assert "no space left" in applier.trouble.message
    assert [cut.seq for cut in world.lake.home.cuts.all()] == [upto - 1]

    FullTable.is_full = False
    cut = applier.advance(world.reader, upto)
    assert cut is not None
    assert applier.trouble is None
    assert all(live.following.is_durable for live in applier.tables.values())
    assert world.rows(PARTS, cut) == world.script.state(PARTS)


def test_a_table_takes_another_shape_after_everything_before_it_and_not_earlier(world: World) -> None:
    applier = world.applier()
    first = world.commit(Insert(ORDERS, {"id": 2, "note": "old"}))
    second = world.commit(Alter(ORDERS, add={"later": "int"}), Insert(ORDERS, {"id": 3, "later": 3}))
    schema = world.lake.source.describe([TABLES[ORDERS]])[TABLES[ORDERS]].schema
    applier.move(TABLES[ORDERS], schema, world.reader.position_of(second))

    assert set(world.rows(ORDERS, applier.advance(world.reader, first))[0]) == {"id", "note"}
    assert world.told.get(TABLES[ORDERS]) is None, "it has not moved yet"
    cut = applier.advance(world.reader, second)
    assert world.rows(ORDERS, cut) == world.script.state(ORDERS)
    assert world.told[TABLES[ORDERS]] == schema.definition


def test_a_first_cut_waits_for_the_shape_that_the_source_has(world: World) -> None:
    world.lake.home.cuts.replace([])
    applier = world.applier()
    assert not any(live.in_cuts for live in applier.tables.values())
    upto = world.commit(Alter(ORDERS, add={"later": "int"}), Insert(PARTS, {"id": 2}))
    schema = world.lake.source.describe([TABLES[ORDERS]])[TABLES[ORDERS]].schema
    applier.move(TABLES[ORDERS], schema, replace(world.reader.position_of(upto), ordinal=10**9))
    cut = applier.advance(world.reader, upto)
    assert cut is not None
    assert list(cut.tables) == [PARTS]


@pytest.mark.parametrize(
    ("seq", "ordinal", "reason"),
    [(99, 10**9, "but the log ends at"), (None, 10**9, None), (2, 1, "it is another log")],
)
def test_a_table_joins_only_a_log_that_has_what_follows_it(
    world: World, seq: int | None, ordinal: int, reason: str | None
) -> None:
    """A snapshot's place is compared with where the log is, and a stamp's transaction with the log's of that number."""
    world.commit(Insert(ORDERS, {"id": 2}))
    applier, table = world.applier(), TABLES[ORDERS]
    version = applier.opener.recover(table)
    assert version is not None
    assert version.stamp is not None
    stamp = replace(version.stamp, seq=seq, position=replace(version.stamp.position, ordinal=ordinal))
    record = world.lake.home.tables.load()[table]

    def join() -> None:
        applier.join(world.reader, table, record, replace(version, stamp=stamp), None)

    if reason is None:
        join()
        assert applier.tables[table].seq == world.seq
    else:
        with pytest.raises(ResyncError, match=reason):
            join()


def test_a_table_that_is_as_the_last_run_left_it_is_not_looked_at_closely(world: World) -> None:
    ended = world.applier()
    world.publish(ended, Insert(ORDERS, {"id": 2}))
    note = Left(ended.left(), None, 0.0)
    assert set(note.tables) == set(TABLES)
    begun, table = world.applier(), TABLES[ORDERS]
    version = begun.opener.unchanged(table, note)
    assert version is not None
    begun.join(world.reader, table, world.lake.home.tables.load()[table], version, None)
    assert begun.tables[table].left == note.tables[ORDERS]
    assert begun.tables[table].seq == world.seq
    (world.lake.path_of(table) / "v00000001").touch()
    assert begun.opener.unchanged(table, note) is None, "someone has touched it"
