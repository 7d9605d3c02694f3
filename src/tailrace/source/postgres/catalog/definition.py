"""The definition of a table: everything in the catalog that decides what a copy of its rows must look like.

The stream tells of changed rows. What a statement does to all rows at once, a rewrite, a default that old rows show, a
renamed enum label, a partition attached with its rows, comes as no change at all. So the definition is remembered and
compared with the present one, and what cannot be proved harmless means that the table is copied again. The proof leans
on the catalog's row versions (`xmin`): a row that was changed and changed back has another one.

A definition that comes with the stream (`columns_only`) has columns, files and key; the rest is looked at before every
cut, so no cut contains a change that was overlooked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

from tailrace.source.postgres.values.types import RULE, RULE_TEXT_ARRAYS


@dataclass(frozen=True)
class Attribute:
    """A column the table has or had."""

    number: int
    name: str
    type: int
    typmod: int
    source_type: str
    is_dropped: bool
    is_unsent: bool
    """The stream does not have it: it is generated, or the publication leaves it out."""
    version: str
    is_missing: bool = False
    """Rows older than the column show a default for it."""


@dataclass(frozen=True)
class Partition:
    """A partition at any level."""

    attached: str
    """The transaction that attached it."""
    made: str
    is_leaf: bool
    has_older_rows: bool = True
    """It may have rows from before it was attached."""


@dataclass(frozen=True)
class Types:
    """How lake types were chosen for a copy. One of an older Tailrace does not say it."""

    rule: int = RULE_TEXT_ARRAYS
    as_text: tuple[int, ...] = ()
    """The columns that a person wanted as text."""
    as_decimal: tuple[tuple[int, str], ...] = ()
    """The columns that a person wanted as numbers, each with its lake type."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any] | None) -> Types:
        if fields is None:
            return cls()
        decimals = tuple((number, lake) for number, lake in fields.get("as_decimal", ()))
        return cls(fields["rule"], tuple(fields["as_text"]), decimals)

    def to_json(self) -> dict[str, Any]:
        decimals = {"as_decimal": [list(each) for each in self.as_decimal]} if self.as_decimal else {}
        return {"rule": self.rule, "as_text": list(self.as_text), **decimals}


@dataclass(frozen=True)
class Definition:
    """A table's definition at one moment."""

    at: int
    """An ordinal: what was committed before it is in."""
    attributes: tuple[Attribute, ...]
    files: Mapping[str, int]
    """By oid of the table or leaf partition: the file of its rows."""
    toast: int
    """The table's TOAST table, which a rewrite by `alter table` replaces, and `vacuum full` and `truncate` do not."""
    key: tuple[int, ...]
    partitions: Mapping[str, Partition] | None = None
    values: Mapping[str, str] | None = None
    """Enum labels and composite types: what the text of a value depends on beside the value."""
    sent: str | None = None
    is_listed: bool = True
    """The publication names the table itself. The server then refuses to make it unlogged."""
    listed: Mapping[str, int] | None = None
    """With a shape from the stream: the columns that the stream listed, with the numbers that were found for them."""
    rewrites: int | None = None
    """How many rows were ever updated or deleted, as the server's statistics have it; of a table of which only inserts
    are sent."""
    doubt: str | None = None
    """Why a shape that came with the stream cannot be matched with the catalog."""
    types: Types = Types()
    """Which lake types the copy has."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Definition:
        partitions = fields["partitions"]
        return cls(
            **{
                **fields,
                "attributes": tuple(Attribute(*each) for each in fields["attributes"]),
                "key": tuple(fields["key"]),
                "partitions": partitions and {oid: Partition(*each) for oid, each in partitions.items()},
                "types": Types.from_json(fields.get("types")),
            }
        )

    def to_json(self) -> dict[str, Any]:
        partitions = {oid: list(astuple(each)) for oid, each in (self.partitions or {}).items()}
        fields: dict[str, Any] = dict(vars(self))
        return fields | {
            "attributes": [list(astuple(each)) for each in self.attributes],
            "key": list(self.key),
            "partitions": None if self.partitions is None else partitions,
            "types": self.types.to_json(),
        }

    @property
    def shape(self) -> list[tuple[Any, ...]]:
        """What the columns are called and what they are, those that were dropped included: one that was there between
        two definitions is in the later."""
        return [
            (each.number, each.name, each.type, each.typmod, each.is_dropped, each.is_unsent)
            for each in self.attributes
        ]

    @property
    def live(self) -> dict[int, Attribute]:
        """The columns there are, by number."""
        return {each.number: each for each in self.attributes if not each.is_dropped}


def is_same_shape(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Of two definitions as JSON; see `Codec.is_same_shape`."""
    return Definition.from_json(old).shape == Definition.from_json(new).shape


def renewed(definition: Definition) -> Definition:
    """For a copy that is made now."""
    return replace(definition, types=replace(definition.types, rule=RULE))


class Made(NamedTuple):
    """When a table was made, as its catalog row tells it."""

    xid: int
    """The transaction that made it, or the sub-transaction: the last 32 bits of its number."""
    xid_end: int
    """No transaction from this one on had committed then: its whole number."""
