"""Offsets of Debezium's SQL Server connector: a partition for each database. Its LSNs are in hex, as Db2's. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tailrace.offsets.attributes import (
    COMPLETED_FIELD,
    ORDERS,
    SHARED_FIELDS,
    SHARED_RULES,
    SNAPSHOT_FIELD,
    without_ended,
)
from tailrace.offsets.codecs import LONG, TEXT
from tailrace.offsets.layout import CrossRule, FieldCodec, Layout, OffsetField, Wire

NO_LSN = "NULL"


def hex_lsn(sizes: Sequence[int]) -> FieldCodec:
    """Bytes in hex, with a colon after the fourth and the eighth; `NULL` for none."""

    def parse(value: Any) -> bytes:
        if value == NO_LSN:
            return b""
        if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{8}:?[0-9a-fA-F]{8}:?[0-9a-fA-F]*", value):
            raise ValueError
        digits = value.replace(":", "")
        if len(digits) % 2 or len(digits) // 2 not in sizes:
            raise ValueError(f"it has {len(digits)} digits")
        return bytes.fromhex(digits)

    pattern = "^[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]+$|^NULL$"
    return FieldCodec(
        "lsn",
        "an LSN in hex, such as 00000027:00000ac0:0002",
        parse,
        lambda value: f"{value[:4].hex()}:{value[4:8].hex()}:{value[8:].hex()}" if value else NO_LSN,
        {"type": "string", "pattern": pattern},
    )


def position_fields(lsn: FieldCodec) -> tuple[OffsetField, ...]:
    """Of SQL Server and Db2, which read change tables by commit, then by change."""
    return (
        OffsetField("commit_lsn", lsn, "the last commit that has been processed", required=True),
        OffsetField("change_lsn", lsn, "the last change of it", nullable=True),
        OffsetField("event_serial_no", LONG, "the event of that change: an update is two", since="0.10"),
        SNAPSHOT_FIELD,
        COMPLETED_FIELD,
        *SHARED_FIELDS,
    )


def _change_after_commit(wire: Wire) -> tuple[str, str] | None:
    if wire.get("commit_lsn") == NO_LSN and wire.get("change_lsn") not in (None, NO_LSN):
        return "change_lsn", "is a change of a commit, and commit_lsn does not say of which"
    return None


def newest(values: dict[str, Any]) -> dict[str, Any]:
    """While streaming, the change and the number of its event are always there."""
    values = without_ended(values)
    if "snapshot" in values:
        return values
    return {
        **values,
        "change_lsn": values.get("change_lsn") or b"",
        "event_serial_no": values.get("event_serial_no", 0),
    }


POSITION_RULES = (CrossRule("change-of-commit", _change_after_commit), *SHARED_RULES)

LAYOUT = Layout(
    kind="sqlserver",
    about="a partition for each database that the connector reads",
    partition=(
        OffsetField("server", TEXT, "the connector's topic.prefix", required=True),
        OffsetField("database", TEXT, "the database; left out by a connector of one database until 1.9", since="2.0"),
    ),
    offset=position_fields(hex_lsn([10])),
    families=(ORDERS,),
    cross_rules=POSITION_RULES,
    is_single=False,
    newest=newest,
    example={
        "partition": {"server": "shop", "database": "orders"},
        "offset": {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "NULL", "event_serial_no": 1},
    },
)
