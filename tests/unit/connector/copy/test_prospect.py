"""What follows from what is known of a table before its copy begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.doors.scripted import ScriptedSource

from tailrace.connector.copy.prospect import Prospect
from tailrace.connector.copy.wishes import CopyWish
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import SnapshotMode, TaskSizes

SIZES = TaskSizes(windows_rows_min=100, windows_bytes_min=1000)
OLD, NOW = {"version": 1}, {"version": 2}
SCHEMA = TableSchema(TableId("shop", "orders"), 7, (Column("id", "int", "INT", 1),), ("id",), NOW)
PENDING = TableRecord(TableState.PENDING, copy=1)
RESYNCING = TableRecord(TableState.RESYNCING, copy=2, relation=7, definition=OLD)
FIRST = Prospect(PENDING, SCHEMA, SnapshotMode.INITIAL)
SECOND = Prospect(RESYNCING, SCHEMA, SnapshotMode.INITIAL)


@pytest.mark.parametrize(
    ("prospect", "has_cut", "is_by_windows"),
    [
        (FIRST, False, False),
        (FIRST, True, True),
        (SECOND, False, True),
        (replace(FIRST, rows_estimated=101), False, True),
        (replace(FIRST, bytes_estimated=1001), False, True),
        (replace(FIRST, mode=SnapshotMode.INCREMENTAL), False, True),
        (replace(FIRST, mode=SnapshotMode.NEVER), False, True),
        (replace(SECOND, wish=CopyWish(2, at_once=True)), True, False),
        (replace(SECOND, schema=replace(SCHEMA, key=())), True, False),
        (replace(SECOND, schema=None), True, False),
    ],
)
def test_a_table_is_copied_at_once_when_the_lake_begins_or_it_has_no_key_or_a_person_wants_it(
    prospect: Prospect, has_cut: bool, is_by_windows: bool
) -> None:
    assert prospect.is_by_windows(SIZES, has_cut=has_cut) == is_by_windows


def test_a_copy_begins_under_the_definition_that_was_read_last() -> None:
    assert FIRST.begun(ScriptedSource) == replace(PENDING, state=TableState.SNAPSHOTTING, definition=NOW)
    assert SECOND.begun(ScriptedSource) == replace(RESYNCING, definition=NOW)


def test_a_copy_of_some_rows_keeps_the_definition_that_the_other_rows_have() -> None:
    wished = replace(SECOND, wish=CopyWish(2, condition="id = 1"))
    assert wished.begun(ScriptedSource) == RESYNCING
    assert wished.start().condition == "id = 1"


def test_a_condition_is_for_the_copy_that_was_asked_for_and_an_order_of_rows_for_later_ones_too() -> None:
    later = replace(SECOND, wish=CopyWish(1, "number", "id = 1"))
    assert later.condition is None
    assert later.begun(ScriptedSource).definition == NOW
    assert later.start().order == ("number",)


def test_a_copy_that_was_stopped_reads_no_row() -> None:
    start = replace(SECOND, wish=CopyWish(2, condition="id = 1"), is_cut_short=True).start()
    assert (start.condition, start.is_cut_short) == ("false", True)


def test_only_a_first_copy_goes_without_the_rows_that_are_there() -> None:
    never = replace(FIRST, mode=SnapshotMode.NEVER)
    begun = never.begun(ScriptedSource)
    assert begun.lacks_rows
    assert not replace(never, record=begun).start().has_rows
    assert not replace(SECOND, mode=SnapshotMode.NEVER).begun(ScriptedSource).lacks_rows
