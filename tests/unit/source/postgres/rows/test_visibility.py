"""Which logged transactions a view does not show, against a plain loop that knows their whole numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.source.postgres.rows.visibility import unseen

DISTANCE_MAX = 2**31 - 1
"""Further apart than this no two transactions can be that a server knows."""


def index(xids: list[int], ends: list[int] | None = None) -> pa.Table:
    """The part of the log's index that is looked at."""
    return pa.table({"xid": pa.array(xids, pa.uint64()), "end_ordinal": pa.array(ends or [0] * len(xids), pa.uint64())})


@st.composite
def primaries(draw: st.DrawFn) -> tuple[dict[str, object], list[int]]:
    """A view, and transactions of any age, many of them about where the 32 bits begin again."""
    epoch = draw(st.integers(0, 5)) << 32
    xmax = epoch + draw(st.one_of(st.integers(3, 20), st.integers(2**32 - 20, 2**32 - 1), st.integers(3, 2**32 - 1)))
    near = st.integers(max(3, xmax - 30), xmax + 30)
    far = st.integers(max(3, xmax - DISTANCE_MAX), xmax + DISTANCE_MAX)
    xip = draw(st.sets(st.integers(max(3, xmax - 30), xmax - 1), max_size=5)) if xmax > 3 else set()
    xmin = min(xip, default=xmax)
    return {"xmin": xmin, "xmax": xmax, "xip": sorted(xip)}, draw(st.lists(st.one_of(near, far), max_size=20))


@given(primaries())
def test_a_transaction_is_unseen_if_it_was_open_or_began_later(case: tuple[dict[str, object], list[int]]) -> None:
    view, xids = case
    expected = [not (x < view["xmin"] or (x < view["xmax"] and x not in view["xip"])) for x in xids]  # type: ignore[operator]
    assert unseen(view, index([xid % 2**32 for xid in xids])).tolist() == expected


@pytest.mark.parametrize(
    ("xmax", "xid", "is_unseen"),
    [
        ((1 << 32) + 5, 2**32 - 3, False),  # before the 32 bits began again
        ((1 << 32) - 3, 5, True),  # after they will have
        ((7 << 32) + 500, 499, False),
        ((7 << 32) + 500, 500, True),
    ],
)
def test_the_32_bits_of_the_stream_belong_to_the_epoch_nearest_to_the_view(
    xmax: int, xid: int, is_unseen: bool
) -> None:
    assert unseen({"xmin": xmax, "xmax": xmax, "xip": []}, index([xid])).tolist() == [is_unseen]


def test_on_a_standby_a_transaction_is_seen_when_its_commit_has_been_replayed() -> None:
    high = 2**63 + 100
    found = unseen({"replayed": high}, index([9, 8, 7], [high - 1, high, high + 1]))
    assert found.tolist() == [False, False, True]


def test_of_no_transactions_none_is_unseen() -> None:
    assert unseen({"xmin": 3, "xmax": 3, "xip": []}, index([])).tolist() == []
    assert unseen({"replayed": 3}, index([])).tolist() == []


@pytest.mark.parametrize(("is_void", "unseen_xids"), [(False, [5, 900]), (True, [900])])
def test_what_was_logged_before_a_gap_is_not_unseen_for_its_number_which_another_server_may_have_given(
    is_void: bool, unseen_xids: list[int]
) -> None:
    xids = [5, 100, 800, 900]
    logged = index(xids).append_column("commit_ordinal", pa.array([10, 20, 30, 40], pa.uint64()))
    view = {"xmin": 5, "xmax": 100, "xip": [5], "gap_from": 30, "is_void": is_void}
    assert [xid for xid, is_unseen in zip(xids, unseen(view, logged), strict=True) if is_unseen] == unseen_xids
    replayed = {"replayed": 0, "gap_from": 30, "is_void": True}
    standby = index(xids, [11, 21, 31, 41]).append_column("commit_ordinal", logged.column("commit_ordinal"))
    assert unseen(replayed, standby).tolist() == [False, False, False, True]
