"""Offsets of Debezium's Postgres connector. Ours are written in the same layout. Pure.

An LSN is a number here, where Postgres itself writes `16/B374D848`.
"""

from __future__ import annotations

from typing import Any

from tailrace.offsets.attributes import (
    COMPLETED_FIELD,
    ORDERS,
    SHARED_FIELDS,
    SHARED_RULES,
    SNAPSHOT_FIELD,
    without_ended,
)
from tailrace.offsets.codecs import FLAG, LONG, TEXT, choice, whole_number
from tailrace.offsets.layout import CrossRule, Layout, OffsetField, Wire

MESSAGE_TYPES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "MESSAGE", "BEGIN", "COMMIT", "NOOP", "ORIGIN")
LSN = whole_number(rule="lsn")


def _snapshot_facts_need_one(wire: Wire) -> tuple[str, str] | None:
    if wire.get("last_snapshot_record") in (True, "true") and "snapshot" not in wire:
        return "last_snapshot_record", "belongs to a snapshot, and snapshot does not say which"
    return None


def _some_lsn(wire: Wire) -> tuple[str, str] | None:
    if not any(wire.get(name) for name in ("lsn", "lsn_proc", "lsn_commit")):
        return "lsn", "is missing or 0, as are lsn_proc and lsn_commit: this is no position"
    return None


def _events_need_lsn(wire: Wire) -> tuple[str, str] | None:
    if wire.get("lsn_events_processed") and not wire.get("lsn"):
        return "lsn_events_processed", "counts events of one LSN, and lsn does not say of which"
    return None


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    values = without_ended(values)
    if values.get("messageType") == "NOOP":
        del values["messageType"]
    if "lsn_commit" not in values and "lsn_proc" in values:
        values["lsn_commit"] = values["lsn_proc"]
    return values


LAYOUT = Layout(
    kind="postgres",
    about="one partition for a connector; an LSN is a number",
    partition=(OffsetField("server", TEXT, "the connector's topic.prefix", required=True),),
    offset=(
        OffsetField("ts_usec", LONG, "when that was committed, microseconds since 1970"),
        OffsetField("txId", LONG, "the transaction of the last event"),
        OffsetField("lsn", LSN, "the position of the last event"),
        OffsetField("xmin", LONG, "the slot's xmin, where the connector fetches it"),
        OffsetField("lsn_proc", LSN, "everything up to here has been processed", since="0.10"),
        OffsetField("lsn_commit", LSN, "the last commit that has been processed", since="1.3"),
        OffsetField("lsn_events_processed", LONG, "how many events of `lsn` have been processed", since="3.7"),
        OffsetField("messageType", choice("message-type", MESSAGE_TYPES), "what the last event was", since="2.2"),
        SNAPSHOT_FIELD,
        OffsetField("last_snapshot_record", FLAG, "whether the snapshot's last row has been sent"),
        COMPLETED_FIELD,
        *SHARED_FIELDS,
    ),
    families=(ORDERS,),
    cross_rules=(
        CrossRule("position", _some_lsn),
        CrossRule("snapshot-facts", _snapshot_facts_need_one),
        CrossRule("events-of-lsn", _events_need_lsn),
        *SHARED_RULES,
    ),
    newest=_newest,
    example={
        "partition": {"server": "shop"},
        "offset": {
            "lsn": 24023128,
            "lsn_proc": 24023128,
            "lsn_commit": 24023008,
            "txId": 777,
            "ts_usec": 1700000000000000,
        },
    },
)


def position_of(offset: Wire) -> int:
    """The LSN up to which a valid offset says that every transaction has been taken: the last commit's. The newest
    version repeats what follows it."""
    return int(offset.get("lsn_commit") or offset.get("lsn_proc") or offset.get("lsn") or 0)
