"""Offsets as they go over the wire, in the shape of KIP-875:

    {"offsets": [{"partition": {"server": "shop"}, "offset": {"lsn": 24023128}},
                 {"partition": {"server": "old"}, "offset": null}]}

An offset of null removes that partition. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tailrace.offsets.kinds import layout_of
from tailrace.offsets.layout import FAULTS_MAX, Fault, Layout, OffsetFaultsError, Wire, shown, shown_name

ENTRIES_MAX = 10_000


@dataclass(frozen=True)
class Entry:
    """One partition's offset; None where it is to be removed."""

    partition: Wire
    offset: Wire | None

    def to_wire(self) -> dict[str, Any]:
        return {"partition": dict(self.partition), "offset": None if self.offset is None else dict(self.offset)}

    @property
    def key(self) -> str:
        """The same text for the same partition."""
        return json.dumps(self.partition, sort_keys=True)


def emit_entries(entries: Iterable[Entry]) -> dict[str, Any]:
    return {"offsets": [entry.to_wire() for entry in entries]}


def parse_entries(kind: str | Layout, body: object) -> list[Entry]:
    """The entries of a body. `OffsetFaultsError` for one that is not valid; each fault says in which entry it is."""
    faults = validate_body(kind, body)
    if faults:
        raise OffsetFaultsError(faults)
    assert isinstance(body, Mapping)
    return [Entry(each["partition"], each["offset"]) for each in body["offsets"]]


def validate_body(kind: str | Layout, body: object) -> list[Fault]:
    """What is wrong with a body; empty when nothing is."""
    entries = body.get("offsets") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(entries, list):
        return [Fault("offsets", "shape", 'the body is not {"offsets": [...]}')]
    faults = [Fault(shown_name(n), "known", f"{shown_name(n)} is no field of the body") for n in body if n != "offsets"]
    if not 0 < len(entries) <= ENTRIES_MAX:
        return [*faults, Fault("offsets", "count", f"offsets has {len(entries)} entries, not 1 to {ENTRIES_MAX}")]
    for number, entry in enumerate(entries):
        faults += [_placed(fault, number) for fault in _entry_faults(kind, entry)]
        if len(faults) >= FAULTS_MAX:
            break
    return faults[:FAULTS_MAX] or _faults_between(kind, entries)


def _faults_between(kind: str | Layout, entries: list[Any]) -> list[Fault]:
    """Of entries that are each valid."""
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        key = Entry(entry["partition"], None).key
        if key in seen:
            place = f"offsets[{number}].partition"
            return [Fault(place, "unique", f"{place} is there twice")]
        seen.add(key)
    kept = sum(entry["offset"] is not None for entry in entries)
    if layout_of(kind).is_single and kept > 1:
        return [
            Fault("offsets", "single-partition", f"offsets has {kept} partitions, and a connector of this kind has one")
        ]
    return []


def _entry_faults(kind: str | Layout, entry: object) -> list[Fault]:
    layout = layout_of(kind)
    if not isinstance(entry, Mapping) or set(entry) != {"partition", "offset"}:
        return [Fault("", "shape", f'{shown(entry)} is not {{"partition": {{...}}, "offset": {{...}}}}')]
    if entry["offset"] is None:
        return layout.check_partition(entry["partition"])
    return layout.check(entry["partition"], entry["offset"])


def _placed(fault: Fault, number: int) -> Fault:
    place = f"offsets[{number}]"
    where = f"{place}.{fault.field}" if fault.field else place
    message = f"{place}.{fault.message}" if fault.field else f"{place} {fault.message}"
    return replace(fault, field=where, message=message)
