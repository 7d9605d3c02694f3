"""What becomes of a table when the source is looked at: a table of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.connector.tables.decisions import Found, asked, became_live, decide, decide_unsent, failed, resynced
from tailrace.errors import DefiniteError, ResyncError, TextKeyError
from tailrace.model.rows.text_key import TextKey
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.source.door.values import Problem, SourceTable

T = TableId("public", "t")
PROBLEM = Problem("table public.t has no primary key", "alter table …")
GONE = "table public.t is gone from the source"

LIVE = TableRecord(TableState.LIVE, copy=1, relation=7, definition={"at": 1})
FAILED_COPY = TableRecord(TableState.ERRORED, "no privilege", "grant", copy=1)
FAILED_STREAM = TableRecord(TableState.ERRORED, "infinity", "change it", copy=1, relation=7)
REFUSED = TableRecord(TableState.ERRORED, PROBLEM.message, PROBLEM.hint, copy=1, relation=7, is_refused=True)
REMOVED = TableRecord(TableState.REMOVED, "it is no longer chosen", copy=1, relation=7)


def chosen(relation: int = 7, problem: Problem | None = None) -> SourceTable:
    return SourceTable(TableSchema(T, relation, (), ("id",)), 0, problem)


@pytest.mark.parametrize(
    ("before", "found", "state", "copy"),
    [
        (None, Found([chosen()]), TableState.PENDING, 1),
        (None, Found([chosen(problem=PROBLEM)]), TableState.ERRORED, 0),
        (LIVE, Found([chosen()]), TableState.LIVE, 1),
        (LIVE, Found([chosen(relation=8)]), TableState.RESYNCING, 2),
        (LIVE, Found([chosen(problem=PROBLEM)]), TableState.ERRORED, 1),
        (LIVE, Found([chosen()], refused={T: PROBLEM}), TableState.ERRORED, 1),
        (LIVE, Found([], gone={T}), TableState.ERRORED, 1),
        (FAILED_COPY, Found([], gone={T}), TableState.REMOVED, 1),
        (LIVE, Found([]), TableState.REMOVED, 1),
        (REMOVED, Found([]), TableState.REMOVED, 1),
        (REMOVED, Found([chosen()]), TableState.RESYNCING, 2),
        (REFUSED, Found([chosen(problem=PROBLEM)]), TableState.ERRORED, 1),
        (REFUSED, Found([chosen()]), TableState.RESYNCING, 2),
        (FAILED_STREAM, Found([chosen()]), TableState.ERRORED, 1),
        (FAILED_STREAM, Found([chosen(relation=8)]), TableState.RESYNCING, 2),
        (FAILED_COPY, Found([chosen()]), TableState.PENDING, 2),
        (TableRecord(TableState.SNAPSHOTTING, copy=1), Found([chosen()]), TableState.SNAPSHOTTING, 1),
    ],
)
def test_at_a_start_each_table_gets_the_state_that_its_past_and_the_source_ask_for(
    before: TableRecord | None, found: Found, state: TableState, copy: int
) -> None:
    after = decide({} if before is None else {T: before}, found, starting=True)[T]
    assert (after.state, after.copy) == (state, copy)
    assert (after.reason is not None) == (state in (TableState.ERRORED, TableState.RESYNCING, TableState.REMOVED))


def test_a_failed_copy_is_tried_again_at_a_start_and_not_every_few_seconds() -> None:
    assert decide({T: FAILED_COPY}, Found([chosen()]), starting=False) == {T: FAILED_COPY}


def test_looking_twice_changes_nothing_more() -> None:
    for before in (LIVE, FAILED_COPY, FAILED_STREAM, REFUSED, REMOVED):
        for found in (Found([chosen()]), Found([chosen(8, PROBLEM)]), Found([], gone={T}), Found([])):
            once = decide({T: before}, found, starting=False)
            assert decide(once, found, starting=False) == once


def test_a_table_that_comes_back_is_another_table() -> None:
    gone = decide({T: LIVE}, Found([], gone={T}), starting=False)
    assert gone[T].reason == GONE
    back = decide(gone, Found([chosen(relation=9)]), starting=False)[T]
    assert (back.state, back.copy) == (TableState.RESYNCING, 2)


def test_tables_that_were_not_sent_are_copied_again_also_while_they_are_copied() -> None:
    assert decide_unsent({T: LIVE}, {T})[T].state is TableState.RESYNCING
    for state in (TableState.SNAPSHOTTING, TableState.RESYNCING):
        assert decide_unsent({T: TableRecord(state, copy=4)}, {T})[T].copy == 5
    assert decide_unsent({T: LIVE}, set()) == {}
    assert decide_unsent({T: FAILED_STREAM}, {T}) == {}


def test_every_copy_that_is_asked_for_has_a_number_of_its_own() -> None:
    again = resynced(resynced(LIVE, "asked"), "asked")
    assert (again.state, again.copy, again.relation) == (TableState.RESYNCING, 3, 7)


def test_an_error_keeps_what_is_known_of_the_table() -> None:
    after = failed(T, LIVE, DefiniteError("public.t: bad", "do this"))
    assert after == replace(LIVE, state=TableState.ERRORED, reason="bad", hint="do this")


def found_moved(reason: str | None) -> Found:
    schema = replace(chosen().schema, definition={"at": 2})
    return Found([chosen()], defined={T: schema}, why_copy=lambda old, new: reason if old != new else None)


@pytest.mark.parametrize(
    "before",
    [
        LIVE,
        TableRecord(TableState.SNAPSHOTTING, copy=1, definition={"at": 1}),
        TableRecord(TableState.RESYNCING, "asked", copy=1, relation=7, definition={"at": 1}),
    ],
)
def test_a_definition_that_moved_in_doubt_means_another_copy_also_while_it_is_copied(before: TableRecord) -> None:
    after = decide({T: before}, found_moved("it was rewritten"), starting=False)[T]
    assert (after.copy, after.definition) == (before.copy + 1, None)
    assert decide({T: before}, found_moved(None), starting=False)[T] == before


def test_a_copy_that_has_not_begun_knows_no_definition_and_has_nothing_to_lose() -> None:
    for before in (TableRecord(TableState.PENDING, copy=1), FAILED_STREAM):
        assert decide({T: before}, found_moved("it was rewritten"), starting=False)[T] == before


def test_a_live_table_without_a_definition_is_copied_again() -> None:
    after = decide({T: replace(LIVE, definition=None)}, found_moved(None), starting=True)[T]
    assert after.state is TableState.RESYNCING


def test_an_error_that_only_a_copy_helps_against_leads_to_one() -> None:
    after = failed(T, LIVE, ResyncError.of(T, "the log is gone"))
    assert (after.state, after.copy, after.reason) == (TableState.RESYNCING, 2, "the log is gone")


def test_a_key_that_has_to_be_text_is_text_in_every_later_copy_and_is_not_copied_for_ever() -> None:
    found = TextKeyError.found(T, "a value", 7, [2])
    text = failed(T, LIVE, found)
    assert (text.state, text.reason, text.text_key) == (TableState.RESYNCING, "a value", TextKey(7, (2,), "a value"))
    for later in (became_live(text, 7), resynced(text, "why"), failed(T, text, ResyncError.of(T, "moved"))):
        assert later.text_key == text.text_key
    assert failed(T, text, TextKeyError.found(T, "other", 7, [2, 3])).text_key == TextKey(7, (2, 3), "a value")
    assert failed(T, text, found).state is TableState.ERRORED
    assert failed(T, text, TextKeyError.found(T, "another table", 8, [2])).text_key == TextKey(8, (2,), "another table")
    assert asked(text, "why").text_key is None
