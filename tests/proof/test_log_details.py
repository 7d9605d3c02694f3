"""Details come back as they were: the same properties as in the unit tests, searched for longer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.detail_properties import (
    STEPS,
    Step,
    check_a_cut_at_any_byte,
    check_a_restart_and_a_rebuilt_index,
    check_retention,
)

long = settings(deadline=None, max_examples=300)


@long
@given(STEPS)
def test_details_come_back_after_a_restart_and_from_a_rebuilt_index(steps: list[Step]) -> None:
    check_a_restart_and_a_rebuilt_index(steps)


@long
@given(STEPS, st.data())
def test_a_log_cut_at_any_byte_ends_with_a_whole_detail(steps: list[Step], data: st.DataObject) -> None:
    check_a_cut_at_any_byte(steps, data)


@long
@given(STEPS, st.data())
def test_the_last_commit_is_known_when_retention_has_deleted_it(steps: list[Step], data: st.DataObject) -> None:
    check_retention(steps, data)
