"""A Delta table's own description of itself: its columns, its properties, and the features a writer must know.

With column mapping a column has a name for people, which a rename changes, and one in the files, which stays.

A table has the column for values that others cannot hold (`model.rows.exact`) from the first version on that has such a
value. Its name in the files is chosen before any is written, by `with_exact`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.lake.delta._reserved_names import properties
from tailrace.lake.delta.json_text import text_of
from tailrace.lake.stamp import column_comment, commented_column
from tailrace.model.following import Steps
from tailrace.model.rows.exact import LAKE_TYPE, is_ours, lake_column
from tailrace.model.rows.lake_types import arrow_type, element_type, is_known
from tailrace.model.table import Column, TableId, TableSchema

_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"
_MAX_ID = "delta.columnMapping.maxColumnId"
_NESTED_ID = 1_000_000
"""Numbers of what columns have inside begin here: a column with number 7 has 1,000,014 and 1,000,015. They follow from
the column's own, so no table has to keep them. Columns that were dropped keep theirs, and none has ever come so far."""
_VECTORS = "delta.enableDeletionVectors"
_DELTA_TYPES = {"smallint": "short", "int": "integer", "bigint": "long"}
_LAKE_TYPES = {delta: lake for lake, delta in _DELTA_TYPES.items()}
_MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
_BASIC = ("columnMapping", "deletionVectors", "timestampNtz")
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": list(_BASIC),
    "writerFeatures": [*_BASIC, "appendOnly", "invariants"],
}
_KEPT = {
    *PROTOCOL["writerFeatures"],  # type: ignore[misc]
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "vacuumProtocolCheck",
}
"""Features that our commits keep: those that ask nothing of them, or something only of columns and properties that
`_demands` looks for."""


@dataclass(frozen=True)
class Field:
    """A column of the table."""

    name: str
    physical: str
    """Its name in the files."""
    id: int
    type: str
    """Lake type."""
    raw: Mapping[str, Any]
    """As it is written in the table's schema."""

    @property
    def column(self) -> Column:
        return commented_column(self.name, self.type, self.raw["metadata"].get("comment", ""))

    @property
    def arrow(self) -> pa.Field:
        """As the files have it."""
        return _numbered(self.physical, _with_numbers(arrow_type(self.type), self.id), self.id)


@dataclass(frozen=True)
class Metadata:
    """The newest `metaData` action of a table."""

    action: Mapping[str, Any]
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Metadata:
        return cls(action, tuple(map(_field, json.loads(action["schemaString"])["fields"])))

    @classmethod
    def new(cls, schema: TableSchema, old: Metadata | None) -> Metadata:
        """For a copy: the schema's columns, none of them one that the table had before."""
        kept = dict(old.configuration) if old else {}
        wanted = properties(schema.names)
        # A feature that is only useful stays as a user may have set it.
        configuration = {**wanted, **kept, **{name: value for name, value in wanted.items() if value != "true"}}
        action: dict[str, Any] = {
            "id": old.action["id"] if old else str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "partitionColumns": [],
            "createdTime": old.action.get("createdTime") if old else time.time_ns() // 1_000_000,
            "configuration": configuration,
        }
        return cls(action, ()).changed(Steps(add=schema.columns))

    def changed(self, steps: Steps) -> Metadata:
        """After these steps."""
        kept = [_renamed(field, steps.rename) for field in self.fields if field.name not in steps.drop]
        last = int(self.configuration.get(_MAX_ID, 0))
        added = [_new_field(column, last + number) for number, column in enumerate(steps.add, 1)]
        fields = (*kept, *added)
        configuration = {**self.configuration, _MAX_ID: str(last + len(added))}
        schema = text_of({"type": "struct", "fields": [field.raw for field in fields]})
        return Metadata({**self.action, "schemaString": schema, "configuration": configuration}, fields)

    @property
    def configuration(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.action.get("configuration") or {}
        return found

    @property
    def columns(self) -> list[Column]:
        return [field.column for field in self.fields]

    @property
    def has_vectors(self) -> bool:
        """Whether rows may be deleted by a deletion vector; else their file is written again without them."""
        return self.configuration.get(_VECTORS) == "true"

    @property
    def exact(self) -> Field | None:
        """The column for values that others cannot hold."""
        return next((field for field in self.fields if is_ours(field.column)), None)

    @property
    def source_fields(self) -> tuple[Field, ...]:
        """The others."""
        return tuple(field for field in self.fields if not is_ours(field.column))

    def with_exact(self) -> Metadata:
        """With that column."""
        if self.exact is not None:
            return self
        return self.changed(Steps(add=(lake_column(field.name for field in self.fields),)))

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)

    def is_like(self, schema: TableSchema) -> bool:
        """Whether a copy of the schema finds its columns here."""
        return [(c, c.number) for c in self.columns] == [(c, c.number) for c in schema.columns]


def require_kept(table: TableId, protocol: Mapping[str, Any], metadata: Metadata) -> None:
    """A definite error for a table that was given features which our commits would break."""
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    unknown = sorted({*(features - _KEPT), *_demands(metadata)})
    if protocol["minWriterVersion"] != PROTOCOL["minWriterVersion"]:
        unknown.append(f"a protocol of version {protocol['minWriterVersion']}")
    if unknown:
        raise DefiniteError(
            f"{table}: its Delta table was given what Tailrace cannot keep: {', '.join(unknown)}",
            f"take it back (alter table … drop feature, unset property), then: tailrace tables resync LAKE {table}",
            str(table),
        )


def upgraded(protocol: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The protocol of a table that we write, with what its other features demand."""
    if protocol is None:
        return PROTOCOL
    needed = [feature for feature in _BASIC if feature not in (protocol.get("readerFeatures") or ())]
    if not needed:
        return protocol
    both = {name: [*(protocol.get(name) or ()), *needed] for name in ("readerFeatures", "writerFeatures")}
    return {**PROTOCOL, **both}


def _demands(metadata: Metadata) -> list[str]:
    configuration = metadata.configuration
    found = [name for name in configuration if name.startswith("delta.constraints.")]
    if configuration.get("delta.appendOnly") == "true":
        found.append("delta.appendOnly")
    if configuration.get("delta.columnMapping.mode") != "name":
        found.append("another column mapping")
    if metadata.action.get("partitionColumns"):
        found.append("partitions")
    for field in metadata.fields:
        found += [f"{name} of {field.name}" for name in field.raw["metadata"] if name.startswith(_COLUMN_DEMANDS)]
    return found


_COLUMN_DEMANDS = ("delta.invariants", "delta.generationExpression", "delta.identity")


def _with_numbers(type_: pa.DataType, id_: int) -> pa.DataType:
    """The type with numbers for what a list or a map has inside. Delta does not ask for them; an Iceberg reader finds
    elements by them, and takes those without a number for nulls."""
    inside = _NESTED_ID + 2 * id_
    if pa.types.is_list(type_):
        return pa.list_(_numbered(type_.value_field.name, type_.value_type, inside))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(
            _numbered(key.name, key.type, inside, nullable=False), _numbered(item.name, item.type, inside + 1)
        )
    return type_


def _numbered(name: str, type_: pa.DataType, id_: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable, {"PARQUET:field_id": str(id_)})


def _field(raw: Mapping[str, Any]) -> Field:
    metadata = raw["metadata"]
    return Field(raw["name"], metadata.get(_PHYSICAL, raw["name"]), metadata.get(_ID, 0), _lake_type(raw["type"]), raw)


def _lake_type(delta: Any) -> str:
    match delta:
        case str():
            return _LAKE_TYPES.get(delta, delta)
        case {"type": "array", "elementType": str() as element} if is_known(_LAKE_TYPES.get(element, element)):
            return f"array<{_LAKE_TYPES.get(element, element)}>"
        case {"type": "map", "keyType": "string", "valueType": "string"}:
            return "map<string,string>"
    # A type that is not one of ours is a user's column: it has a name, and our rows have no value for it.
    return "string"


def _delta_type(lake: str) -> Any:
    element = element_type(lake)
    if element is not None:
        return {"type": "array", "elementType": _DELTA_TYPES.get(element, element), "containsNull": True}
    return _MAP if lake == LAKE_TYPE else _DELTA_TYPES.get(lake, lake)


def _new_field(column: Column, number: int) -> Field:
    metadata = {"comment": column_comment(column), _ID: number, _PHYSICAL: f"col-{uuid.uuid4()}"}
    return _field({"name": column.name, "type": _delta_type(column.type), "nullable": True, "metadata": metadata})


def _renamed(field: Field, names: Mapping[str, str]) -> Field:
    name = names.get(field.name, field.name)
    return replace(field, name=name, raw={**field.raw, "name": name})
