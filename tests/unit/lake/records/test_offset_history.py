"""The history of edits: what was appended is there, with what became of it, whatever was cut short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.errors import DefiniteError
from tailrace.lake.records.offset_history import EditKind, EditState, Effect, OffsetEdit, OffsetHistory

ENTRY = {"partition": {"server": "shop"}, "offset": {"lsn": 5}}
FIRST = OffsetEdit(1, EditKind.SET, "ann", 7, [], [ENTRY], Effect({"slot": "s"}, None, 5, "why"), says="what follows")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "offsets.jsonl"


def test_an_edit_comes_back_as_it_was_and_waits_until_it_is_taken_up(path: Path) -> None:
    history = OffsetHistory(path)
    assert (history.version, history.all()) == (0, [])
    history.append(FIRST)
    assert (history.version, history.all(), history.waiting()) == (1, [FIRST], [FIRST])
    history.took(1, 8)
    assert history.waiting() == []
    assert OffsetHistory(path).all() == [replace(FIRST, state=EditState.TAKEN)]
    assert path.stat().st_mode & 0o077 == 0, "only its owner may read it"


def test_an_edit_that_another_one_takes_back_is_undone_whether_or_not_it_was_taken_up(path: Path) -> None:
    history = OffsetHistory(path)
    history.append(FIRST)
    history.append(replace(FIRST, version=2, kind=EditKind.UNDO, undoes=1, effect=Effect()))
    assert [edit.state for edit in history.all()] == [EditState.UNDONE, EditState.WAITING]
    history.took(1, 8)
    history.took(2, 8)
    assert [edit.state for edit in history.all()] == [EditState.UNDONE, EditState.TAKEN]


def test_a_line_that_was_cut_short_is_no_edit_and_the_next_takes_its_place(path: Path) -> None:
    history = OffsetHistory(path)
    history.append(FIRST)
    whole = path.read_bytes()
    for length in (1, 20, len(whole) - 1):
        path.write_bytes(whole + whole[:length])
        assert history.version == 1
    history.append(replace(FIRST, version=2))
    assert [edit.version for edit in history.all()] == [1, 2]


@pytest.mark.parametrize("line", ["not json", '{"edit": {}}', '{"edit": 7}', "{}", '{"taken": {}}'])
def test_a_damaged_line_is_an_error_that_names_it(path: Path, line: str) -> None:
    history = OffsetHistory(path)
    history.append(FIRST)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(DefiniteError, match="is damaged in line 2"):
        history.all()


def test_an_edit_that_no_line_can_hold_is_refused(path: Path) -> None:
    with pytest.raises(DefiniteError, match="too large"):
        OffsetHistory(path).append(replace(FIRST, says="x" * (1 << 20)))
    assert OffsetHistory(path).all() == []
