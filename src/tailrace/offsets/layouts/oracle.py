"""Offsets of Debezium's Oracle connector, of each of its adapters: LogMiner, XStream, OpenLogReplicator. Pure.

LogMiner resumes at `scn`, before the oldest transaction that is still open, and leaves out what `commit_scn` says has
been seen. XStream knows one position, `lcr_position`. OpenLogReplicator has an SCN and an index within it.
"""

from __future__ import annotations

import re
from typing import Any

from tailrace.offsets.attributes import (
    COMPLETED_FIELD,
    CORRELATION_ID,
    ORDERS,
    SHARED_FIELDS,
    SHARED_RULES,
    SNAPSHOT_FIELD,
    TRANSACTION_ID,
    without_ended,
)
from tailrace.offsets.codecs import FLAG, LONG, TEXT, parsed_text, text
from tailrace.offsets.layout import CrossRule, Layout, OffsetField, Wire
from tailrace.offsets.layouts.commit_scn import COMMIT_SCN, SCN, parse_scn


def parse_pending(value: str) -> dict[str, int]:
    """`tx:scn,tx:scn`: transactions that were open when the snapshot was taken, and where each began."""
    found: dict[str, int] = {}
    for part in (each.strip() for each in value.split(",")):
        transaction, colon, scn = part.partition(":")
        if not colon or not re.fullmatch(r"[0-9a-zA-Z.]{1,64}", transaction):
            raise ValueError(f"{part[:60]!r} is not transaction:scn")
        if transaction in found:
            raise ValueError(f"transaction {transaction} is there twice")
        found[transaction] = parse_scn(scn)
    return found


def emit_pending(pending: dict[str, int]) -> str:
    return ",".join(f"{transaction}:{scn}" for transaction, scn in pending.items())


def _one_adapter(wire: Wire) -> tuple[str, str] | None:
    if wire.get("lcr_position") is not None and wire.get("scn_idx") is not None:
        return "lcr_position", "is of XStream, and scn_idx of OpenLogReplicator: a connector uses one of them"
    return None


def _some_position(wire: Wire) -> tuple[str, str] | None:
    if wire.get("lcr_position") is None and wire.get("scn") is None and not _is_copying(wire):
        return "scn", "is missing, as is lcr_position: this is no position"
    return None


def _commit_scn_with_logminer(wire: Wire) -> tuple[str, str] | None:
    is_logminer = wire.get("lcr_position") is None and wire.get("scn_idx") is None
    if is_logminer and not _is_copying(wire) and "commit_scn" not in wire:
        return "commit_scn", "is missing, and LogMiner would read commits again that have been processed"
    return None


def _is_copying(wire: Wire) -> bool:
    return wire.get("snapshot") not in (None, False, "false")


def _newest(values: dict[str, Any]) -> dict[str, Any]:
    values = without_ended(values)
    kept = ("commit_scn", TRANSACTION_ID, CORRELATION_ID)
    return {name: value for name, value in values.items() if value is not None or name in kept}


LAYOUT = Layout(
    kind="oracle",
    about="one partition for a connector; an SCN is a text of digits",
    partition=(OffsetField("server", TEXT, "the connector's topic.prefix", required=True),),
    offset=(
        OffsetField("scn", SCN, "where reading begins again: a number until 1.4", nullable=True),
        OffsetField("scn_idx", LONG, "OpenLogReplicator: the event within the SCN", nullable=True, since="2.4"),
        OffsetField("commit_scn", COMMIT_SCN, "LogMiner: the last commit of each redo thread", nullable=True),
        OffsetField(
            "lcr_position",
            text("lcr-position", "a position of XStream in hex", "(?:[0-9a-fA-F]{2}){1,256}"),
            "XStream: the position of the last change",
            nullable=True,
        ),
        OffsetField("txId", TEXT, "LogMiner, unbuffered: the transaction of the last event", since="3.2"),
        OffsetField("txSeq", LONG, "LogMiner, unbuffered: the event within it", since="3.2"),
        OffsetField("window_advance_enabled", FLAG, "LogMiner has begun to move its window ahead", since="3.5"),
        OffsetField("snapshot_scn", SCN, "the state that the snapshot read", nullable=True),
        OffsetField(
            "snapshot_pending_tx",
            parsed_text("pending-tx", "a list of transaction:scn", parse_pending, emit_pending),
            "transactions that were open then, and where each began",
            nullable=True,
        ),
        SNAPSHOT_FIELD,
        COMPLETED_FIELD,
        *SHARED_FIELDS,
    ),
    families=(ORDERS,),
    cross_rules=(
        CrossRule("position", _some_position),
        CrossRule("adapter", _one_adapter),
        CrossRule("commit-scn-required", _commit_scn_with_logminer),
        *SHARED_RULES,
    ),
    newest=_newest,
    example={
        "partition": {"server": "shop"},
        "offset": {
            "scn": "1234567800",
            "commit_scn": "1234567890:1:5af87ce941a2-978a445f3213,9876543210:2:78f8eaf8741a",
            "snapshot_scn": "1234000000",
        },
    },
)
