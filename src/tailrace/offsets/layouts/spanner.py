"""Offsets of Debezium's Spanner connector: a time for each partition of a change stream. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import TEXT
from tailrace.offsets.layout import CrossRule, FieldCodec, Layout, OffsetField, Wire

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)


def parse_time(value: Any) -> str:
    """RFC 3339, of which the connector also reads other zones and none, which is UTC. A text in UTC with no or nine
    digits of a second, as the connector writes it: more than Python's times can hold."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    zone = "+00:00" if found[3] in (None, "Z") else found[3]
    second = datetime.fromisoformat(found[1] + zone).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = (found[2] or "").ljust(9, "0")
    return f"{second}Z" if fraction == "0" * 9 else f"{second}.{fraction}Z"


TIME = FieldCodec(
    "time",
    "a time in UTC such as 2026-11-17T12:00:00.123456789Z",
    parse_time,
    str,
    {"type": "string", "format": "date-time"},
)
MAYBE_TIME = FieldCodec(
    "time", f"empty, or {TIME.says}", lambda value: value if value == "" else parse_time(value), str, {"type": "string"}
)


def _moves_forward(wire: Wire) -> tuple[str, str] | None:
    start, offset = wire.get("startTime"), wire.get("offset")
    if start is not None and offset is not None and _sortable(parse_time(offset)) < _sortable(parse_time(start)):
        return "offset", "lies before startTime, where the partition begins"
    return None


def _sortable(time: str) -> str:
    return time.removesuffix("Z").ljust(20, ".").ljust(29, "0")


LAYOUT = Layout(
    kind="spanner",
    about="a partition for each token of the change stream",
    partition=(OffsetField("partitionToken", TEXT, "the partition's token; Parent0 is the first", required=True),),
    offset=(
        OffsetField("offset", TIME, "everything up to here has been read", required=True),
        OffsetField("startTime", TIME, "where the partition begins; for a person"),
        OffsetField("queryStartedAt", MAYBE_TIME, "when it was last asked for; for a person"),
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
