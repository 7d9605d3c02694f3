"""Offsets of any kind, changed field by field: fields are added, changed and removed, and the rest stays.

This is how a table of Cassandra's map gets another place, or none, and how one database of a SQL Server connector is
moved while the others stay. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.offsets.layout import Fault, Layout, OffsetFaultsError, Wire, shown_name
from tailrace.offsets.wire import Entry, emit_entries, parse_entries, validate_body


@dataclass(frozen=True)
class FieldEdit:
    """What becomes of one partition's fields."""

    put: Wire = field(default_factory=dict)
    """Fields to add or change."""
    remove: Sequence[str] = ()
    partition: Wire | None = None
    """Whose they are: one that is not there is added. None where there is only one."""


def edited(kind: str | Layout, body: object, edit: FieldEdit) -> list[Entry]:
    """The entries of a body after an edit. `OffsetFaultsError` where the body, the edit or what comes of it is not
    valid."""
    entries = parse_entries(kind, body)
    entry = _meant(entries, edit.partition)
    old = dict(entry.offset or {})
    faults = [_fault(name, "once", "is both set and removed") for name in edit.remove if name in edit.put]
    faults += [_fault(name, "there", "is not there to be removed") for name in edit.remove if name not in old]
    if faults:
        raise OffsetFaultsError(faults)
    kept: dict[str, Any] = {name: value for name, value in old.items() if name not in edit.remove}
    changed = replace(entry, offset={**kept, **edit.put})
    found = [changed if each.key == entry.key else each for each in entries]
    found += [] if changed.key in {each.key for each in entries} else [changed]
    faults = validate_body(kind, emit_entries(found))
    if faults:
        raise OffsetFaultsError(faults)
    return found


def _meant(entries: Sequence[Entry], partition: Wire | None) -> Entry:
    if partition is not None:
        added = Entry(partition, None)
        return next((each for each in entries if each.key == added.key), added)
    if len(entries) > 1:
        there = ", ".join(json.dumps(dict(each.partition)) for each in entries[:5])
        message = f"partition is not given, and there are {len(entries)}: {there}"
        raise OffsetFaultsError([Fault("partition", "required", message)])
    return entries[0]


def _fault(name: str, rule: str, why: str) -> Fault:
    where = f"offset.{shown_name(name)}"
    return Fault(where, rule, f"{where} {why}")
