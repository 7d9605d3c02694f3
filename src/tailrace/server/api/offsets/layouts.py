"""`/offsets/layouts`: offsets of every kind of Debezium connector, described, checked and changed as documents.

Nothing is stored, and no connector is asked: what comes back is for whoever keeps those offsets.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path

from tailrace.offsets.difference import diff
from tailrace.offsets.editing import FieldEdit, edited
from tailrace.offsets.kinds import KINDS, describe, layout_of, upgrade
from tailrace.offsets.layout import Layout, OffsetFaultsError
from tailrace.offsets.wire import Entry, parse_entries, validate_body
from tailrace.server.api.offsets.models import (
    EXAMPLE,
    Checked,
    DifferenceInfo,
    FaultInfo,
    FieldEdited,
    FieldEditRequest,
    LayoutInfo,
    OffsetEntry,
    OffsetsInfo,
)
from tailrace.server.errors import NotFoundError, RequestError

router = APIRouter(prefix="/offsets/layouts", tags=["offsets"])
Kind = Annotated[str, Path(description=", ".join(KINDS), examples=["cassandra"])]
Offsets = Annotated[dict[str, Any], Body(examples=[{"offsets": [EXAMPLE]}])]


@router.get("")
def list_offsets_layouts() -> list[LayoutInfo]:
    """Every kind of connector whose offsets are known."""
    return [_info(layout_of(kind)) for kind in KINDS]


@router.get("/{kind}")
def get_offsets_layout(kind: Kind) -> dict[str, Any]:
    """The offsets of one kind, as JSON schema."""
    return describe(_layout(kind))


@router.post("/{kind}/check")
def check_offsets_layout(kind: Kind, body: Offsets) -> Checked:
    """Name every field that breaks a rule. Offsets of old versions are valid; `upgraded` is how the newest writes
    them."""
    layout = _layout(kind)
    faults = validate_body(layout, body)
    entries = [] if faults else parse_entries(layout, body)
    newest = [Entry(each.partition, each.offset and upgrade(layout, each.offset)) for each in entries]
    upgraded = None if faults else OffsetsInfo(offsets=[_entry(each) for each in newest])
    return Checked(valid=not faults, faults=[FaultInfo.of(each) for each in faults], upgraded=upgraded)


@router.post("/{kind}/edit")
def edit_offsets_layout(kind: Kind, request: FieldEditRequest) -> FieldEdited:
    """Add, change and remove fields of one partition: the places of Cassandra's tables, or any other layout's."""
    layout, body = _layout(kind), {"offsets": request.offsets}
    try:
        found = edited(layout, body, FieldEdit(request.set, request.remove, request.partition))
    except OffsetFaultsError as error:
        raise invalid(error) from None
    before = {each.key: each.offset for each in parse_entries(layout, body)}
    changes = [change for each in found for change in diff(before.get(each.key), each.offset)]
    return FieldEdited(
        offsets=[_entry(each) for each in found], differences=[DifferenceInfo.of(each) for each in changes]
    )


def invalid(error: OffsetFaultsError) -> RequestError:
    """Every fault, with its field and its rule."""
    listed = "\n".join(map(str, error.faults))
    return RequestError(f"the offsets are not valid:\n{listed}")


def _layout(kind: str) -> Layout:
    if kind not in KINDS:
        raise NotFoundError(f"No connector of kind {kind[:60]} is known", f"known are {', '.join(KINDS)}")
    return layout_of(kind)


def _info(layout: Layout) -> LayoutInfo:
    rules = [each.rule for each in (*layout.partition_rules, *layout.cross_rules)]
    return LayoutInfo(kind=layout.kind, about=layout.about, single_partition=layout.is_single, rules=rules)


def _entry(entry: Entry) -> OffsetEntry:
    return OffsetEntry.model_validate(entry.to_wire())
