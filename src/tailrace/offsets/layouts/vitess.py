"""Offsets of Debezium's Vitess connector: a VGTID, which is a GTID for each shard, as JSON in a text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import LONG, LONG_MAX, TEXT, load_json, parsed_text
from tailrace.offsets.layout import CrossRule, Layout, OffsetField, Wire

_KEYS = ("keyspace", "shard", "gtid")


@dataclass(frozen=True)
class ShardGtid:
    """The position of one shard."""

    keyspace: str
    shard: str
    gtid: str
    """`current`, empty for a copy of everything, or `MySQL56/uuid:1-5`."""
    tables: str = "[]"
    """While a copy is under way: the last key of each table, as JSON."""


def parse_vgtid(value: str) -> tuple[ShardGtid, ...]:
    found = load_json(value)
    if not isinstance(found, list) or not found:
        raise ValueError("it is not an array of shards")
    shards = tuple(_shard(each) for each in found)
    names = [(each.keyspace, each.shard) for each in shards]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"shard {twice[0][:40]}/{twice[1][:40]} is there twice")
    return shards


def _shard(found: Any) -> ShardGtid:
    if not isinstance(found, Mapping):
        raise ValueError("a shard is not an object")
    for key in _KEYS:
        if not isinstance(found.get(key), str):
            raise ValueError(f"a shard has no text {key}")
    unknown = [key for key in found if key not in (*_KEYS, "table_p_ks")]
    if unknown:
        raise ValueError(f"a shard has an unknown field {unknown[0][:60]!r}")
    tables = found.get("table_p_ks") or []
    if not isinstance(tables, list):
        raise ValueError("table_p_ks is not an array")
    return ShardGtid(found["keyspace"], found["shard"], found["gtid"], json.dumps(tables, separators=(",", ":")))


def emit_vgtid(shards: tuple[ShardGtid, ...]) -> str:
    entries = [{**{key: getattr(s, key) for key in _KEYS}, "table_p_ks": json.loads(s.tables)} for s in shards]
    return json.dumps(entries, separators=(",", ":"))


def parse_epochs(value: str) -> dict[str, int]:
    """`{"-80": 0, "80-": 1}`."""
    found = load_json(value)
    if not isinstance(found, dict) or not all(type(each) is int and 0 <= each <= LONG_MAX for each in found.values()):
        raise ValueError("it is not an object of whole numbers")
    return found


def _epochs_need_shards(wire: Wire) -> tuple[str, str] | None:
    vgtid, epochs = wire.get("vgtid"), wire.get("transaction_epoch")
    if vgtid is None or epochs is None:
        return None
    missing = {each.shard for each in parse_vgtid(vgtid)} - set(parse_epochs(epochs))
    return ("transaction_epoch", f"lacks shard {min(missing)[:60]}") if missing else None


LAYOUT = Layout(
    kind="vitess",
    about="one partition for a connector, or one for each of its tasks",
    partition=(
        OffsetField("server", TEXT, "the connector's topic.prefix", required=True),
        OffsetField("task_key", TEXT, "the task, where each keeps its own offsets", since="2.0"),
    ),
    offset=(
        OffsetField(
            "vgtid",
            parsed_text("vgtid", "a JSON array with keyspace, shard and gtid", parse_vgtid, emit_vgtid),
            "the position of each shard",
            required=True,
        ),
        OffsetField(
            "transaction_epoch",
            parsed_text("epochs", "a JSON object of epochs by shard", parse_epochs, json.dumps),
            "with ordered transactions: the epoch of each shard",
            since="2.7",
        ),
        OffsetField("connector_generation", LONG, "with ordered transactions: the connector's generation", since="3.5"),
        *SHARED_FIELDS,
    ),
    families=(ORDERS,),
    cross_rules=(CrossRule("epochs-of-shards", _epochs_need_shards), *SHARED_RULES),
    is_single=False,
    example={
        "partition": {"server": "shop"},
        "offset": {"vgtid": '[{"keyspace":"shop","shard":"-80","gtid":"MySQL56/a8d0:1-5","table_p_ks":[]}]'},
    },
)
