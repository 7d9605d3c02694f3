"""Sets of transactions, against sets of Python."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.source.mysql.events.gtids import Gtid, GtidSet, MariaDbGtid, MariaDbPosition

SOURCES = [UUID(int=1), UUID(int=2)]
GTIDS = st.builds(Gtid, st.sampled_from(SOURCES), st.sampled_from(["", "a", "b_2"]), st.integers(1, 20))
SETS = st.sets(GTIDS, max_size=40)


def of(members: set[Gtid]) -> GtidSet:
    return GtidSet().with_more(members)


def members(found: GtidSet) -> set[Gtid]:
    return {
        Gtid(source, tag, number)
        for (source, tag), intervals in found.members.items()
        for first, stop in intervals
        for number in range(first, stop)
    }


@given(SETS, SETS)
def test_sets_are_joined_taken_away_and_compared_by_their_members(one: set[Gtid], other: set[Gtid]) -> None:
    assert members(of(one)) == one
    assert members(of(one) | of(other)) == one | other
    assert members(of(one) - of(other)) == one - other
    assert (of(one) <= of(other)) == (one <= other)
    assert (of(one) == of(other)) == (one == other)


@given(SETS, GTIDS)
def test_a_member_is_one_also_beside_a_hole(some: set[Gtid], gtid: Gtid) -> None:
    assert (gtid in of(some)) == (gtid in some)


@given(SETS)
def test_a_set_is_read_as_it_is_written(some: set[Gtid]) -> None:
    assert GtidSet.parse(str(of(some))) == of(some)
    assert GtidSet.from_bytes(of(some).to_bytes()) == of(some)


def test_a_set_is_written_as_the_server_writes_it() -> None:
    text = "00000000-0000-0000-0000-000000000001:1-5:7:a:1-3:9,00000000-0000-0000-0000-000000000002:4"
    assert str(GtidSet.parse(text.replace(",", ",\n").replace(":a:", ": A :"))) == text


@pytest.mark.parametrize(
    "text", ["x", "1-2", str(SOURCES[0]), f"{SOURCES[0]}:0", f"{SOURCES[0]}:5-4", f"{SOURCES[0]}:-:1"]
)
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        GtidSet.parse(text)


@given(SETS.filter(bool), st.data())
def test_a_set_that_is_cut_off_is_refused(some: set[Gtid], data: st.DataObject) -> None:
    whole = of(some).to_bytes()
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match=r"."):
        GtidSet.from_bytes(whole[:length])


def test_a_position_of_mariadb_has_the_last_of_each_domain() -> None:
    position = MariaDbPosition.parse("1-7-9,0-3-100")
    assert str(position) == "0-3-100,1-7-9"
    assert MariaDbGtid(0, 5, 100) in position
    assert MariaDbGtid(0, 3, 101) not in position
    assert MariaDbGtid(2, 3, 1) not in position
    assert str(position.with_more([MariaDbGtid(0, 5, 101), MariaDbGtid(2, 5, 1)])) == "0-5-101,1-7-9,2-5-1"
    for text in ("0-1", "0-1-2,0-1-3", "a-b-c"):
        with pytest.raises(ValueError, match=r"."):
            MariaDbPosition.parse(text)
