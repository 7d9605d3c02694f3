"""The publication: which tables the slot sends."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.postgres.queries import load

QUERIES = load("replication.sql")


def published_tables(conn: psycopg.Connection, name: str) -> set[TableId] | None:
    """The publication's tables, or None if there is no such publication."""
    row = conn.execute(QUERIES["publication"], {"publication": name}).fetchone()
    if row is None:
        return None
    if not all(row):
        raise DefiniteError(
            f"publication {name} does not publish every kind of change: rows would be lost",
            f"alter publication {name} set (publish = 'insert, update, delete, truncate')",
        )
    rows = conn.execute(QUERIES["publication_tables"], {"publication": name}).fetchall()
    partial = [TableId(namespace, table) for namespace, table, is_partial in rows if is_partial]
    if partial:
        raise DefiniteError(
            f"publication {name} sends only some rows or columns of {partial[0]}: the copy would not be exact",
            f"alter publication {name} set table {partial[0]}, or name another one with --publication",
        )
    return {TableId(namespace, table) for namespace, table, _ in rows}


def ensure_publication(conn: psycopg.Connection, name: str, tables: Sequence[TableId], *, ours: bool) -> list[TableId]:
    """Make the publication send at least `tables`; returns those it did not send before.

    A publication that is not ours is never changed: what it lacks is an error.
    """
    present = published_tables(conn, name)
    missing = [table for table in tables if present is None or table not in present]
    if not missing:
        return []
    listed = sql.SQL(", ").join(sql.Identifier(table.namespace, table.name) for table in missing)
    if not ours:
        what = f"publication {name} does not exist" if present is None else f"publication {name} lacks {missing[0]}"
        verb = "create publication {} for table {}" if present is None else "alter publication {} add table {}"
        raise DefiniteError(what, sql.SQL(verb).format(sql.Identifier(name), listed).as_string(None))
    if present is None:
        verb = "create publication {} for table {} with (publish_via_partition_root = true)"
    else:
        verb = "alter publication {} add table {}"
    try:
        conn.execute(sql.SQL(verb).format(sql.Identifier(name), listed))
    except psycopg.errors.InsufficientPrivilege as error:
        raise DefiniteError(
            f"cannot publish the tables: {error.diag.message_primary}",
            "run this as the tables' owner and name it with --publication: "
            + sql.SQL(verb).format(sql.Identifier(name), listed).as_string(None),
        ) from None
    return missing


def drop_publication(conn: psycopg.Connection, name: str) -> bool:
    """Drop a publication if it is there. Says whether it was."""
    if published_tables(conn, name) is None:
        return False
    conn.execute(sql.SQL("drop publication {}").format(sql.Identifier(name)))
    return True
