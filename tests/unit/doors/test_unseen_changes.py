"""The changes of some transactions of a log, not of all between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.doors.capturing import capturing
from tests.doors.script import Alter, Delete, Insert, Script, Truncate, Update
from tests.doors.scripted import ScriptedSource

from tailrace.changes.tail import Tail
from tailrace.changes.window_rows import unseen_changes
from tailrace.errors import TransientError
from tailrace.log.reader import LogReader
from tailrace.model.change import DELETED, ORIGIN, UNCHANGED
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import TaskSizes

ORDERS, OTHER = "shop.orders", "shop.other"
TABLE = TableId("shop", "orders")
SIZES = TaskSizes()


@pytest.fixture
def logged(script: Script, source: ScriptedSource, tmp_path: Path) -> LogReader:
    """Six transactions; the fifth does not touch the table."""
    script.create_table(OTHER, {"id": "bigint"}, key=["id"])
    claim = source.claim(None)
    source.prepare(claim, [TABLE, TableId("shop", "other")], None)
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Insert(ORDERS, {"id": 1, "note": "first", "big": "x"})])
        script.transaction([Update(ORDERS, (1,), {"note": "second"}, leave_out=["big"])])
        script.transaction([Insert(ORDERS, {"id": 2, "note": "third", "big": "y"})])
        script.transaction([Delete(ORDERS, (2,)), Alter(ORDERS, add={"paid": "boolean"})])
        script.transaction([Insert(OTHER, {"id": 1})])
        script.transaction([Truncate(ORDERS), Insert(ORDERS, {"id": 3, "note": "last", "big": "z", "paid": True})])
        captured.catch_up()
    return LogReader(tmp_path / "log")


def unseen_tail(logged: LogReader, source: ScriptedSource, seqs: np.ndarray, sizes: TaskSizes = SIZES) -> Tail | None:
    found = unseen_changes(logged, schema_of(source), seqs, source.decode, sizes)
    return found.tail() if found is not None else None


def schema_of(source: ScriptedSource) -> TableSchema:
    return source.describe([TABLE])[TABLE].schema


def test_only_the_transactions_that_are_named_count(logged: LogReader, source: ScriptedSource) -> None:
    tail = unseen_tail(logged, source, np.array([2, 4, 5]))
    assert tail is not None
    assert (tail.schema.names, tail.truncated) == (("id", "note", "big", "paid"), False)
    assert [(each["id"], each["note"], each[UNCHANGED], each[DELETED]) for each in tail.states.to_pylist()] == [
        (1, "second", ["big"], False),
        (2, None, None, True),
    ]
    tail = unseen_tail(logged, source, np.array([1, 3]))
    assert tail is not None
    assert [(each["id"], each["note"]) for each in tail.states.to_pylist()] == [(1, "first"), (2, "third")]


def test_a_row_that_came_and_went_has_a_state(logged: LogReader, source: ScriptedSource) -> None:
    tail = unseen_tail(logged, source, np.array([3, 4]))
    assert tail is not None
    assert [(each["id"], each[DELETED]) for each in tail.states.to_pylist()] == [(2, True)]


def test_a_truncate_among_them_is_told(logged: LogReader, source: ScriptedSource) -> None:
    tail = unseen_tail(logged, source, np.array([1, 6]))
    assert tail is not None
    assert tail.truncated
    assert [(each["id"], each["paid"], each[ORIGIN]) for each in tail.states.to_pylist()] == [(3, True, None)]


@pytest.mark.parametrize("seqs", [[], [5]], ids=["none", "one of another table"])
def test_without_changes_of_the_table_there_is_none(logged: LogReader, source: ScriptedSource, seqs: list[int]) -> None:
    assert unseen_tail(logged, source, np.array(seqs, np.int64)) is None


def test_more_than_fits_is_left_to_a_later_state(logged: LogReader, source: ScriptedSource) -> None:
    with pytest.raises(TransientError, match="too much was committed while rows of it were read"):
        unseen_tail(logged, source, np.array([1, 2]), TaskSizes(decoded_bytes_max=1))
