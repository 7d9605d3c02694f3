"""Offsets over the wire, and as Kafka Connect keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.errors import DefiniteError
from tailrace.offsets.connect import StoredOffset, choose, read_offsets
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.offsets.wire import Entry, emit_entries, parse_entries, validate_body

SHOP: dict[str, Any] = {"partition": {"server": "shop"}, "offset": {"lsn": 5}}
WRITTEN_BY_JAVA = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f72490009746872"
    "6573686f6c6478703f4000000000000c77080000001000000002757200025b42acf317f8060854e00200007870000000145b2265222c7b"
    "22736572766572223a2279227d5d707571007e0002000000145b2265222c7b22736572766572223a2278227d5d7571007e000200000010"
    "7b226c736e223a312c22c3bc223a327d78"
)
"""A map with `["e",{"server":"y"}]` for null and `["e",{"server":"x"}]` for `{"lsn":1,"ü":2}`."""


def test_a_body_is_entries_and_null_removes_a_partition() -> None:
    body = {"offsets": [SHOP, {"partition": {"server": "old"}, "offset": None}]}
    found = parse_entries("postgres", body)
    assert found == [Entry({"server": "shop"}, {"lsn": 5}), Entry({"server": "old"}, None)]
    assert emit_entries(found) == body


@pytest.mark.parametrize(
    ("kind", "body", "field", "rule"),
    [
        ("postgres", {}, "offsets", "shape"),
        ("postgres", {"offsets": "shop"}, "offsets", "shape"),
        ("postgres", {"offsets": []}, "offsets", "count"),
        ("postgres", {"offsets": [SHOP], "more": 1}, "more", "known"),
        ("postgres", {"offsets": [{"partition": {"server": "s"}}]}, "offsets[0]", "shape"),
        ("postgres", {"offsets": [{**SHOP, "offset": {"lsn": "x"}}]}, "offsets[0].offset.lsn", "lsn"),
        ("postgres", {"offsets": [{"partition": {}, "offset": None}]}, "offsets[0].partition.server", "required"),
        ("postgres", {"offsets": [SHOP, SHOP]}, "offsets[1].partition", "unique"),
        ("postgres", {"offsets": [SHOP, {**SHOP, "partition": {"server": "b"}}]}, "offsets", "single-partition"),
    ],
)
def test_a_body_that_is_wrong_says_where(kind: str, body: object, field: str, rule: str) -> None:
    assert [(fault.field, fault.rule) for fault in validate_body(kind, body)] == [(field, rule)]
    with pytest.raises(OffsetFaultsError):
        parse_entries(kind, body)


def test_several_databases_of_sql_server_are_several_partitions() -> None:
    offset = {"commit_lsn": "00000027:00000ac0:0002"}
    body = {"offsets": [{"partition": {"server": "s", "database": name}, "offset": offset} for name in "ab"]}
    assert validate_body("sqlserver", body) == []


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"offsets": [SHOP]}),
        json.dumps(SHOP),
        '\ufeff["shop",{"server":"shop"}]\t{"lsn":5}\n',
        '["shop",{"server":"shop"}] {"lsn":5}',
        '["shop",{"server":"shop"}]\t{"lsn":1}\n["shop",{"server":"b"}]\t{"lsn":1}\n\n'
        '["shop",{"server":"b"}]\tnull\n["shop",{"server":"shop"}]\t{"lsn":5}\n',
        json.dumps({"key": '["shop",{"server":"shop"}]', "payload": '{"lsn":5}', "offset": 7}),
        json.dumps({"key": ["shop", {"server": "shop"}], "value": {"lsn": 5}}),
        '{"schema":null,"payload":["shop",{"server":"shop"}]}\t{"schema":null,"payload":{"lsn":5}}',
    ],
)
def test_every_form_of_the_same_offset_is_read_alike(content: str) -> None:
    (found,) = read_offsets(content.encode())
    assert (found.partition, found.offset) == ({"server": "shop"}, {"lsn": 5})
    assert found.connector in ("shop", None)


def test_the_file_of_a_store_is_read_as_java_wrote_it() -> None:
    assert read_offsets(WRITTEN_BY_JAVA) == [StoredOffset("e", {"server": "x"}, {"lsn": 1, "ü": 2})]


@pytest.mark.parametrize("length", [5, 60, 120, len(WRITTEN_BY_JAVA) - 1])
def test_a_file_that_was_cut_short_is_a_definite_error(length: int) -> None:
    with pytest.raises(DefiniteError, match="cannot be read"):
        read_offsets(WRITTEN_BY_JAVA[:length])


@pytest.mark.parametrize("content", ["", "not an offset", "[1,2]\t{}", '["shop",{}]\t7', '{"offsets": 5}', "\x00\xff"])
def test_what_is_no_offset_says_what_is_wanted(content: str) -> None:
    with pytest.raises(DefiniteError) as caught:
        read_offsets(content.encode("latin-1"))
    assert "GET /connectors/NAME/offsets" in (caught.value.hint or "")


def test_one_of_several_offsets_is_chosen_by_name() -> None:
    found = [StoredOffset("a", {"server": "x"}, {}), StoredOffset("b", {"server": "y"}, {})]
    assert choose(found, connector="b") is found[1]
    assert choose(found, server="x") is found[0]
    for connector, server in ((None, None), ("c", None), ("a", "y")):
        with pytest.raises(DefiniteError, match=r'a \{"server": "x"\}, b \{"server": "y"\}'):
            choose(found, connector, server)
