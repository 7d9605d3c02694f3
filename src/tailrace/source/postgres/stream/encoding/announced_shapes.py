"""Shapes that the stream announces, completed from the catalog.

A relation message has the names and types of the columns as they were at that point of the stream. The catalog has
their numbers, as they are now. The two are matched, and where they do not fit, the shape says so.

Of a transaction that is still open, the catalog does not show what it did to its tables. A shape that is the catalog's
own is *settled*: it was committed before. Any other one is asked for again when its transaction has committed.

The stream has a transaction as soon as its commit is in the WAL. Other sessions see it a moment later, or much later if
it waits for a synchronous standby. Until then the catalog shows the table as it was before. So a shape that is not
settled waits until its transaction is seen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import psycopg

from tailrace.model.rows.column_names import distinct
from tailrace.model.table import TableSchema
from tailrace.source.postgres.catalog.definition import Definition
from tailrace.source.postgres.catalog.definition_reader import dated_state, read_columns, read_made
from tailrace.source.postgres.catalog.publication_filters import read_sent
from tailrace.source.postgres.catalog.tables import declared_types, identity_keys, primary_key, schema_from_relation
from tailrace.source.postgres.catalog.verdict import UNCLEAR, may_have_made, numbers_of
from tailrace.source.postgres.rows.views import read_view
from tailrace.source.postgres.rows.visibility import widened
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.values.messages import Relation

TURN_SECONDS = 0.02


@dataclass(frozen=True)
class Described:
    """An announced shape."""

    schema: TableSchema
    is_settled: bool
    """It is the one that every session sees."""


@dataclass(frozen=True)
class _Found:
    """What the catalog shows of a table at one moment."""

    at: int
    key: frozenset[str]
    definition: Definition | None
    """None if the table is gone, or no other session sees it yet."""


@dataclass(frozen=True)
class Announcing:
    """How shapes come with the stream."""

    publications: tuple[str, ...] = ()
    """Which tell what is sent of a table."""
    text_columns: tuple[str, ...] = ()
    """Patterns for columns that a person wants as text."""
    history: History = FIRST
    hidden_seconds_max: float = 5.0
    """How long capture waits until others see a committed transaction. After that its shapes may be in doubt, and a
    table in doubt is copied again."""


PLAIN = Announcing()


def describe_announced(conn: psycopg.Connection, relation: Relation, how: Announcing = PLAIN) -> Described:
    """The shape that a relation message announces, of a transaction that may be open."""
    deadline = time.monotonic() + how.hidden_seconds_max
    while True:
        with dated_state(conn) as at:
            is_seen = _is_seen(conn, relation.committed_by)
            found = _found(conn, relation, how, how.history.ordinal(at))
            schema = _described(conn, relation, how, found)
        is_settled = found.definition is not None and _is_settled(relation, found.definition, found.key)
        if is_settled or is_seen or time.monotonic() > deadline:
            return Described(schema, is_settled)
        time.sleep(TURN_SECONDS)


def _is_seen(conn: psycopg.Connection, xid: int) -> bool:
    """Whether the state shows a committed transaction; true for 0. A standby shows all that it sends."""
    view = read_view(conn) if xid else {}
    if "xmax" not in view:
        return True
    number = int(widened(np.array([xid], np.uint32), view["xmax"])[0])
    return number < view["xmax"] and number not in view["xip"]


def _is_settled(relation: Relation, definition: Definition, key: frozenset[str]) -> bool:
    sent = [(column.name, column.type_oid, column.typmod) for column in relation.columns]
    stored = [
        (each.name, each.type, each.typmod)
        for each in definition.attributes
        if not each.is_dropped and not each.is_unsent
    ]
    marked = frozenset(column.name for column in relation.columns if column.is_key)
    return sent == stored and (relation.replica_identity == "f" or marked == key)


def _made_by(conn: psycopg.Connection, relation: Relation) -> int:
    """See `TableSchema.made_by`."""
    if not relation.part_of or not relation.filled_by:
        return 0
    return relation.filled_by if may_have_made(relation.filled_by, read_made(conn, relation.oid)) else 0


def _found(conn: psycopg.Connection, relation: Relation, how: Announcing, at: int) -> _Found:
    keys = identity_keys(conn, [relation.oid])
    definition = read_columns(conn, keys, read_sent(conn, how.publications), at).get(relation.oid)
    return _Found(at, keys.get(relation.oid, frozenset()), definition)


def _described(conn: psycopg.Connection, relation: Relation, how: Announcing, found: _Found) -> TableSchema:
    types = declared_types(conn, [(column.type_oid, column.typmod) for column in relation.columns])
    key = primary_key(conn, relation.oid) if relation.replica_identity == "f" else frozenset()
    schema = schema_from_relation(relation, types, key, how.text_columns)
    schema = replace(schema, made_by=_made_by(conn, relation), part_of=relation.part_of)
    definition = found.definition
    if definition is None:
        return replace(distinct(schema), definition={"at": found.at} if relation.part_of else None)
    numbers = numbers_of(schema.names, definition.attributes)
    if numbers is None:
        definition = replace(definition, doubt=UNCLEAR)
        return distinct(replace(schema, definition=definition.to_json()))
    definition = replace(definition, listed=dict(zip(schema.names, numbers, strict=True)))
    columns = tuple(replace(column, number=n) for column, n in zip(schema.columns, numbers, strict=True))
    return distinct(replace(schema, columns=columns, definition=definition.to_json()))
