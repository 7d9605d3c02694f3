"""Which commits between two cuts a table may be shown at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.lake.records.table_states import VouchedFile
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.read.vouched import Reading


def reading(ordinal: int, *ended: Ended, copy: int = 1, version: int = 5, now: int = 1) -> Reading:
    """Of a commit after a cut at 100 that has a copy of a table; the table's copy is the one of `now`."""
    base = PublishedCut(3, SourcePosition(100), {"public.t": CutTable(version, copy, 3)})
    return Reading("public.t", TableRecord(TableState.LIVE, copy=now, ended=ended), base, ordinal)


def test_a_copy_that_goes_on_is_readable() -> None:
    assert reading(150).void() is None
    assert reading(150, Ended(7, 120)).void() is None, "that was another copy"


@pytest.mark.parametrize(("ordinal", "is_void"), [(119, False), (120, False), (121, True)])
def test_a_copy_that_was_given_up_is_readable_up_to_the_last_commit_that_was_vouched_for(
    ordinal: int, is_void: bool
) -> None:
    ended = Ended(1, 120, reason="the table was rewritten")
    assert (reading(ordinal, ended, now=2).void() == ended) is is_void


def test_a_copy_of_which_no_end_is_known_is_readable_at_its_cuts_alone() -> None:
    assert reading(101, now=2).void() is not None


def test_a_move_to_other_columns_counts_for_cuts_from_before_it_and_commits_that_may_be_after_it() -> None:
    move = Ended(1, 120, version=6)
    assert reading(150, move).void() is None
    assert reading(150, move).reshaped() == move
    assert reading(120, move).reshaped() is None, "vouched for under the old columns"
    assert reading(150, move, version=6).reshaped() is None, "the cut has the new ones"
    later = Ended(1, 130, version=9)
    assert reading(150, move, later).reshaped() == later


def test_a_file_that_is_missing_or_torn_vouches_for_nothing(tmp_path: Path) -> None:
    file = VouchedFile(tmp_path / "vouched")
    assert file.load() == 0
    file.store(1 << 63)
    assert file.load() == 1 << 63
    (tmp_path / "vouched").write_text("12x")
    assert file.load() == 0
