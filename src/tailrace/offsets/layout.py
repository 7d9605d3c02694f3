"""Layouts: what the offsets of one kind of connector look like, and which rule each field has to keep.

An offset is two JSON objects: the *partition* says whose position this is, the *offset* says which one it is. A layout
knows every field of both, the families of fields whose names have a table in them, and the rules between fields.

    wire, any version ── parse ──▶ Offset, typed ── emit ──▶ wire, as the newest version writes it
                  └──── check ──▶ faults, each with its field and the rule that it broke

Pure. Whatever comes in becomes an offset or a list of faults; nothing else is ever raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.errors import DefiniteError

Wire = Mapping[str, Any]
"""A JSON object."""
SHOWN_CHARACTERS_MAX = 60
FAULTS_MAX = 100
"""More faults than this help no one."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an offset."""

    field: str
    """Where: `offset.lsn`, `partition.server`."""
    rule: str
    """The name of the rule that it broke: `required`, `known`, `lsn`."""
    message: str
    """For a person, with the field in it."""

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class OffsetFaultsError(DefiniteError):
    """Some offsets are not what their layout says. Carries every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(
            f"the offset is not valid: {faults[0]}{more}",
            "the layout: tailrace offsets layout KIND, or GET /offsets/layouts/KIND",
        )
        self.faults = list(faults)


@dataclass(frozen=True)
class FieldCodec:
    """How a field's value is written, in every version that a connector still reads."""

    rule: str
    says: str
    """What a value has to be, for a person: follows "is not"."""
    parse: Callable[[Any], Any]
    """From the wire to a typed value. ValueError for anything else."""
    emit: Callable[[Any], Any]
    """From a typed value to the wire, as the newest version writes it."""
    schema: Wire
    """JSON schema of what `emit` writes."""


@dataclass(frozen=True)
class OffsetField:
    """One field of a partition or of an offset."""

    name: str
    codec: FieldCodec
    about: str
    required: bool = False
    nullable: bool = False
    since: str | None = None
    """The first version of the connector that writes it."""
    until: str | None = None
    """The last version that writes it; an upgrade replaces it."""


@dataclass(frozen=True)
class Family:
    """Fields whose names are only known from the data: `transaction_data_collection_order_<table>`."""

    pattern: str
    """For a person, with what varies in angle brackets."""
    matches: Callable[[str], bool]
    codec: FieldCodec
    about: str
    regex: str
    """The names, for a JSON schema."""


@dataclass(frozen=True)
class CrossRule:
    """A rule between fields. `check` gets an offset whose fields are each valid, and says which field breaks it and
    how, or None."""

    rule: str
    check: Callable[[Wire], tuple[str, str] | None]


@dataclass(frozen=True)
class Offset:
    """A position of one partition, typed."""

    kind: str
    partition: Mapping[str, Any]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Layout:
    """The offsets of one kind of connector."""

    kind: str
    about: str
    partition: tuple[OffsetField, ...]
    offset: tuple[OffsetField, ...]
    families: tuple[Family, ...] = ()
    cross_rules: tuple[CrossRule, ...] = ()
    partition_rules: tuple[CrossRule, ...] = ()
    is_single: bool = True
    """A connector has one partition only."""
    newest: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """What an upgrade does beside writing each value as the newest version does. Gets and returns typed values."""
    example: Wire | None = None
    """An entry as it goes over the wire."""

    def check(self, partition: object, offset: object) -> list[Fault]:
        """What is wrong; empty when it is valid, in whichever version."""
        faults = self.check_partition(partition)
        found, _ = _parsed("offset", self.offset, self.families, offset)
        if not found and isinstance(offset, Mapping):
            found = _broken("offset", self.cross_rules, offset)
        return (faults + found)[:FAULTS_MAX]

    def check_partition(self, partition: object) -> list[Fault]:
        found, _ = _parsed("partition", self.partition, (), partition)
        if not found and isinstance(partition, Mapping):
            found = _broken("partition", self.partition_rules, partition)
        return found

    def parse(self, partition: object, offset: object) -> Offset:
        """`OffsetFaultsError` for what is not valid."""
        faults = self.check(partition, offset)
        if faults:
            raise OffsetFaultsError(faults)
        _, whose = _parsed("partition", self.partition, (), partition)
        _, values = _parsed("offset", self.offset, self.families, offset)
        return Offset(self.kind, whose, self.newest(values))

    def emit(self, offset: Offset) -> tuple[dict[str, Any], dict[str, Any]]:
        """Partition and offset, as the newest version writes them."""
        return _emitted(self.partition, (), offset.partition), _emitted(self.offset, self.families, offset.values)


def _parsed(
    place: str, fields: Sequence[OffsetField], families: Sequence[Family], wire: object
) -> tuple[list[Fault], dict[str, Any]]:
    """The faults of each field by itself, and the values of those without one."""
    if not isinstance(wire, Mapping):
        return [Fault(place, "object", f"{place} {shown(wire)} is not an object")], {}
    known = {field.name: field for field in fields}
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for name, value in wire.items():
        where = f"{place}.{shown_name(name)}"
        codec, nullable = _codec_of(name, known, families)
        if codec is None:
            faults.append(Fault(where, "known", f"{where} is no field of this layout"))
        elif value is None and nullable:
            values[name] = None
        else:
            try:
                values[name] = codec.parse(value)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                why = f": {error}" if type(error) is ValueError and str(error) else ""
                faults.append(Fault(where, codec.rule, f"{where} {shown(value)} is not {codec.says}{why}"))
    missing = [field.name for field in fields if field.required and field.name not in wire]
    faults += [Fault(f"{place}.{name}", "required", f"{place}.{name} is missing") for name in missing]
    return faults, values


def _codec_of(
    name: object, known: Mapping[str, OffsetField], families: Sequence[Family]
) -> tuple[FieldCodec | None, bool]:
    if not isinstance(name, str):
        return None, False
    if name in known:
        return known[name].codec, known[name].nullable
    return next(((family.codec, False) for family in families if family.matches(name)), (None, False))


def _broken(place: str, rules: Sequence[CrossRule], wire: Wire) -> list[Fault]:
    faults = []
    for rule in rules:
        broken = rule.check(wire)
        if broken is not None:
            field, message = broken
            where = f"{place}.{field}" if field else place
            faults.append(Fault(where, rule.rule, f"{where} {message}"))
    return faults


def _emitted(fields: Sequence[OffsetField], families: Sequence[Family], values: Wire) -> dict[str, Any]:
    known = {field.name: field for field in fields}
    found = {}
    for name, value in values.items():
        codec, _ = _codec_of(name, known, families)
        assert codec is not None, name
        found[name] = None if value is None else codec.emit(value)
    return found


def shown(value: object) -> str:
    """A value in a message, cut to what a person reads."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def shown_name(name: object) -> str:
    return name if isinstance(name, str) and len(name) <= SHOWN_CHARACTERS_MAX else shown(name)
