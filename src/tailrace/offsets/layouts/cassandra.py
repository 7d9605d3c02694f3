"""Offsets of Debezium's Cassandra connector: a map from tables to places in commit logs, for each node. Pure.

    {"cycling.birthday_list.commitlog": "CommitLog-7-1700000000000.log:12345"}

Keys may be added, removed and changed, each by itself (`editing.edited`): one table's place is no other's business, and
a table without a key is read from the oldest commit log. `.snapshot` and
`.commitlog` tell the two places of a table apart; stores of older versions keep them in two files instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import INT_MAX, TEXT, number_in, parsed_text
from tailrace.offsets.layout import CrossRule, Family, Layout, OffsetField, Wire

_FILE = re.compile(r"CommitLog-[0-9]{1,9}-([0-9]{1,19})\.log", re.IGNORECASE)
_KEY = re.compile(
    r"(?!transaction_id$|transaction_data_collection_order_|incremental_snapshot_)"
    r"[A-Za-z0-9_]{1,96}(?:\.[A-Za-z0-9_]{1,96})?(?:\.(?:snapshot|commitlog))?"
)
BEFORE_EVERYTHING = ":-1"
"""What a table has whose snapshot is done: no file."""


@dataclass(frozen=True)
class CommitLogPlace:
    """A position in a commit log; no file lies before every file."""

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"


def parse_place(value: str) -> CommitLogPlace:
    if value == BEFORE_EVERYTHING:
        return CommitLogPlace("", -1)
    file, colon, position = value.rpartition(":")
    if not colon or not _FILE.fullmatch(file):
        raise ValueError(f"{file[:60]!r} is not a commit log")
    return CommitLogPlace(file, number_in(position, 0, INT_MAX))


PLACE = parsed_text("place", "a place such as CommitLog-7-1700000000000.log:12345", parse_place, str)
TABLES = Family(
    "<keyspace>.<table>[.snapshot|.commitlog]",
    lambda name: _KEY.fullmatch(name) is not None,
    PLACE,
    "the place in a commit log up to which the table has been read",
    f"^{_KEY.pattern}$",
)


def _node_and_name(wire: Wire) -> tuple[str, str] | None:
    if ("logicalName" in wire) != ("nodeId" in wire):
        missing = "nodeId" if "logicalName" in wire else "logicalName"
        return missing, "is missing: a node is known by both"
    return None


LAYOUT = Layout(
    kind="cassandra",
    about="a partition for each node; in it, a place for each table",
    partition=(
        OffsetField("logicalName", TEXT, "the connector's topic.prefix"),
        OffsetField("nodeId", TEXT, "the node"),
    ),
    offset=SHARED_FIELDS,
    families=(ORDERS, TABLES),
    cross_rules=SHARED_RULES,
    partition_rules=(CrossRule("node", _node_and_name),),
    is_single=False,
    example={
        "partition": {"logicalName": "shop", "nodeId": "node-1"},
        "offset": {"cycling.birthday_list.commitlog": "CommitLog-7-1700000000000.log:12345"},
    },
)
