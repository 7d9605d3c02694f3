"""Attributes that all kinds share: of a snapshot, of a transaction under way, of an incremental snapshot.

    snapshot, snapshot_completed                    a copy of all tables is under way
    transaction_id                                  with transaction metadata: the transaction that is being read,
    transaction_data_collection_order_<table>       and how many of its events each table has had so far
    incremental_snapshot_collections                the tables that are still to be copied, as JSON,
    incremental_snapshot_primary_key, _maximum_key  how far the first of them is, and how far it will go,
    incremental_snapshot_correlation_id             and the signal that asked for it

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.offsets.codecs import FLAG, LONG, load_json, parsed_text, text
from tailrace.offsets.java import is_array
from tailrace.offsets.layout import CrossRule, Family, FieldCodec, OffsetField, Wire

TRANSACTION_ID = "transaction_id"
ORDER_PREFIX = "transaction_data_collection_order_"
COLLECTIONS = "incremental_snapshot_collections"
PRIMARY_KEY = "incremental_snapshot_primary_key"
MAXIMUM_KEY = "incremental_snapshot_maximum_key"
CORRELATION_ID = "incremental_snapshot_correlation_id"
SNAPSHOT_TYPES = ("INITIAL", "BLOCKING", "INCREMENTAL")
_COLLECTION = {
    "table": f"{COLLECTIONS}_id",
    "condition": f"{COLLECTIONS}_additional_condition",
    "surrogate_key": f"{COLLECTIONS}_surrogate_key",
    "correlation_id": f"{COLLECTIONS}_correlation_id",
}
_MISSPELT = {
    f"{COLLECTIONS}_additional_condication": "condition",
    "incremental_snapshot_collection_surrogate_key": "surrogate_key",
}
"""As the paper on offsets has them. Read, never written."""


@dataclass(frozen=True)
class Collection:
    """A table that an incremental snapshot has still to copy."""

    table: str
    condition: str | None = None
    surrogate_key: str | None = None
    correlation_id: str | None = None


def _snapshot(value: Any) -> str | None:
    """Until 2.6 a boolean, which some stores have turned into a text."""
    if value is True or value == "true":
        return "INITIAL"
    if value is False or value == "false":
        return None
    if not isinstance(value, str) or value not in SNAPSHOT_TYPES:
        raise ValueError
    return value


SNAPSHOT = FieldCodec(
    "snapshot",
    f"one of {', '.join(SNAPSHOT_TYPES)}, or true or false as old versions wrote it",
    _snapshot,
    lambda value: value,
    {"type": "string", "enum": list(SNAPSHOT_TYPES)},
)
SNAPSHOT_FIELD = OffsetField("snapshot", SNAPSHOT, "the kind of snapshot that is under way; left out while streaming")
COMPLETED_FIELD = OffsetField("snapshot_completed", FLAG, "whether that snapshot has read everything")


def parse_collections(value: str) -> tuple[Collection, ...]:
    found = load_json(value)
    if not isinstance(found, list):
        raise ValueError("it is not an array")
    return tuple(_collection(each) for each in found)


def _collection(found: Any) -> Collection:
    if not isinstance(found, Mapping):
        raise ValueError("an entry is not an object")
    names = {wire: name for name, wire in _COLLECTION.items()} | _MISSPELT
    unknown = [name for name in found if name not in names]
    if unknown:
        raise ValueError(f"an entry has an unknown field {unknown[0][:60]!r}")
    values = {names[wire]: value for wire, value in found.items()}
    if not values.get("table") or not all(isinstance(each, str) for each in values.values() if each is not None):
        raise ValueError(f"an entry needs the text {_COLLECTION['table']}, and texts or null beside it")
    return Collection(**values)


def emit_collections(collections: tuple[Collection, ...]) -> str:
    entries = [{wire: getattr(each, name) for name, wire in _COLLECTION.items()} for each in collections]
    for entry in entries:
        # Some versions write it; the newest only once, for all of them.
        if entry[_COLLECTION["correlation_id"]] is None:
            del entry[_COLLECTION["correlation_id"]]
    return json.dumps(entries, separators=(",", ":"))


def _hex_array(value: str) -> str:
    if not is_array(value):
        raise ValueError
    return value


JAVA_ARRAY = parsed_text("java-array", "an array of Java's in its serialised form, as hex", _hex_array, str)
TRANSACTION_FIELDS = (OffsetField(TRANSACTION_ID, text(), "the transaction that is being read", nullable=True),)
INCREMENTAL_FIELDS = (
    OffsetField(
        COLLECTIONS,
        parsed_text("collections", "a JSON array of tables", parse_collections, emit_collections),
        "the tables that an incremental snapshot has still to copy",
    ),
    OffsetField(PRIMARY_KEY, JAVA_ARRAY, "the last key that was copied of the first of them"),
    OffsetField(MAXIMUM_KEY, JAVA_ARRAY, "the greatest key when its copy began"),
    OffsetField(CORRELATION_ID, text(empty=True), "the signal that asked for it", nullable=True, since="2.3"),
)
SHARED_FIELDS = TRANSACTION_FIELDS + INCREMENTAL_FIELDS
ORDERS = Family(
    f"{ORDER_PREFIX}<table>",
    lambda name: name.startswith(ORDER_PREFIX) and len(name) > len(ORDER_PREFIX),
    LONG,
    "how many events of the table the transaction has had so far",
    f"^{ORDER_PREFIX}.+$",
)


def _keys_need_collections(wire: Wire) -> tuple[str, str] | None:
    for name in (PRIMARY_KEY, MAXIMUM_KEY):
        if name in wire and COLLECTIONS not in wire:
            return name, f"says how far a copy is, and {COLLECTIONS} does not say of which table"
    return None


def _orders_need_transaction(wire: Wire) -> tuple[str, str] | None:
    counted = next((name for name in wire if name.startswith(ORDER_PREFIX)), None)
    if counted is not None and wire.get(TRANSACTION_ID) is None:
        return counted, f"counts events of a transaction, and {TRANSACTION_ID} does not say of which"
    return None


SHARED_RULES = (
    CrossRule("incremental-snapshot", _keys_need_collections),
    CrossRule("transaction", _orders_need_transaction),
)


def without_ended(values: dict[str, Any]) -> dict[str, Any]:
    """An upgrade: a snapshot that is not under way is left out, as the newest versions do."""
    return {name: value for name, value in values.items() if not (name == "snapshot" and value is None)}
