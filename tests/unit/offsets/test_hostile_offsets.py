"""Whatever is given as an offset becomes a list of faults or an offset; and offsets come back as they were."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.java_arrays import texts_of

from tailrace.errors import DefiniteError
from tailrace.offsets import java
from tailrace.offsets.connect import read_offsets
from tailrace.offsets.difference import Change, diff
from tailrace.offsets.kinds import KINDS, emit, layout_of, parse, upgrade, validate
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.offsets.layouts import mysql
from tailrace.offsets.layouts.commit_scn import ThreadCommit
from tailrace.offsets.layouts.commit_scn import emit as emit_commits
from tailrace.offsets.layouts.commit_scn import parse as parse_commits
from tailrace.offsets.wire import validate_body

HUGE = 10**5000
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**70, 2**90)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=5)
    | st.sampled_from(["NULL", "true", "1:2:3", "1,2", "{}", "[]", '[{"a":1}]', "٣", "-1", "1:1:", "a:1", ":", "0-0-0"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _objects(kind: str) -> st.SearchStrategy[Any]:
    layout = layout_of(kind)
    names = [field.name for field in (*layout.offset, *layout.partition)]
    names += ["transaction_data_collection_order_", "transaction_data_collection_order_a.b", "ks.table"]
    return VALUES | st.dictionaries(st.sampled_from(names) | st.text(max_size=4), VALUES, max_size=5)


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, default=repr).encode()


@given(st.data())
def test_anything_at_all_becomes_faults_or_an_offset(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    partition, offset = data.draw(_objects(kind)), data.draw(_objects(kind))
    faults = validate(kind, partition, offset)
    if faults:
        assert all(fault.field and fault.rule and len(fault.message) < 1000 for fault in faults)
        with pytest.raises(OffsetFaultsError):
            parse(kind, partition, offset)
    else:
        once = emit(parse(kind, partition, offset))
        assert emit(parse(kind, *once)) == once


@given(st.data())
def test_any_body_becomes_faults_or_none(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    entry = st.fixed_dictionaries({"partition": _objects(kind), "offset": _objects(kind)}) | VALUES
    body = data.draw(VALUES | st.fixed_dictionaries({"offsets": VALUES | st.lists(entry, max_size=3)}))
    assert all(fault.message for fault in validate_body(kind, body))


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | VALUES.map(_json_bytes))
def test_any_file_becomes_offsets_or_a_definite_error(content: bytes) -> None:
    for given_content in (content, java.MAGIC + content):
        with contextlib.suppress(DefiniteError):
            assert isinstance(read_offsets(given_content), list)


def test_a_deep_and_a_huge_value_are_faults_and_not_a_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert [fault.rule for fault in validate("postgres", {"server": "s"}, {"lsn": deep})] == ["lsn"]
    assert [fault.rule for fault in validate("postgres", {"server": "s"}, {"lsn": HUGE})] == ["lsn"]
    assert [fault.rule for fault in validate("oracle", {"server": "s"}, {"scn": "9" * 5000, "commit_scn": None})] == [
        "scn"
    ]
    many = {f"f{number}": 1 for number in range(10_000)}
    assert len(validate("postgres", {"server": "s"}, many)) == 100


LONGS = st.integers(0, 2**63 - 1)


@given(
    st.fixed_dictionaries(
        {"lsn": st.integers(1, 2**63 - 1)},
        optional={
            "lsn_proc": LONGS,
            "lsn_commit": LONGS,
            "txId": LONGS,
            "ts_usec": LONGS,
            "xmin": LONGS,
            "messageType": st.sampled_from(["INSERT", "COMMIT"]),
            "snapshot": st.sampled_from(["INITIAL", "BLOCKING", "INCREMENTAL"]),
        },
    ),
    st.dictionaries(st.text(min_size=1, max_size=10), LONGS, max_size=3),
)
def test_a_postgres_offset_comes_back_as_it_was(offset: dict[str, Any], orders: dict[str, int]) -> None:
    counted = {f"transaction_data_collection_order_{table}": count for table, count in orders.items()}
    whole = {**offset, **counted, **({"transaction_id": "7"} if orders else {})}
    expected = {**({"lsn_commit": whole["lsn_proc"]} if "lsn_proc" in whole else {}), **whole}
    assert upgrade("postgres", whole) == expected


TRANSACTIONS = st.lists(st.text("0123456789abcdef", min_size=1, max_size=16), max_size=3)
COMMITS = st.tuples(st.integers(1, 99), st.integers(0, 10**38 - 1), TRANSACTIONS)


@given(st.lists(COMMITS, min_size=1, max_size=4, unique_by=lambda each: each[0]))
def test_commit_scns_come_back_in_the_order_of_their_threads(entries: list[tuple[int, int, list[str]]]) -> None:
    text = ",".join(f"{scn}:{thread}:{'-'.join(names)}" for thread, scn, names in entries)
    found = parse_commits(text)
    assert [each.thread for each in found] == sorted(thread for thread, _, _ in entries)
    assert {(each.thread, each.scn, frozenset(each.transactions)) for each in found} == {
        (thread, scn, frozenset(names)) for thread, scn, names in entries
    }
    assert parse_commits(emit_commits(found)) == found


def test_the_commit_scn_of_the_paper_has_two_nodes_and_three_transactions() -> None:
    found = parse_commits("1234567890:1:5af87ce941a2-978a445f3213,9876543210:2:78f8eaf8741a")
    assert found == (
        ThreadCommit(1, 1234567890, ("5af87ce941a2", "978a445f3213")),
        ThreadCommit(2, 9876543210, ("78f8eaf8741a",)),
    )


@given(st.lists(st.text(max_size=30), max_size=4))
@example(["\ud000\U00010000", "\0", "😀", "x" * 70_000])
def test_keys_in_javas_form_come_back_as_they_were(texts: list[str]) -> None:
    assert texts_of(java.texts_to_hex(texts)) == texts


def test_keys_are_written_byte_for_byte_as_java_writes_them() -> None:
    written_by_java = (
        "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000002"
        "74000131" + "74000a61c08062eda0bdedb880"
    )
    assert java.texts_to_hex(["1", "a\0b😀"]) == written_by_java
    assert java.texts_to_hex(None) == "aced000570"


def test_gtids_keep_their_tags_and_join_what_is_written_apart() -> None:
    uuid = "24bc7850-2c16-11e6-a073-0242ac110002"
    found = mysql.parse_gtids(f"{uuid.upper()}:1-3:blue:5:7-9,\n{uuid}:11")
    assert found == {uuid: ((1, 3), (11, 11)), f"{uuid}:blue": ((5, 5), (7, 9))}
    assert mysql.emit_gtids(found) == f"{uuid}:1-3:11,{uuid}:blue:5:7-9"


def test_a_difference_names_what_was_added_removed_and_changed() -> None:
    found = diff({"lsn": 1, "txId": 2, "flag": 1}, {"lsn": 5, "xmin": None, "flag": True})
    assert [(each.field, each.change, each.before, each.after) for each in found] == [
        ("flag", Change.MODIFIED, 1, True),
        ("lsn", Change.MODIFIED, 1, 5),
        ("txId", Change.REMOVED, 2, None),
        ("xmin", Change.ADDED, None, None),
    ]
    assert [str(each) for each in found][1:] == ["lsn: 1 → 5", "txId: 2 → removed", "xmin: not there → null"]
    assert diff(None, {}) == []
    assert [each.change for each in diff({"lsn": 1}, None)] == [Change.REMOVED]
