"""The publication: which tables the slot sends.

A publication that is not ours is never changed. What one table lacks is that table's problem; the others are sent.

Tables whose rows nothing identifies have a publication of their own, which sends inserts and truncates alone: in one
that sends updates too, the server would refuse the application's updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.door import Claim, Problem
from tailrace.source.postgres._access import Rights
from tailrace.source.postgres._catalog import TableInfo, find_tables, quoted
from tailrace.source.postgres._connection import one_line
from tailrace.source.postgres._queries import NAMESPACES_SINCE, load
from tailrace.source.postgres._waiting import Waiter, lock_holders

QUERIES = load("replication.sql")
ROOTS_SINCE = 130000
"""The server's version from which on partitioned tables can be published."""
_VIA_ROOT = "with (publish_via_partition_root = true)"
MAKE_PUBLICATION = f"create publication tailrace for table … {_VIA_ROOT};"
_INSERTS_VIA_ROOT = "with (publish = 'insert, truncate', publish_via_partition_root = true)"


@dataclass(frozen=True)
class Publication:
    """A publication as it is now."""

    name: str
    tables: frozenset[TableId]
    """Those of which it sends every change of every row and column."""
    partial: frozenset[TableId]
    """Those of which it sends only some rows or columns."""
    via_root: bool
    """Changes of partitions are sent as changes of their table."""


@dataclass
class Ensured:
    """What was done to make a publication send some tables."""

    added: list[TableId] = field(default_factory=list)
    dropped: list[TableId] = field(default_factory=list)
    refused: dict[TableId, Problem] = field(default_factory=dict)

    def said(self, name: str) -> list[str]:
        """A line for each thing that was done."""
        counts = (("no longer sends", len(self.dropped)), ("sends", len(self.added)))
        return [f"publication {name} {verb} {n} table{'s' if n > 1 else ''}" for verb, n in counts if n]


def find_publication(conn: psycopg.Connection, name: str, *, inserts: bool = False) -> Publication | None:
    """The publication, or None if there is none. A definite error if it leaves out a kind of change, or if one for
    `inserts` sends others too: the server then refuses them."""
    row = conn.execute(QUERIES["publication"], {"publication": name}).fetchone()
    if row is None:
        return None
    has_inserts, has_updates, has_deletes, via_root = row
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
    return Publication(name, whole, partial, via_root)


def require_publication(conn: psycopg.Connection, name: str) -> Publication:
    """A publication that a person has named; a definite error unless it is there."""
    found = find_publication(conn, name)
    if found is None:
        raise DefiniteError(
            f"publication {name} does not exist", f"create publication {_quoted(name)} for table … {_VIA_ROOT}"
        )
    return found


def use_publication(conn: psycopg.Connection, name: str, tables: Sequence[TableId]) -> Ensured:
    """A publication that is not ours: the tables that it does not send whole are refused."""
    publication = require_publication(conn, name)
    refused = {table: unsent(publication, table) for table in tables if table not in publication.tables}
    return Ensured(refused=refused)


def ensure_publication(
    conn: psycopg.Connection, name: str, tables: Sequence[TableId], waiter: Waiter, *, inserts: bool = False
) -> Ensured:
    """Make our own publication send the tables and no others: a table that cannot be copied must not be published, lest
    the server refuse its updates. Refused are those that it cannot send; a definite error if a new publication would
    send none of them."""
    found = find_publication(conn, name, inserts=inserts)
    if found is not None and not found.via_root:
        # Another process has changed it: changes of partitions come under names that no lake table has.
        conn.execute(
            sql.SQL("alter publication {} set (publish_via_partition_root = true)").format(sql.Identifier(name))
        )
        found = find_publication(conn, name, inserts=inserts)
    missing = [table for table in tables if found is None or table not in found.tables]
    infos = {info.table: info for info in find_tables(conn, missing)}
    done = Ensured(dropped=sorted((found.tables | found.partial) - set(tables)) if found is not None else [])
    if done.dropped:
        waiter.run(conn, _without(name, done.dropped), lock_holders("leaving tables out of the publication"))
    for table in missing:
        if table not in infos:
            done.refused[table] = Problem(f"table {table} is gone", f"leave it out: --exclude '{table}'")
        elif found is not None and table in found.partial:
            done.refused[table] = unsent(found, table)
    wanted = [infos[table] for table in missing if table not in done.refused]
    if wanted or found is None:
        _publish(conn, _Order(name, waiter, found is None, inserts), wanted, done)
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
    inserts: bool


def _publish(conn: psycopg.Connection, order: _Order, tables: Sequence[TableInfo], done: Ensured) -> None:
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


def _statement(order: _Order, tables: Sequence[TableInfo], *, has_roots: bool) -> sql.Composed:
    name, listed = sql.Identifier(order.name), _listed([info.table for info in tables])
    if order.is_new:
        chosen = sql.SQL("for table {}").format(listed) if tables else sql.SQL("")
        how = sql.SQL(_INSERTS_VIA_ROOT if order.inserts else _VIA_ROOT)
        if not has_roots:
            how = sql.SQL("with (publish = 'insert, truncate')" if order.inserts else "")
        return sql.SQL("create publication {} {} {}").format(name, chosen, how)
    return sql.SQL("alter publication {} add table {}").format(name, listed)


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
    if not publication.via_root:
        fix += f"; if the table is partitioned: alter publication {_quoted(name)} set (publish_via_partition_root)"
    return Problem(f"publication {name} does not send table {table}", fix)


def not_owned(user: str, info: TableInfo) -> Problem:
    """Why a user cannot publish a table."""
    owner = sql.Identifier(user).as_string(None)
    return Problem(
        f"user {user} does not own table {info.table} and cannot publish it",
        f"alter table {quoted(info.table)} owner to {owner}, or let the owner make a publication of all tables and "
        "name it with --publication",
    )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def publications(claim: Claim) -> tuple[str, ...]:
    """The one that sends every kind of change, then the one for inserts, if there is one."""
    inserts = claim.get("inserts")
    return (claim["publication"], inserts) if inserts else (claim["publication"],)
