"""The tables of a copy by windows on their way: nothing is read or written here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.parquet_lake import ParquetTable
from tests.doors.scripted import ScriptedSource

from tailrace.connector.copy.growing_table import GrowingTable
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.running_copy import TableStart
from tailrace.connector.copy.window_reader import NextRows, TableWindow, Window
from tailrace.connector.copy.window_tables import WindowTable, WindowTables
from tailrace.connector.publish.following_table import FollowingTable, Standing
from tailrace.errors import DefiniteError, TransientError
from tailrace.lake.stamp import Stamp
from tailrace.model.backoff import Backoff
from tailrace.model.position import SourcePosition
from tailrace.model.rows.key import KeyRows
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door.rows import WindowPoint

T = TableId("shop", "orders")
SCHEMA = TableSchema(T, 7, (Column("id", "int", "INT", 1),), ("id",))
POINT = WindowPoint(SourcePosition(0), "", {}, is_exact=True)


def growing(copy: int = 1, seq: int = 5) -> GrowingTable:
    standing = Standing(0, Stamp(SourcePosition(10 * seq), 7, copy, seq))
    following = FollowingTable(T, ParquetTable(Path("none")), ScriptedSource, standing, seq)
    return GrowingTable(following, Growth(["9"]), durable_seq=seq)


@pytest.fixture
def tables() -> WindowTables:
    """With one table, whose rows go up to 9."""
    found = WindowTables()
    found.add({T: TableStart(1)})
    found.admit(found.new(), {T: growing()})
    return found


def read(asked: NextRows, upto: str) -> TableWindow:
    return TableWindow(asked, SCHEMA, [upto])


def window_of(*parts: TableWindow) -> Window:
    return Window(POINT, Path("none"), {part.asked.table: part for part in parts})


def only(tables: WindowTables) -> WindowTable:
    (table,) = tables.growing
    return table


def add(tables: WindowTables, part: TableWindow) -> bool:
    """The lake has this part; whether the table has landed."""
    table = tables.find(part.asked)
    assert table is not None
    table.grown.growth = table.grown.growth.with_window(part.done, 1)
    table.note_added(part)
    return tables.note_grown(table)


def test_rows_are_read_ahead_of_the_lake_until_the_last_key(tables: WindowTables) -> None:
    (first,) = tables.readable()
    assert first.between == (None, ["9"])
    tables.note_read(window_of(read(first, "4")))
    (second,) = tables.readable()
    assert second.between == (["4"], ["9"]), "though the lake has nothing of it yet"
    tables.note_read(window_of(read(second, "9")))
    assert tables.readable() == []
    assert not add(tables, read(first, "4"))
    assert add(tables, read(second, "9"))
    results = tables.take_results()
    assert list(results.landed) == [T]
    assert results.grown[T].is_whole
    assert (tables.take_results().landed, tables.growing) == ({}, []), "told once"


def test_rows_that_were_read_for_a_table_are_not_for_it_after_it_has_begun_again(tables: WindowTables) -> None:
    (asked,) = tables.readable()
    tables.begin_again(only(tables))
    assert tables.find(asked) is None
    tables.note_read(window_of(read(asked, "9")))
    (again,) = tables.readable()
    assert again.between == (None, ["9"]), "nothing counts as read"


def test_rows_that_were_read_for_one_copy_are_not_for_the_next(tables: WindowTables) -> None:
    (asked,) = tables.readable()
    old = only(tables)
    tables.drop(T)
    assert tables.copies == {}
    tables.add({T: TableStart(2)})
    tables.forget_unwanted()
    tables.admit(tables.new(), {T: growing(copy=2)})
    assert tables.copies == {T: 2}
    assert tables.find(asked) is None
    tables.fail(old, DefiniteError("too late"))
    assert tables.take_results().failed == {}


def test_a_copy_that_was_replaced_while_it_was_started_is_not_taken_in() -> None:
    tables = WindowTables()
    tables.add({T: TableStart(1)})
    new = tables.new()
    tables.add({T: TableStart(2)})
    tables.admit(new, {T: growing()})
    assert (tables.growing, tables.copies) == ([], {T: 2})


def test_keys_that_are_to_be_read_again_are_asked_for_once_until_the_lake_has_them(tables: WindowTables) -> None:
    keys = KeyRows.from_pydict({"id": [3]})
    only(tables).grown.growth = replace(Growth(["9"], ["9"]), windows=1, again=keys)
    tables.begin_again(only(tables))
    (asked,) = tables.readable()
    assert asked.again is not None
    part = read(asked, "9")
    tables.note_read(window_of(part))
    assert tables.readable() == [], "they are on their way"
    only(tables).note_added(part)
    assert len(tables.readable()) == 1, "the lake has them, and its growth still wants some"


def test_a_table_that_rests_or_is_paused_is_not_read(tables: WindowTables) -> None:
    tables.pause([T])
    assert tables.readable() == []
    tables.pause([])
    assert len(tables.readable()) == 1
    tables.rest(only(tables), TransientError("it is locked"), Backoff(60.0, 60.0))
    assert tables.readable() == []
    assert tables.problem is not None
    assert tables.problem.message == "it is locked"


def test_the_log_keeps_what_any_table_may_need() -> None:
    tables, other = WindowTables(), TableId("shop", "parts")
    assert tables.needed_after(80) == 80
    tables.add({T: TableStart(1), other: TableStart(1)})
    assert tables.needed_after(80) == 0, "where they stand is not known yet"
    tables.note_fresh([T, other])
    assert tables.needed_after(80) == 80, "they begin after what is settled"
    tables.admit(tables.new(), {T: growing(seq=70)})
    assert tables.needed_after(80) == 70
    table = only(tables)
    table.grown.growth = Growth(None, windows=1)
    assert tables.note_grown(table)
    assert tables.needed_after(80) == 70, "until it has been taken"
    tables.take_results()
    assert tables.needed_after(80) == 80


def test_a_copy_that_was_cut_short_is_whole_after_one_more_window(tables: WindowTables) -> None:
    (asked,) = tables.readable()
    add(tables, read(asked, "4"))
    tables.cut_short([T])
    (table,) = tables.forget_unwanted()
    tables.cut(table)
    (last,) = tables.readable()
    assert last.between == (["4"], ["4"]), "no row"
    assert tables.find(asked) is None
    assert add(tables, read(last, "4"))


def test_a_copy_without_tables_ends_and_takes_no_more(tables: WindowTables) -> None:
    assert not tables.end_if_done()
    tables.fail(only(tables), DefiniteError("it is gone"))
    assert tables.end_if_done()
    assert not tables.add({T: TableStart(2)})
    copy, error = tables.take_results().failed[T]
    assert (copy, error.message) == (1, "it is gone")
