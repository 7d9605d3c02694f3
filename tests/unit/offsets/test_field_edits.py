"""Offsets of any kind, changed field by field: the rest stays, and what comes of it keeps every rule."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.offsets.editing import FieldEdit, edited
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.offsets.wire import emit_entries

NODE = {"logicalName": "shop", "nodeId": "n1"}
PLACE = "CommitLog-7-1700000000000.log:12345"
CASSANDRA = {"offsets": [{"partition": NODE, "offset": {"cycling.riders": PLACE}}]}
DATABASES = {
    "offsets": [
        {"partition": {"server": "shop", "database": name}, "offset": {"commit_lsn": "00000027:00000ac0:0002"}}
        for name in ("orders", "stock")
    ]
}


def after(kind: str, body: object, **edit: Any) -> list[Any]:
    return [each["offset"] for each in emit_entries(edited(kind, body, FieldEdit(**edit)))["offsets"]]


def test_a_table_of_cassandra_is_added_moved_and_removed_by_itself() -> None:
    added = after("cassandra", CASSANDRA, put={"cycling.races.snapshot": ":-1"})
    assert added == [{"cycling.riders": PLACE, "cycling.races.snapshot": ":-1"}]
    both = {"offsets": [{"partition": NODE, "offset": added[0]}]}
    moved = after("cassandra", both, put={"cycling.riders": "CommitLog-7-2.log:0"}, remove=["cycling.races.snapshot"])
    assert moved == [{"cycling.riders": "CommitLog-7-2.log:0"}]
    assert after("cassandra", CASSANDRA, remove=["cycling.riders"]) == [{}]


def test_of_several_partitions_only_the_one_that_is_named_changes_and_a_new_one_is_added() -> None:
    lsn = "00000028:00000001:0001"
    stock, more = {"server": "shop", "database": "stock"}, {"server": "shop", "database": "more"}
    assert after("sqlserver", DATABASES, put={"commit_lsn": lsn}, partition=stock) == [
        {"commit_lsn": "00000027:00000ac0:0002"},
        {"commit_lsn": lsn},
    ]
    assert after("sqlserver", DATABASES, put={"commit_lsn": lsn}, partition=more)[2] == {"commit_lsn": lsn}


@pytest.mark.parametrize(
    ("kind", "body", "edit", "field", "rule"),
    [
        ("cassandra", CASSANDRA, {"put": {"cycling.riders": "elsewhere:5"}}, "offset.cycling.riders", "place"),
        ("cassandra", CASSANDRA, {"put": {"not a table": PLACE}}, "offset.not a table", "known"),
        ("cassandra", CASSANDRA, {"remove": ["cycling.races"]}, "offset.cycling.races", "there"),
        ("cassandra", CASSANDRA, {"put": {"a.b": PLACE}, "remove": ["a.b"]}, "offset.a.b", "once"),
        ("cassandra", CASSANDRA, {"put": {"a.b": PLACE}, "partition": {"nodeId": "n"}}, "logicalName", "node"),
        ("sqlserver", DATABASES, {"remove": ["commit_lsn"]}, "partition", "required"),
        ("postgres", {"offsets": []}, {}, "offsets", "count"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_named_with_the_rule(
    kind: str, body: object, edit: dict[str, Any], field: str, rule: str
) -> None:
    with pytest.raises(OffsetFaultsError, match=rf"\[{rule}\]") as caught:
        edited(kind, body, FieldEdit(**edit))
    assert caught.value.faults[0].field.endswith(field)
    assert field.removeprefix("offset.") in caught.value.message
