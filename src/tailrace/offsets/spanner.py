"""Offsets of Debezium's Spanner connector: a time for each partition of a change stream. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import TEXT
from tailrace.offsets.layout import Codec, CrossRule, Field, Layout, Wire

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z", re.ASCII)


def parse_time(value: Any) -> str:
    """RFC 3339 in UTC, with up to nine digits of a second: more than Python's times can hold: it stays a text."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    datetime.fromisoformat(found[1])
    return str(value)


TIME = Codec(
    "time",
    "a time in UTC such as 2026-11-17T12:00:00.123456789Z",
    parse_time,
    str,
    {"type": "string", "format": "date-time"},
)
MAYBE_TIME = Codec(
    "time", f"empty, or {TIME.says}", lambda value: value if value == "" else parse_time(value), str, {"type": "string"}
)


def _moves_forward(wire: Wire) -> tuple[str, str] | None:
    start, offset = wire.get("startTime"), wire.get("offset")
    if start is not None and offset is not None and _sortable(offset) < _sortable(start):
        return "offset", "lies before startTime, where the partition begins"
    return None


def _sortable(value: str) -> tuple[str, str]:
    found = _TIME.fullmatch(value)
    assert found is not None
    return found[1], (found[2] or "").ljust(9, "0")


LAYOUT = Layout(
    kind="spanner",
    about="a partition for each token of the change stream",
    partition=(Field("partitionToken", TEXT, "the partition's token; Parent0 is the first", required=True),),
    offset=(
        Field("offset", TIME, "everything up to here has been read", required=True),
        Field("startTime", TIME, "where the partition begins; for a person"),
        Field("queryStartedAt", MAYBE_TIME, "when it was last asked for; for a person"),
        *SHARED_FIELDS,
    ),
    families=(ORDERS,),
    cross_rules=(CrossRule("forward", _moves_forward), *SHARED_RULES),
    is_single=False,
    example={
        "partition": {"partitionToken": "Parent0"},
        "offset": {"offset": "2026-11-17T12:00:00.123456789Z", "startTime": "2026-11-17T11:00:00Z"},
    },
)
