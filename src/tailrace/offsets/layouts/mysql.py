"""Offsets of Debezium's MySQL and MariaDB connectors: a place in the binlog, and the transactions done so far. Pure."""

from __future__ import annotations

import re
from typing import Any

from tailrace.offsets.attributes import (
    COMPLETED_FIELD,
    ORDERS,
    SHARED_FIELDS,
    SHARED_RULES,
    SNAPSHOT_FIELD,
    without_ended,
)
from tailrace.offsets.codecs import INT, LONG, TEXT, number_in, parsed_text, text, whole_number
from tailrace.offsets.layout import FieldCodec, Layout, OffsetField

MILLISECONDS_MIN = 100_000_000_000
"""A time of more seconds than this lies after the year 5000: it was meant as milliseconds."""
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,31}")

Intervals = tuple[tuple[int, int], ...]
GtidSet = dict[str, Intervals]
"""Transactions by server, or by server and tag, as ranges with both ends in them."""


def parse_gtids(value: str) -> GtidSet:
    """`uuid:1-5:7,uuid:tag:1-3`; line breaks after commas are the server's own. Nothing at all is no transaction."""
    found: GtidSet = {}
    for part in _parts(value):
        server, *rest = part.split(":")
        if not re.fullmatch(_UUID, server) or not rest:
            raise ValueError(f"{part[:60]!r} is not a server with its transactions")
        source = server.lower()
        for each in rest:
            if _TAG.fullmatch(each):
                source = f"{server.lower()}:{each.lower()}"
                found.setdefault(source, ())
            else:
                found[source] = (*found.get(source, ()), _interval(each))
    if not all(found.values()):
        raise ValueError("a server has no transactions")
    return found


def _parts(value: str) -> list[str]:
    compact = re.sub(r"[\r\n ]", "", value)
    return compact.split(",") if compact else []


def _interval(value: str) -> tuple[int, int]:
    first, dash, last = value.partition("-")
    begin = number_in(first, 1)
    end = number_in(last, 1) if dash else begin
    if end < begin:
        raise ValueError(f"{value[:40]!r} ends before it begins")
    return begin, end


def emit_gtids(gtids: GtidSet) -> str:
    return ",".join(
        ":".join([source, *(str(a) if a == b else f"{a}-{b}" for a, b in intervals)])
        for source, intervals in gtids.items()
    )


def parse_mariadb_gtids(value: str) -> tuple[tuple[int, int, int], ...]:
    """`domain-server-sequence`, one for each domain."""
    found = []
    for part in _parts(value):
        numbers = part.split("-")
        if len(numbers) != 3:
            raise ValueError(f"{part[:60]!r} is not domain-server-sequence")
        domain, server, sequence = numbers
        found.append((number_in(domain, 0, 2**32 - 1), number_in(server, 0, 2**32 - 1), number_in(sequence)))
    return tuple(found)


def emit_mariadb_gtids(gtids: tuple[tuple[int, int, int], ...]) -> str:
    return ",".join("-".join(map(str, each)) for each in gtids)


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    """Empty values are left out, and the time has the name that the connector gives it."""
    optional = ("event", "row", "gtids", "ts_sec")
    values = {name: value for name, value in without_ended(values).items() if value or name not in optional}
    time = values.pop("ts_ms", None)
    if time is not None and "ts_sec" not in values:
        values["ts_sec"] = time // 1000 if time >= MILLISECONDS_MIN else time
    return values


def _layout(kind: str, about: str, gtids: FieldCodec, gtids_example: str) -> Layout:
    return Layout(
        kind=kind,
        about=about,
        partition=(OffsetField("server", TEXT, "the connector's topic.prefix", required=True),),
        offset=(
            OffsetField("server_id", whole_number(maximum=2**32 - 1), "the server's own number"),
            OffsetField("gtids", gtids, "the transactions that have been processed", nullable=True),
            OffsetField(
                "file",
                text("binlog-file", "a file of the binlog, such as mysql-bin.000003", r"[^/\\\x00-\x1f]+\.[0-9]{1,19}"),
                "the file of the binlog to read from",
                required=True,
            ),
            OffsetField("pos", LONG, "the position in it where the event begins", required=True),
            OffsetField("event", LONG, "how many events from there are to be skipped; left out if none"),
            OffsetField("row", INT, "how many rows of the next event are to be skipped; left out if none"),
            OffsetField("ts_sec", LONG, "when that was committed, seconds since 1970", nullable=True),
            OffsetField(
                "ts_ms", LONG, "the same, under the name that the paper on offsets has", nullable=True, until="2.2"
            ),
            SNAPSHOT_FIELD,
            COMPLETED_FIELD,
            *SHARED_FIELDS,
        ),
        families=(ORDERS,),
        cross_rules=SHARED_RULES,
        newest=_newest,
        example={
            "partition": {"server": "shop"},
            "offset": {"file": "mysql-bin.000003", "pos": 154, "gtids": gtids_example, "ts_sec": 1700000000},
        },
    )


LAYOUT = _layout(
    "mysql",
    "one partition for a connector; a place in the binlog",
    parsed_text("gtids", "a set of GTIDs such as 24bc7850-2c16-11e6-a073-0242ac110002:1-5", parse_gtids, emit_gtids),
    "24bc7850-2c16-11e6-a073-0242ac110002:1-5",
)
MARIADB_LAYOUT = _layout(
    "mariadb",
    "as mysql, with GTIDs of MariaDB",
    parsed_text("gtids", "a list of GTIDs such as 0-1-100", parse_mariadb_gtids, emit_mariadb_gtids),
    "0-1-100",
)
