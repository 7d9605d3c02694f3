"""The kinds of connector whose offsets are known, and what can be asked of each. Pure."""

from __future__ import annotations

from typing import Any

from tailrace.errors import DefiniteError
from tailrace.offsets.layout import Fault, Layout, Offset, OffsetFaultsError, OffsetField, Wire, shown
from tailrace.offsets.layouts import cassandra, db2, mongodb, mysql, oracle, postgres, spanner, sqlserver, vitess

_LAYOUTS = {
    layout.kind: layout
    for layout in (
        postgres.LAYOUT,
        mysql.LAYOUT,
        mysql.MARIADB_LAYOUT,
        oracle.LAYOUT,
        sqlserver.LAYOUT,
        db2.LAYOUT,
        cassandra.LAYOUT,
        vitess.LAYOUT,
        mongodb.LAYOUT,
        spanner.LAYOUT,
    )
}
KINDS = tuple(_LAYOUTS)


def layout_of(kind: str | Layout) -> Layout:
    """The layout of a kind, or a layout as it is. A definite error for a kind that is not known."""
    if isinstance(kind, Layout):
        return kind
    if kind not in _LAYOUTS:
        raise DefiniteError(f"no connector of kind {shown(kind)} is known", f"known are {', '.join(KINDS)}")
    return _LAYOUTS[kind]


def validate(kind: str | Layout, partition: object, offset: object) -> list[Fault]:
    """What is wrong with an offset; empty when nothing is. Every version that the connector reads is valid."""
    return layout_of(kind).check(partition, offset)


def parse(kind: str | Layout, partition: object, offset: object) -> Offset:
    """Typed. `OffsetFaultsError` for what is not valid."""
    return layout_of(kind).parse(partition, offset)


def emit(offset: Offset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Partition and offset, as the newest version writes them."""
    return layout_of(offset.kind).emit(offset)


def upgrade(kind: str | Layout, offset: Wire) -> dict[str, Any]:
    """An offset of any version, as the newest writes it. `OffsetFaultsError` for what is not valid."""
    layout = layout_of(kind)
    faults = [fault for fault in layout.check({}, offset) if fault.field.startswith("offset")]
    if faults:
        raise OffsetFaultsError(faults)
    example = layout.example["partition"] if layout.example else {}
    return layout.emit(layout.parse(example, offset))[1]


def describe(kind: str | Layout) -> dict[str, Any]:
    """JSON schema of one entry, for an API and its users: `{"partition": {...}, "offset": {...} | null}`."""
    layout = layout_of(kind)
    offset = _object(layout.offset)
    offset["patternProperties"] = {
        family.regex: {**family.codec.schema, "title": family.pattern, "description": family.about}
        for family in layout.families
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"offsets of {layout.kind}",
        "description": layout.about,
        "type": "object",
        "required": ["partition", "offset"],
        "additionalProperties": False,
        "properties": {
            "partition": _object(layout.partition),
            "offset": {"anyOf": [offset, {"type": "null", "description": "removes the partition"}]},
        },
        "x-rules": [rule.rule for rule in (*layout.partition_rules, *layout.cross_rules)],
        "x-single-partition": layout.is_single,
        "examples": [layout.example],
    }


def _object(fields: tuple[OffsetField, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
        "properties": {field.name: _property(field) for field in fields},
    }


def _property(field: OffsetField) -> dict[str, Any]:
    schema = dict(field.codec.schema)
    if field.nullable:
        schema["type"] = [schema["type"], "null"]
    extra = {"x-rule": field.codec.rule, "x-since": field.since, "x-until": field.until}
    found = {**schema, "description": field.about, **{name: value for name, value in extra.items() if value}}
    return {**found, "deprecated": True} if field.until else found
