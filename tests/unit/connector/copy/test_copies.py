"""Copies beside a stream, in both ways: a scripted source, a log that is being written, tables of Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.doors.capturing import capturing
from tests.doors.disturbed import DisturbedSource
from tests.doors.one_thread import OneThread
from tests.doors.parquet_lake import ParquetFormat
from tests.doors.script import Delete, Insert, Script, Update
from tests.postgres import wait_until

from tailrace.connector.copy.copies import Copies
from tailrace.connector.copy.running_copy import HowToCopy
from tailrace.connector.copy.wishes import CopyWish
from tailrace.connector.events import Event, TablesLanded
from tailrace.connector.publish.applier import Applier
from tailrace.connector.publish.opening import LakeParts
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import became_live, repaired, resynced
from tailrace.connector.tables.selection import Chooser
from tailrace.connector.tables.source_check import TableLook
from tailrace.connector.tables.voucher import Vouching
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.backoff import Backoff
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, Retries, SnapshotMode, TaskSizes
from tailrace.stop import Stop

ORDERS, PARTS = TableId("shop", "orders"), TableId("shop", "parts")
ROWS = 20
Disturb = Callable[[TableId, str, int], None]


@dataclass
class World:
    """A run without its connector: what copies need, and what becomes of them."""

    script: Script
    source: DisturbedSource
    settings: ConnectorSettings
    home: LakeHome
    book: TableBook
    applier: Applier
    copies: Copies
    events: list[Event]
    steps: int = 0

    @property
    def reader(self) -> LogReader:
        return LogReader(self.home.log)

    def step_until(self, is_done: Callable[[], object]) -> None:
        reader = self.reader

        def step() -> bool:
            self.copies.step(reader)
            self.steps += 1
            return bool(is_done())

        wait_until(step, 20)

    def land(self, *tables: TableId) -> None:
        self.step_until(lambda: set(tables) <= set(self.copies.waiting))

    def publish(self) -> None:
        """Let everything join that has landed, up to the source's end, and become live."""
        ordinal = self.source.now().ordinal
        wait_until(lambda: self.reader.head.ordinal >= ordinal)
        reader = self.reader
        for table, (version, shown_seq) in list(self.copies.waiting.items()):
            del self.copies.waiting[table]
            self.applier.join(reader, table, self.book[table], version, shown_seq)
        cut = self.applier.advance(reader, reader.head.seq)
        assert cut is not None
        for table, live in self.applier.tables.items():
            self.book.set({table: became_live(self.book[table], live.relation)})

    def await_steps(self) -> None:
        """In another thread: until what was told before has been heard."""
        now = self.steps
        wait_until(lambda: self.steps > now + 1, 20)

    def copy_again(self, table: TableId) -> None:
        self.book.set({table: resynced(self.book[table], "a test asked for it")})
        self.applier.leave(table)

    def rows(self, table: TableId) -> list[dict[str, Any]]:
        """Of its newest version."""
        folder = Path(self.home.place_of(table).address)
        newest = max(path for path in folder.iterdir() if path.name.startswith("v"))
        return sorted(pq.read_table(newest / "rows.parquet").to_pylist(), key=lambda row: row["id"])

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        raise error

    def table_followed(self, table: TableId, definition: Any, version: int) -> None: ...


@contextmanager
def run(script: Script, settings: ConnectorSettings) -> Iterator[World]:
    """As it begins, in a new lake or in one that is there."""
    source = DisturbedSource(str(script.path))
    home = LakeHome.create(settings.lake)
    claim = source.claim(None) if not (settings.lake / "claim").exists() else _claim(settings.lake)
    (settings.lake / "claim").write_text(f"{claim['server']} {claim['name']}")
    told: list[Event] = []
    book = TableBook(home, Vouching(home), source.is_same_shape, told.append)
    look = TableLook(source, Chooser(settings, source, home), claim, book, Stop(), told.append)
    look.begin(book.resume())
    with ExitStack() as stack:
        stack.enter_context(capturing(source, claim, home.log))
        wait_until((home.log / "head").exists)
        parts = LakeParts(OneThread(), home, ParquetFormat(), DisturbedSource)
        world = World(script, source, settings, home, book, None, None, told)  # type: ignore[arg-type]
        world.applier = Applier(parts, settings, world)
        stack.callback(world.applier.close)
        world.copies = Copies(HowToCopy(parts, source, claim, settings, Stop()), book, look, world.applier, told.append)
        stack.callback(world.copies.cancel)
        yield world


def _claim(lake: Path) -> dict[str, str]:
    server, name = (lake / "claim").read_text().split()
    return {"server": server, "name": name}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    for table in (ORDERS, PARTS):
        script.create_table(str(table), {"id": "int", "note": "string"}, key=["id"])
        script.transaction([Insert(str(table), {"id": n, "note": "first"}) for n in range(ROWS)])
    return script


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    """Windows of two chunks of three rows."""
    sizes = TaskSizes(window_growth_max=1.0, window_seconds=600.0)
    return ConnectorSettings(tmp_path / "lake", window_rows=3, readers_max=1, sizes=sizes)


@pytest.fixture
def live(script: Script, settings: ConnectorSettings) -> Iterator[World]:
    """Both tables are live, and nothing is copied."""
    with run(script, settings) as world:
        world.land(ORDERS, PARTS)
        world.publish()
        yield world


def changing(script: Script) -> Disturb:
    """Rows change while they are read: some that were read, some that were not."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if what == "read" and number in (1, 3):
            name = str(table)
            changes = [Update(name, (key,), {"note": f"in {number}"}) for key in (0, ROWS - 1)]
            script.transaction([*changes, Delete(name, (number,)), Insert(name, {"id": 100 + number, "note": "new"})])

    return disturb


def test_all_tables_of_a_new_lake_land_together_at_one_point_of_the_source(
    script: Script, settings: ConnectorSettings
) -> None:
    with run(script, settings) as world:
        world.source.disturbance.begin(changing(script))
        world.land(ORDERS, PARTS)
        stamps = [version.stamp for version, _ in world.copies.waiting.values()]
        assert len({stamp.position for stamp in stamps if stamp}) == 1
        assert [event.tables for event in world.events if isinstance(event, TablesLanded)] == [[ORDERS, PARTS]]
        world.publish()
        assert [world.rows(table) for table in (ORDERS, PARTS)] == [script.state(str(t)) for t in (ORDERS, PARTS)]
        assert world.copies.is_idle


def test_a_table_that_is_copied_again_grows_by_windows_and_is_exact_though_its_rows_change(live: World) -> None:
    live.source.disturbance.begin(changing(live.script))
    live.copy_again(ORDERS)
    live.land(ORDERS)
    assert live.source.disturbance.done[ORDERS, "read"] >= 7
    live.publish()
    assert live.rows(ORDERS) == live.script.state(str(ORDERS))
    assert live.copies.brought[ORDERS].is_whole


def test_a_row_that_moves_into_what_was_read_without_its_large_columns_is_read_again(live: World) -> None:
    """Then neither the lake nor any window has the row in whole."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("read", 2):
            live.script.transaction([Update(str(ORDERS), (ROWS - 1,), {"id": -1}, leave_out=("note",))])

    live.source.disturbance.begin(disturb)
    live.copy_again(ORDERS)
    live.land(ORDERS)
    live.publish()
    assert live.rows(ORDERS) == live.script.state(str(ORDERS))
    assert live.source.disturbance.done[ORDERS, "read"] == 8, "seven chunks, and the one row"


def test_a_copy_by_windows_continues_where_it_was_stopped(script: Script, settings: ConnectorSettings) -> None:
    incremental = replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL, tables=(str(ORDERS),))
    with run(script, incremental) as first:
        first.step_until(lambda: first.copies.brought.get(ORDERS) and first.copies.brought[ORDERS].rows >= 6)
    assert ORDERS not in first.copies.waiting
    with run(script, incremental) as second:
        second.land(ORDERS)
        assert second.source.disturbance.done[ORDERS, "read"] < 7, "it was not read from its beginning"
        second.publish()
        assert second.rows(ORDERS) == script.state(str(ORDERS))


def test_a_copy_that_landed_before_we_died_is_not_made_again(script: Script, settings: ConnectorSettings) -> None:
    with run(script, settings) as first:
        first.land(ORDERS, PARTS)
    with run(script, settings) as second:
        second.land(ORDERS, PARTS)
        assert second.source.disturbance.done.total() == 0
        second.publish()
        assert second.rows(PARTS) == script.state(str(PARTS))


def test_a_copy_that_was_given_up_is_read_no_further_and_none_of_its_rows_are_in_the_next_one(live: World) -> None:
    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("read", 3):
            live.copy_again(ORDERS)
            live.await_steps()

    live.source.disturbance.begin(disturb)
    live.copy_again(ORDERS)
    live.land(ORDERS)
    assert live.source.disturbance.done[ORDERS, "read"] <= 4 + 7, "two windows of the first, all chunks of the second"
    version, _ = live.copies.waiting[ORDERS]
    assert version.stamp is not None
    assert version.stamp.copy == 3
    live.publish()
    assert live.rows(ORDERS) == live.script.state(str(ORDERS))


def test_a_table_that_was_given_up_while_all_were_copied_at_once_is_not_taken(
    script: Script, settings: ConnectorSettings
) -> None:
    with run(script, settings) as world:

        def disturb(table: TableId, what: str, number: int) -> None:
            if table == ORDERS and number == 1:
                world.book.set({ORDERS: resynced(world.book[ORDERS], "a test asked for it")})

        world.source.disturbance.begin(disturb)
        world.land(PARTS)
        assert ORDERS not in world.copies.waiting
        world.land(ORDERS)
        version, _ = world.copies.waiting[ORDERS]
        assert version.stamp is not None
        assert version.stamp.copy == 2


@pytest.mark.parametrize("mode", [SnapshotMode.INITIAL, SnapshotMode.INCREMENTAL])
def test_a_table_that_cannot_be_read_fails_alone(
    script: Script, settings: ConnectorSettings, mode: SnapshotMode
) -> None:
    def disturb(table: TableId, what: str, number: int) -> None:
        if (table, what) == (ORDERS, "read"):
            raise DefiniteError("a page is damaged", "mend it", str(table))

    with run(script, replace(settings, snapshot_mode=mode)) as world:
        world.source.disturbance.begin(disturb)
        world.land(PARTS)
        world.step_until(lambda: world.book[ORDERS].state is TableState.ERRORED)
        assert world.book[ORDERS].reason == "a page is damaged"
        world.publish()
        assert world.rows(PARTS) == script.state(str(PARTS))


def test_a_table_whose_rows_cannot_be_read_for_a_while_continues_where_it_was(
    script: Script, settings: ConnectorSettings
) -> None:
    troubles = []

    def disturb(table: TableId, what: str, number: int) -> None:
        if (table, what) == (ORDERS, "plan") and number in (3, 4):
            troubles.append(number)
            raise TransientError("a page cannot be read now", table=str(table))

    briefly = replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL, retries=Retries(window=Backoff(0.01, 0.01)))
    with run(script, briefly) as world:
        world.source.disturbance.begin(disturb)

        def landed() -> bool:
            assert world.copies.trouble is None, "others would be held up"
            return {ORDERS, PARTS} <= set(world.copies.waiting)

        world.step_until(landed)
        assert troubles == [3, 4]
        assert world.source.disturbance.done[ORDERS, "read"] == 7, "as often as without trouble"
        world.publish()
        assert world.rows(ORDERS) == script.state(str(ORDERS))


def test_a_wish_has_some_rows_copied_again_and_leaves_the_others(live: World) -> None:
    """What no change told of: rows of the lake that are not the source's."""
    live.book.set({ORDERS: repaired(live.book[ORDERS], "a test asked for it")})
    live.applier.leave(ORDERS)
    live.copies.wishes.wish(ORDERS, CopyWish(2, condition='note = "first"'))
    live.script.transaction([Update(str(ORDERS), (5,), {"note": "other"})])
    live.land(ORDERS)
    assert live.copies.brought[ORDERS].rows == ROWS - 1
    live.publish()
    assert live.rows(ORDERS) == live.script.state(str(ORDERS))


def test_a_copy_that_is_paused_before_it_begins_waits_and_others_do_not_wait_for_it(live: World) -> None:
    live.copies.wishes.pause_if(lambda table: table == ORDERS)
    live.copy_again(ORDERS)
    live.copy_again(PARTS)
    assert not live.copies.is_idle
    live.land(PARTS)
    live.publish()
    assert live.copies.is_idle
    assert live.source.disturbance.done[ORDERS, "plan"] == 0
    live.copies.wishes.pause_if(lambda table: False)
    assert not live.copies.is_idle
    live.land(ORDERS)


def test_a_copy_that_is_paused_in_the_middle_reads_no_further_until_it_is_resumed(live: World) -> None:
    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("read", 3):
            live.copies.wishes.pause_if(lambda table: table == ORDERS)
            live.await_steps()

    live.source.disturbance.begin(disturb)
    live.copy_again(ORDERS)
    live.step_until(lambda: (growth := live.copies.brought.get(ORDERS)) and growth.rows == 12)
    assert live.copies.is_idle
    assert live.source.disturbance.done[ORDERS, "read"] == 4
    live.copies.wishes.pause_if(lambda table: False)
    live.land(ORDERS)
    assert live.source.disturbance.done[ORDERS, "read"] == 7


def test_the_log_keeps_what_a_copy_needs_until_it_has_joined(live: World) -> None:
    needed: list[list[int]] = []

    def disturb(table: TableId, what: str, number: int) -> None:
        needed.append(live.copies.needed_after())
        changing(live.script)(table, what, number)

    live.source.disturbance.begin(disturb)
    live.copy_again(ORDERS)
    live.land(ORDERS)
    head = live.reader.head.seq
    assert all(min(each) <= head for each in needed)
    version, _ = live.copies.waiting[ORDERS]
    assert version.stamp is not None
    assert version.stamp.seq in live.copies.needed_after()
    live.publish()
    live.step_until(lambda: live.copies.needed_after() == [])
