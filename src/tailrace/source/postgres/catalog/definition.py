"""The definition of a table: everything in the catalog that decides what a copy of its rows must look like.

The stream tells of changed rows. What a statement does to all rows at once, a rewrite, a default that old rows show, a
renamed enum label, a partition attached with its rows, comes as no change at all. So the definition is remembered and
compared with the present one, and what cannot be proved harmless means that the table is copied again. The proof leans
on the catalog's row versions (`xmin`): a row that was changed and changed back has another one.

A definition that comes with the stream (`columns_only`) has columns, files and key; the rest is looked at before every
cut, so no cut contains a change that was overlooked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from tailrace.source.postgres.catalog.publication_filters import Sent, read_sent
from tailrace.source.postgres.catalog.tables import TableInfo
from tailrace.source.postgres.named_sql import NAMESPACES_SINCE, load
from tailrace.source.postgres.server.connection import one_state
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.values.types import RULE, RULE_TEXT_ARRAYS

QUERIES = load("catalog/definition.sql")

LOCK_MS_MAX = 2000


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


class Made(NamedTuple):
    """When a table was made, as its catalog row tells it."""

    xid: int
    """The transaction that made it, or the sub-transaction: the last 32 bits of its number."""
    xid_end: int
    """No transaction from this one on had committed then: its whole number."""


@dataclass(frozen=True)
class Sending:
    """How some tables are sent."""

    publication: str
    inserts: bool
    """Their updates and deletes are not."""


def types_of(info: TableInfo, known: Definition | None) -> Types:
    """How a table's lake types are chosen: for a copy that is there, by the rule that it was made with."""
    text = tuple(column.number for column in info.columns if column.is_text)
    decimals = tuple((column.number, column.decimal) for column in info.columns if column.decimal is not None)
    return Types(known.types.rule if known is not None else RULE, text, decimals)


def renewed(definition: Definition) -> Definition:
    """For a copy that is made now."""
    return replace(definition, types=replace(definition.types, rule=RULE))


@contextmanager
def dated_state(conn: psycopg.Connection) -> Iterator[Lsn]:
    """`one_state`, with a point that everything was committed before which it shows. So the point is asked for first:
    the state of a transaction is that of its first query."""
    row = conn.execute(QUERIES["read_at"]).fetchone()
    assert row is not None
    with one_state(conn):
        yield Lsn.parse(row[0])


def read_columns(
    conn: psycopg.Connection, keys: Mapping[int, Collection[str]], sent: Sent, at: int
) -> dict[int, Definition]:
    """What the stream needs of some tables' definitions, by oid; `keys` has each table's identifying columns. Inside a
    state with the ordinal `at`."""
    oids = {"oids": list(keys)}
    missing = {(relation, name) for relation, name in conn.execute(QUERIES["missing"], oids)}
    attributes: dict[int, list[Attribute]] = defaultdict(list)
    for relation, number, *facts, generated, version in conn.execute(QUERIES["attributes"], oids):
        facts += [not sent.has(relation, number, generated), version]
        attribute = Attribute(number, *facts)
        attributes[relation].append(replace(attribute, is_missing=(relation, attribute.name) in missing))
    files: dict[int, dict[str, int]] = defaultdict(dict)
    toasts: dict[int, int] = {}
    for relation, part, file, toast in conn.execute(QUERIES["files"], oids):
        files[relation][str(part)] = file
        if part == relation:
            toasts[relation] = toast
    return {
        relation: Definition(
            at=at,
            attributes=tuple(attributes[relation]),
            files=files[relation],
            toast=toasts.get(relation, 0),
            key=tuple(each.number for each in attributes[relation] if each.name in key and not each.is_dropped),
        )
        for relation, key in keys.items()
        if relation in attributes or relation in files
    }


def read_made(conn: psycopg.Connection, relation: int) -> Made | None:
    """None for a table that is gone, or that no other session sees yet."""
    row = conn.execute(QUERIES["made"], {"oid": relation}).fetchone()
    return None if row is None else Made(*row)


def read_definitions(
    conn: psycopg.Connection,
    sending: Sending,
    keys: Mapping[int, Collection[str]],
    known: Mapping[int, Definition],
    types: Mapping[int, Types],
    at: int,
) -> dict[int, Definition]:
    """The whole definitions of some tables, with these types; the `known` one where nothing has moved since."""
    parameters = {"oids": list(keys), "publication": sending.publication}
    found = read_columns(conn, keys, read_sent(conn, [sending.publication]), at)
    values: dict[int, dict[str, str]] = defaultdict(dict)
    for relation, name, text in conn.execute(QUERIES["label_and_attribute"], parameters):
        values[relation][name] = text
    sent = {relation: (rule, listed) for relation, rule, listed in conn.execute(QUERIES["sent"], parameters)}
    namespaces: dict[int, str] = {}
    if conn.info.server_version >= NAMESPACES_SINCE:
        namespaces = dict(conn.execute(QUERIES["sent_namespaces"], parameters).fetchall())
    partitions = _partitions(conn, parameters, known)
    rewrites: dict[int, int] = dict(conn.execute(QUERIES["rewrites"], parameters).fetchall()) if sending.inserts else {}
    whole = {}
    for relation, definition in found.items():
        rule, listed = sent.get(relation, ("", None))
        new = replace(
            definition,
            partitions=partitions[relation],
            values=values[relation],
            sent=f"{rule}; {listed}; {namespaces.get(relation)}",
            is_listed=listed is not None,
            rewrites=rewrites.get(relation),
            types=types[relation],
        )
        old = known.get(relation)
        whole[relation] = old if old is not None and replace(new, at=old.at) == old else new
    return whole


def read_chosen(
    conn: psycopg.Connection,
    publications: Sequence[str],
    infos: Sequence[TableInfo],
    known: Mapping[int, Definition],
    types: Mapping[int, Types],
    at: int,
) -> dict[int, Definition]:
    """The whole definitions of some tables, each as the publication that sends it has it: the first, or the second for
    those of which only inserts are sent."""
    found: dict[int, Definition] = {}
    for inserts, name in enumerate(publications):
        keys = {info.relation: info.identity_key for info in infos if info.by_inserts == bool(inserts)}
        found |= read_definitions(conn, Sending(name, bool(inserts)), keys, known, types, at)
    return found


def _partitions(
    conn: psycopg.Connection, parameters: Mapping[str, Any], known: Mapping[int, Definition]
) -> Mapping[int, dict[str, Partition]]:
    found: dict[int, dict[str, Partition]] = defaultdict(dict)
    rows = conn.execute(QUERIES["partitions"], parameters).fetchall()
    before = {relation: each.partitions or {} for relation, each in known.items()}
    # What attaches a table that is there writes the catalog rows of all its columns again, which `partition of` does
    # not. Rows may also have come before a partition above theirs was attached.
    filled = {
        relation for relation, part, *_, at_once in rows if not (at_once or str(part) in before.get(relation, {}))
    }
    for relation, part, attached, made, is_leaf, _ in rows:
        if not before.get(relation):
            has_older_rows = True
        elif str(part) in before[relation]:
            has_older_rows = before[relation][str(part)].has_older_rows
        else:
            has_older_rows = attached != made or (relation in filled and is_leaf and _has_rows(conn, part))
        found[relation][str(part)] = Partition(attached, made, is_leaf, has_older_rows)
    return found


def _has_rows(conn: psycopg.Connection, part: int) -> bool:
    """Of a partition that was made and attached by two statements of one transaction. Rows that were written between
    the two, perhaps in a sub-transaction, and those that came after look alike."""
    (name,) = conn.execute("select %s::oid::regclass::text", (part,)).fetchone() or ("",)
    try:
        with conn.transaction():
            conn.execute(sql.SQL("set local lock_timeout = {}").format(LOCK_MS_MAX))
            row = conn.execute(sql.SQL(QUERIES["has_rows"]).format(sql.SQL(name))).fetchone()
    except psycopg.Error:
        # Locked, or not ours to read: then it is copied, which waits or says what is missing.
        return True
    return row is None or bool(row[0])
