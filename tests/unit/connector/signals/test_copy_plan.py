"""What a copy would be, judged from records alone."""

from __future__ import annotations

import json

from tailrace.connector.signals.orders import ExecuteSnapshot, order_of
from tailrace.connector.signals.plan import plan_of
from tailrace.lake.records.ordered_copies import Snapshots
from tailrace.model.signal import Signal
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

RECORDS = {
    TableId("public", name): TableRecord(TableState(name), copy=1)
    for name in ("live", "errored", "pending", "resyncing", "removed")
}


def test_a_plan_says_of_each_table_what_a_person_may_not_expect() -> None:
    data = {"data-collections": ["public\\..*", "none"], "additional-condition": "id > 1"}
    order = order_of(Signal("s", "execute-snapshot", json.dumps(data)))
    assert isinstance(order, ExecuteSnapshot)
    plan = plan_of(order, RECORDS, Snapshots(paused=frozenset({"public.live"})))
    found = {each.table.name: (each.condition, " ".join(each.notes)) for each in plan.tables}
    assert plan.missing == "no table matches none"
    assert sorted(found) == ["errored", "live", "pending", "resyncing"], "one that is left out is not meant"
    assert found["live"] == ("id > 1", "its copies are paused: it waits until they are resumed")
    assert found["errored"] == (None, "it is not whole now, so all rows are copied")
    assert "the copy that it waits for is the answer" in found["pending"][1]
    assert "it begins again" in found["resyncing"][1]
