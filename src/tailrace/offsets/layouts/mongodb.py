"""Offsets of Debezium's MongoDB connector: a time of the cluster, and a token of the change stream. Pure."""

from __future__ import annotations

from typing import Any

from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import FLAG, INT_MAX, LONG_MAX, TEXT, text, whole_number
from tailrace.offsets.layout import CrossRule, Layout, OffsetField, Wire

_OPLOG_FIELDS = ("h", "tord", "stxnid")
"""Of the oplog, which was read until 1.9. A change stream has no use for them."""
_ANY_LONG = whole_number(-LONG_MAX - 1)
_SECONDS = whole_number(-1, 2**32 - 1)


def _some_position(wire: Wire) -> tuple[str, str] | None:
    is_copying = wire.get("initsync") in (True, "true")
    if not is_copying and wire.get("resume_token") is None and not (wire.get("sec") or 0) > 0:
        return "resume_token", "is missing, and sec is no time: this is no position"
    return None


def _session_has_both(wire: Wire) -> tuple[str, str] | None:
    if wire.get("txnNumber") is not None and wire.get("lsid") is None:
        return "txnNumber", "counts transactions of a session, and lsid does not say of which"
    return None


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _OPLOG_FIELDS}


LAYOUT = Layout(
    kind="mongodb",
    about="one partition for a connector; until 2.5 one for each replica set",
    partition=(
        OffsetField("server_id", TEXT, "the connector's topic.prefix", required=True),
        OffsetField("rs", TEXT, "the replica set", until="2.5"),
    ),
    offset=(
        OffsetField("sec", _SECONDS, "the cluster's time of the last event, seconds since 1970; -1 if unknown"),
        OffsetField("ord", whole_number(-1, INT_MAX), "the event within that second; -1 if unknown"),
        OffsetField("initsync", FLAG, "a snapshot is under way"),
        OffsetField(
            "resume_token",
            text("resume-token", "a token of a change stream, in base64 or in hex", r"[A-Za-z0-9+/=_-]+"),
            "the change stream's own position: in hex in old versions, in base64 since 2.7",
            nullable=True,
        ),
        OffsetField("lsid", TEXT, "the session of a transaction under way", nullable=True),
        OffsetField("txnNumber", whole_number(-1), "the transaction within that session", nullable=True),
        OffsetField("h", _ANY_LONG, "the oplog's number of the event", nullable=True, until="1.9"),
        OffsetField("tord", _ANY_LONG, "the event within a transaction of the oplog", nullable=True, until="1.9"),
        OffsetField("stxnid", TEXT, "the oplog's transaction", nullable=True, until="1.9"),
        *SHARED_FIELDS,
    ),
    families=(ORDERS,),
    cross_rules=(CrossRule("position", _some_position), CrossRule("session", _session_has_both), *SHARED_RULES),
    is_single=False,
    newest=_newest,
    example={
        "partition": {"server_id": "shop"},
        "offset": {"sec": 1700000000, "ord": 1, "resume_token": "glQAAAACX2RhdGEARwAAADgyNjU1"},
    },
)
