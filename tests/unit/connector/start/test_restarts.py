"""When a run begins again instead of ending: as often as that can help, and no more."""

from __future__ import annotations

import pytest

from tailrace.connector.start.restarts import TIMES_MAX, Restarts
from tailrace.errors import GapError, MovedError
from tailrace.model.position import SourcePosition
from tailrace.settings import SnapshotMode

GAP = GapError("changes are lost")
END = SourcePosition(100)


def test_a_gap_ends_a_run_unless_it_may_be_repaired() -> None:
    for mode in set(SnapshotMode) - {SnapshotMode.WHEN_NEEDED}:
        with pytest.raises(GapError):
            Restarts(mode).allow(GAP)
        assert not Restarts(mode).may_copy(END)


def test_a_gap_is_repaired_once_and_again_only_where_the_log_has_moved() -> None:
    rechecks = Restarts(SnapshotMode.WHEN_NEEDED)
    rechecks.allow(GAP)
    with pytest.raises(GapError):
        rechecks.raise_gap()
    assert rechecks.may_copy(END)
    rechecks.raise_gap()
    rechecks.allow(GAP)
    assert not rechecks.may_copy(END), "it would end as before"
    with pytest.raises(GapError):
        rechecks.allow(GAP)
    assert rechecks.may_copy(SourcePosition(200))


def test_a_source_that_keeps_moving_ends_the_run() -> None:
    rechecks = Restarts(SnapshotMode.INITIAL)
    for _ in range(TIMES_MAX):
        rechecks.allow(MovedError("it was promoted"))
        rechecks.raise_gap()
    with pytest.raises(MovedError):
        rechecks.allow(MovedError("it was promoted"))
