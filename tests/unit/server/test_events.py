"""What is sent of an event, to whom, and what one who comes back has missed."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tailrace.connector.events import CutPublished, StreamProgressed, TableChanged, TroubleChanged, fields_of
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.server.api.events import RUN, Subscription
from tailrace.server.errors import RequestError
from tailrace.server.supervisor.hub import EventsMissed, Telling

CUT = PublishedCut(7, SourcePosition(9, 1_000_000), {"public.t": CutTable(3, 1, 7)}, 2_000_000)


def test_progress_says_what_its_fields_are_without_the_tables_of_its_cut() -> None:
    event = StreamProgressed(CUT, "0/9", 8, 1.5, None, 0.25)
    expected = {name: each for name, each in asdict(event).items() if name != "cut"}
    assert fields_of(event) == expected | {"cut_seq": 7, "tables": 1}
    assert fields_of(CutPublished(CUT, "0/9", 0.5, 2)) == {
        "seq": 7,
        "position": "0/9",
        "tables": 1,
        "seconds": 0.5,
        "transactions": 2,
    }


def test_a_table_says_all_but_its_definition() -> None:
    record = TableRecord(TableState.LIVE, copy=2, definition={"columns": []})
    found = fields_of(TableChanged(TableId("public", "t"), record))
    assert found["table"] == {"namespace": "public", "name": "t"}
    left_out = {name for name in asdict(record) if name not in found["record"]}
    assert (found["record"]["state"], left_out) == ("live", {"definition", "ended"})


def test_a_listener_hears_the_connectors_and_kinds_that_it_names_and_always_what_it_missed() -> None:
    trouble, cut = Telling(1, "a", TroubleChanged("x")), Telling(2, "b", CutPublished(CUT, "0/9"))
    missed = Telling(3, "", EventsMissed(4))
    heard = {
        "all": [each.number for each in (trouble, cut, missed) if Subscription.of(None, None, None).has(each)],
        "a": [each.number for each in (trouble, cut, missed) if Subscription.of(["a"], None, None).has(each)],
        "cuts": [
            each.number for each in (trouble, cut, missed) if Subscription.of(None, ["CutPublished"], None).has(each)
        ],
    }
    assert heard == {"all": [1, 2, 3], "a": [1, 3], "cuts": [2, 3]}
    with pytest.raises(RequestError, match="no kind of event Nonsense"):
        Subscription.of(None, ["Nonsense"], None)


@pytest.mark.parametrize(
    ("last_id", "missed"),
    [
        (None, None),
        (f"{RUN}-12", None),
        (f"{RUN}-10", EventsMissed(2)),
        ("another-12", EventsMissed(None)),
        (f"{RUN}-x", EventsMissed(None)),
        (f"{RUN}-²", EventsMissed(None)),
        ("", EventsMissed(None)),
    ],
)
def test_one_who_comes_back_learns_whether_it_missed_anything(last_id: str | None, missed: EventsMissed | None) -> None:
    assert Subscription.of(None, None, last_id).missed(12) == missed
