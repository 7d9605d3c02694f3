"""The publication: which tables the slot sends.

A publication that is not ours is never changed. What one table lacks is that table's problem; the others are sent.

Tables whose rows nothing identifies have a publication of their own, which sends inserts and truncates alone: in one
that sends updates too, the server would refuse the application's updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.door.values import Claim, Problem
from tailrace.source.postgres.catalog.access import Rights
from tailrace.source.postgres.catalog.problems import problems
from tailrace.source.postgres.catalog.tables import CatalogTable, find_tables, quoted
from tailrace.source.postgres.named_sql import NAMESPACES_SINCE, load
from tailrace.source.postgres.server.connection import UnreadableName, one_line
from tailrace.source.postgres.server.lock_waits import Waiter, lock_holders

QUERIES = load("catalog/publication.sql")
ROOTS_SINCE = 130000
"""The server's version from which on partitioned tables can be published."""
_VIA_ROOT = "with (publish_via_partition_root = true)"
MAKE_PUBLICATION = f"create publication tailrace for table … {_VIA_ROOT};"


@dataclass(frozen=True)
class Publication:
    """A publication as it is now."""

    name: str
    tables: frozenset[TableId]
    """It sends every change of every row and column of these."""
    partial: frozenset[TableId]
    """It sends only some rows or columns of these; no fault where a person made it so."""
    via_root: bool
    """Changes of partitions are sent as changes of their table."""
    has_generated: bool
    """Generated columns that are stored are sent."""


@dataclass(frozen=True)
class PublicationKind:
    """What a publication of ours sends."""

    inserts: bool = False
    """Of tables whose rows nothing identifies: inserts and truncates alone."""
    generated: bool = False
    """Generated columns that are stored, too."""
    keeps_others: bool = False
    """What it sends stays as it is: it may send more, for someone who has said so."""

    def options(self, has_roots: bool) -> sql.SQL:
        """What follows the tables in a statement that makes it."""
        chosen = [
            "publish = 'insert, truncate'" if self.inserts else "",
            "publish_via_partition_root = true" if has_roots else "",
            _generated(True) if self.generated else "",
        ]
        listed = ", ".join(each for each in chosen if each)
        return sql.SQL(f"with ({listed})" if listed else "")


EVERYTHING = PublicationKind()


@dataclass
class Ensured:
    """What was done to make a publication send some tables."""

    added: list[TableId] = field(default_factory=list)
    dropped: list[TableId] = field(default_factory=list)
    refused: dict[TableId, Problem] = field(default_factory=dict)
    kept: int = 0
    """How many tables it sent already and still does."""

    def said(self, name: str) -> list[str]:
        """A line for each thing that was done."""
        lines = [f"publication {name} no longer sends {_counted(len(self.dropped))}"] if self.dropped else []
        if self.added:
            more = f" more, {self.kept + len(self.added)} in all" if self.kept else ""
            lines.append(f"publication {name} sends {_counted(len(self.added))}{more}")
        return lines


def find_publication(conn: psycopg.Connection, name: str, *, inserts: bool = False) -> Publication | None:
    """The publication, or None if there is none. A definite error if it leaves out a kind of change, or if one for
    `inserts` sends others too: the server then refuses them."""
    row = conn.execute(QUERIES["publication"], {"publication": name}).fetchone()
    if row is None:
        return None
    has_inserts, has_updates, has_deletes, via_root, has_generated = row
    if not has_inserts or {has_updates, has_deletes} != {not inserts}:
        kinds = "inserts and truncates alone" if inserts else "every kind of change: rows would be lost"
        wanted = "insert, truncate" if inserts else "insert, update, delete, truncate"
        raise DefiniteError(
            f"publication {name} does not publish {kinds}",
            f"alter publication {_quoted(name)} set (publish = '{wanted}')",
        )
    rows = conn.execute(QUERIES["publication_tables"], {"publication": name}).fetchall()
    if conn.info.server_version >= NAMESPACES_SINCE:
        rows += conn.execute(QUERIES["publication_namespaces"], {"publication": name}).fetchall()
    whole = frozenset(TableId(namespace, table) for namespace, table, is_partial in rows if not is_partial)
    partial = frozenset(TableId(namespace, table) for namespace, table, is_partial in rows if is_partial) - whole
    return Publication(name, whole, partial, via_root, has_generated)


def require_publication(conn: psycopg.Connection, name: str) -> Publication:
    """A publication that a person has named; a definite error unless it is there."""
    found = find_publication(conn, name)
    if found is None:
        raise DefiniteError(
            f"publication {name} does not exist", f"create publication {_quoted(name)} for table … {_VIA_ROOT}"
        )
    return found


def use_publication(conn: psycopg.Connection, name: str, tables: Sequence[TableId]) -> Ensured:
    """A publication that is not ours: the tables that it does not send are refused."""
    publication = require_publication(conn, name)
    sent = publication.tables | publication.partial
    refused = {table: unsent(publication, table) for table in tables if table not in sent}
    return Ensured(refused=refused)


def publish(
    conn: psycopg.Connection,
    claim: Claim,
    tables: Sequence[TableId],
    infos: Sequence[CatalogTable],
    waiter: Waiter,
    kind: PublicationKind,
) -> tuple[list[str], dict[TableId, Problem]]:
    """Make the claim's publications, of this kind and for inserts, send the tables: what was done, a line each, and the
    tables that are refused."""
    done = []
    by_inserts = {info.table for info in infos if info.by_inserts}
    # It may have lost its identity since it was looked at: the server would refuse its updates.
    refused = {info.table: problems(info)[0] for info in infos if not info.by_inserts and not info.has_identity}
    for inserts, name in enumerate(publications(claim)):
        chosen = [t for t in tables if t not in refused and (t in by_inserts) == bool(inserts)]
        if claim["owns_publication"]:
            ensured = ensure_publication(conn, name, chosen, waiter, replace(kind, inserts=bool(inserts)))
        else:
            ensured = use_publication(conn, name, chosen)
        refused |= ensured.refused
        done += ensured.said(name)
    return done, refused


def sent_tables(conn: psycopg.Connection, claim: Claim, infos: Sequence[CatalogTable]) -> set[TableId]:
    """Those of the tables that the claim's publications send now. A definite error without one that is not ours: to
    make it again is for a person, and until then no table can be copied."""
    if not claim["owns_publication"]:
        require_publication(conn, claim["publication"])
    found = [find_publication(conn, each, inserts=n > 0) for n, each in enumerate(publications(claim))]
    sent = [each.tables if each is not None else frozenset[TableId]() for each in found]
    if found[0] is not None and not claim["owns_publication"]:
        sent[0] |= found[0].partial
    return {info.table for info in infos if info.by_inserts < len(sent) and info.table in sent[info.by_inserts]}


def ensure_publication(
    conn: psycopg.Connection, name: str, tables: Sequence[TableId], waiter: Waiter, kind: PublicationKind = EVERYTHING
) -> Ensured:
    """Make our own publication send the tables and, unless it keeps them, no others: a table that cannot be copied must
    not be published, lest the server refuse its updates. Refused are those that it cannot send; a definite error if a
    new publication would send none of them."""
    found = find_publication(conn, name, inserts=kind.inserts)
    if found is not None and kind.keeps_others:
        kind = replace(kind, generated=found.has_generated)
    if found is not None and (not found.via_root or found.has_generated != kind.generated):
        # Another process has changed it: changes of partitions come under names that no lake table has. Or a person
        # wants generated columns now, or does not any more.
        generated = sql.SQL("" if found.has_generated == kind.generated else f", {_generated(kind.generated)}")
        options = sql.SQL("(publish_via_partition_root = true{})").format(generated)
        conn.execute(sql.SQL("alter publication {} set {}").format(sql.Identifier(name), options))
        found = find_publication(conn, name, inserts=kind.inserts)
    missing = [table for table in tables if found is None or table not in found.tables]
    infos = {info.table: info for info in find_tables(conn, missing)}
    others = sorted((found.tables | found.partial) - set(tables)) if found is not None else []
    # One that was renamed to what is not UTF-8 stays: no statement of ours can name it. Its changes are passed over.
    others = [each for each in others if not any(isinstance(n, UnreadableName) for n in (each.namespace, each.name))]
    done = Ensured(dropped=[] if kind.keeps_others else others)
    done.kept = len(found.tables | found.partial) - len(done.dropped) if found is not None else 0
    if done.dropped:
        waiter.run(conn, _without(name, done.dropped), lock_holders("leaving tables out of the publication"))
    for table in missing:
        if table not in infos:
            done.refused[table] = Problem(f"table {table} is gone", f"leave it out: --exclude {table.argument}")
        elif found is not None and table in found.partial:
            done.refused[table] = unsent(found, table)
    wanted = [infos[table] for table in missing if table not in done.refused]
    if wanted or found is None:
        _publish(conn, _Order(name, waiter, found is None, kind), wanted, done)
    return done


def drop_publication(conn: psycopg.Connection, name: str) -> bool:
    """Drop a publication if it is there. Says whether it was."""
    if conn.execute(QUERIES["publication"], {"publication": name}).fetchone() is None:
        return False
    conn.execute(sql.SQL("drop publication {}").format(sql.Identifier(name)))
    return True


@dataclass(frozen=True)
class _Order:
    """What is to be done to one publication."""

    name: str
    waiter: Waiter
    is_new: bool
    kind: PublicationKind


def _publish(conn: psycopg.Connection, order: _Order, tables: Sequence[CatalogTable], done: Ensured) -> None:
    """Publish the tables; where the server wants their owner for that, those that the user owns."""
    statement = _statement(order, tables, has_roots=conn.info.server_version >= ROOTS_SINCE)
    try:
        order.waiter.run(conn, statement, lock_holders("publishing the tables"))
    except psycopg.errors.InsufficientPrivilege as error:
        rights = Rights.load(conn, tables)
        owned = [info for info in tables if rights.owns(info)]
        foreign = [info for info in tables if not rights.owns(info)]
        done.refused.update({info.table: not_owned(rights.user, info) for info in foreign})
        if not foreign or (order.is_new and not owned):
            raise DefiniteError(
                f"user {rights.user} cannot publish the tables: {one_line(error)}",
                "run this as the tables' owner and name it with --publication: " + statement.as_string(None),
            ) from None
        if owned:
            _publish(conn, order, owned, done)
    else:
        done.added += [info.table for info in tables]


def _statement(order: _Order, tables: Sequence[CatalogTable], *, has_roots: bool) -> sql.Composed:
    name, listed = sql.Identifier(order.name), _listed([info.table for info in tables])
    if order.is_new:
        chosen = sql.SQL("for table {}").format(listed) if tables else sql.SQL("")
        options = order.kind.options(has_roots)
        return sql.SQL("create publication {} {} {}").format(name, chosen, options)
    return sql.SQL("alter publication {} add table {}").format(name, listed)


def _generated(wanted: bool) -> str:
    return f"publish_generated_columns = {'stored' if wanted else 'none'}"


def _without(name: str, tables: Sequence[TableId]) -> sql.Composed:
    return sql.SQL("alter publication {} drop table {}").format(sql.Identifier(name), _listed(tables))


def _listed(tables: Sequence[TableId]) -> sql.Composed:
    """Each without its children by inheritance: one without a key could not be updated any more. (Partitions belong to
    their table all the same.)"""
    return sql.SQL(", ").join(
        sql.SQL("only {}").format(sql.Identifier(table.namespace, table.name)) for table in tables
    )


def unsent(publication: Publication, table: TableId) -> Problem:
    """Why a publication does not send every change of a table, which it does not."""
    name = publication.name
    if table in publication.partial:
        return Problem(
            f"publication {name} sends only some rows or columns of table {table}",
            f"alter publication {_quoted(name)} drop table only {quoted(table)}; "
            f"alter publication {_quoted(name)} add table only {quoted(table)}",
        )
    fix = f"alter publication {_quoted(name)} add table only {quoted(table)}"
    return Problem(f"publication {name} does not send table {table}", fix)


def not_owned(user: str, info: CatalogTable) -> Problem:
    """Why a user cannot publish a table."""
    owner = sql.Identifier(user).as_string(None)
    return Problem(
        f"user {user} does not own table {info.table} and cannot publish it",
        f"alter table {quoted(info.table)} owner to {owner}, or let the owner make a publication of all tables and "
        "name it with --publication",
    )


def _counted(count: int) -> str:
    return "1 table" if count == 1 else f"{count} tables"


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def publications(claim: Claim) -> tuple[str, ...]:
    """The one that sends every kind of change, then the one for inserts, if there is one."""
    inserts = claim.get("inserts")
    return (claim["publication"], inserts) if inserts else (claim["publication"],)
