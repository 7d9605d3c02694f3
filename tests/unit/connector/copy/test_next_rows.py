"""The next rows of some tables, read from a scripted source under one of its states."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.doors.disturbed import DisturbedSource
from tests.doors.made_lake import MadeLake
from tests.doors.one_thread import OneThread
from tests.doors.script import Insert, Script

from tailrace.changes.window_rows import read_staged
from tailrace.connector.copy.growing_table import Unseen
from tailrace.connector.copy.window_reader import NextRows, TableWindow, WindowReader, WindowSizes
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.log.reader import LogReader
from tailrace.model.rows.key import KeyRows
from tailrace.model.table import TableId

ORDERS, PARTS = TableId("shop", "orders"), TableId("shop", "parts")
ROWS = 20
LAST = [str(ROWS - 1)]


@dataclass
class World:
    """Two tables of twenty rows. A window has two chunks of three rows."""

    script: Script
    source: DisturbedSource
    reader: WindowReader
    folder: Path

    def asked(self, table: TableId, after: list[str] | None = None) -> NextRows:
        return NextRows(table, (after, LAST), self.source.describe([table])[table].schema.definition)

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    script = Script(tmp_path / "shop.jsonl")
    for table in (ORDERS, PARTS):
        script.create_table(str(table), {"id": "int", "note": "string"}, key=["id"])
        script.transaction([Insert(str(table), {"id": n, "note": "first"}) for n in range(ROWS)])
    source, folder = DisturbedSource(str(script.path)), tmp_path / "windows"
    sizes = WindowSizes(readers_max=1, chunk_bytes=1 << 20, chunk_rows=3, growth_max=1.0, seconds=600.0)
    return World(script, source, WindowReader(source, source.claim(None), OneThread(), folder, sizes), folder)


def ids(window: TableWindow) -> list[int]:
    return [id_ for chunk in window.staged for id_ in read_staged(chunk).column("id").to_pylist()]


def test_windows_follow_one_another_up_to_the_last_key(world: World) -> None:
    after, read = None, list[int]()
    for _ in range(4):
        part = world.reader.read([world.asked(ORDERS, after)]).tables[ORDERS]
        read += ids(part)
        after = None if part.done is None else list(part.done)
    assert read == list(range(ROWS))
    assert after == LAST
    part = world.reader.read([world.asked(ORDERS, after)]).tables[ORDERS]
    assert (part.rows, part.chunks, part.done) == (0, 0, LAST)


def test_tables_share_a_window_as_long_as_there_is_room(world: World) -> None:
    nearly_done = world.asked(ORDERS, [str(ROWS - 3)])
    window = world.reader.read([nearly_done, world.asked(PARTS)])
    assert {table: part.rows for table, part in window.tables.items()} == {ORDERS: 2, PARTS: 3}
    full = world.reader.read([world.asked(ORDERS), world.asked(PARTS)])
    assert list(full.tables) == [ORDERS]


def test_rows_are_read_again_by_their_keys_and_alone(world: World) -> None:
    asked = NextRows(ORDERS, (["5"], LAST), None, again=KeyRows.from_pydict({"id": [2, 4]}))
    part = world.reader.read([asked]).tables[ORDERS]
    assert ids(part) == [2, 4]
    assert part.done == ["5"], "it has got no further"
    assert part.again is asked.again


def test_a_table_that_may_not_be_read_any_more_fails_and_others_are_read(world: World) -> None:
    wanted = [world.asked(ORDERS), world.asked(PARTS)]
    world.script.forbid(str(ORDERS))
    window = world.reader.read(wanted)
    assert [(rows.table, error.message) for rows, error in window.failed] == [(ORDERS, f"may not read {ORDERS}")]
    assert list(window.tables) == [PARTS]


def test_a_table_that_is_gone_is_left_out_by_a_hint_that_can_be_pasted(world: World) -> None:
    asked = world.asked(ORDERS)
    world.script.drop_table(str(ORDERS))
    ((_, error),) = world.reader.read([asked]).failed
    assert (error.message, error.hint) == (
        f"table {ORDERS} is gone from the source",
        f"leave it out with --exclude {ORDERS}",
    )


def test_a_window_says_that_a_definition_has_moved(world: World) -> None:
    asked = world.asked(ORDERS)
    assert not world.reader.read([asked]).tables[ORDERS].is_moved
    world.script.alter(str(ORDERS), add={"later": "int"})
    assert world.reader.read([asked]).tables[ORDERS].is_moved


def test_a_window_stands_after_everything_that_was_committed_while_its_rows_were_read(world: World) -> None:
    """What empties a table shows at once, whatever state it is read under."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if what == "read":
            world.script.transaction([Insert(str(PARTS), {"id": 100 + number, "note": "meanwhile"})])

    world.source.disturbance.begin(disturb)
    window = world.reader.read([world.asked(ORDERS)])
    assert window.position == world.source.now()
    assert window.position > window.point.position


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (TransientError("it is locked", table=str(ORDERS)), TransientError),
        (DefiniteError("a page is damaged", "mend it", str(ORDERS)), DefiniteError),
        (OSError(28, "no space left on device"), TransientError),
        (ValueError("no one has foreseen this"), DefiniteError),
    ],
)
def test_a_window_that_breaks_off_names_the_table_and_leaves_no_file(
    world: World, error: Exception, raised: type[TailraceError]
) -> None:
    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("read", 2):
            raise error

    world.source.disturbance.begin(disturb)
    with pytest.raises(raised) as caught:
        world.reader.read([world.asked(ORDERS)])
    assert caught.value.table == str(ORDERS)
    assert world.files() == []


def test_rows_lie_in_files_until_the_window_is_forgotten(world: World) -> None:
    window = world.reader.read([world.asked(ORDERS)])
    assert len(world.files()) == 2
    window.forget()
    assert world.files() == []


def test_a_state_does_not_show_what_was_committed_after_it(tmp_path: Path) -> None:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(str(ORDERS), {"id": "int"}, key=["id"])
    source = DisturbedSource(str(script.path))
    lake = MadeLake(tmp_path / "lake", source)
    views = [script.transaction([Insert(str(ORDERS), {"id": n})]) for n in range(5)]
    lake.log()
    log = LogReader(lake.home.log)
    unseen = Unseen.between(DisturbedSource, log, {"ordinal": views[2].ordinal}, (0, log.head.seq))
    assert (unseen.seqs.tolist(), unseen.settled) == ([4, 5], 3)
    nothing = Unseen.between(DisturbedSource, log, {"ordinal": views[4].ordinal}, (0, log.head.seq))
    assert (nothing.seqs.tolist(), nothing.settled) == ([], 5)
