"""Definitions of tables, read from the catalog as it is at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from tailrace.source.postgres.catalog.definition import Attribute, Definition, Made, Partition, Types
from tailrace.source.postgres.catalog.publication_filters import Sent, read_sent
from tailrace.source.postgres.catalog.tables import CatalogTable
from tailrace.source.postgres.named_sql import NAMESPACES_SINCE, load
from tailrace.source.postgres.server.connection import one_state
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.values.types import RULE

QUERIES = load("catalog/definition.sql") | load("catalog/mark.sql")

LOCK_MS_MAX = 2000


@dataclass(frozen=True)
class Sending:
    """How some tables are sent."""

    publication: str
    inserts: bool
    """Their updates and deletes are not."""


def types_of(info: CatalogTable, known: Definition | None) -> Types:
    """How a table's lake types are chosen: for a copy that is there, by the rule that it was made with."""
    text = tuple(column.number for column in info.columns if column.is_text)
    decimals = tuple((column.number, column.decimal) for column in info.columns if column.decimal is not None)
    return Types(known.types.rule if known is not None else RULE, text, decimals)


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
    infos: Sequence[CatalogTable],
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


def catalog_mark(conn: psycopg.Connection) -> str:
    """A mark of the catalog: changes whenever a look at the tables could find something new.

    To look at a thousand tables takes seconds, and it is done before every cut. The mark takes milliseconds: one number
    for each catalog that a look reads, from the row versions (`xmin`) that are visible in it. Every statement that
    changes a definition, a right or a publication leaves other row versions, also one that changes something and
    changes it back. Temporary tables are left out: applications make them all the time.
    """
    names = ["mark"] + (["namespaces_mark"] if conn.info.server_version >= NAMESPACES_SINCE else [])
    return " ".join(text for name in names for (text,) in conn.execute(QUERIES[name]))
