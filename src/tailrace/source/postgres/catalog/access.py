"""What the connected user may do with tables, and the SQL that grants what is missing.

Rows are read from where they are stored, so a partitioned table can be read when each of its leaf partitions can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from tailrace.model.table import TableId
from tailrace.source.door.values import Problem
from tailrace.source.postgres.catalog.tables import QUERIES, CatalogTable, quoted


@dataclass(frozen=True)
class Access:
    """The user's rights on one table or leaf partition."""

    relation: int
    may_enter: bool
    """The table's namespace."""
    may_read: bool
    is_owner: bool
    """Or a member of the role that is."""
    hides_rows: bool
    """Row-level security applies to this user."""

    def missing_grants(self, table: TableId, user: str) -> list[str]:
        """The statements without which the rows stored in `table` cannot be read."""
        role = sql.Identifier(user).as_string(None)
        grants = []
        if not self.may_enter:
            grants.append(f"grant usage on schema {sql.Identifier(table.namespace).as_string(None)} to {role};")
        if not self.may_read:
            grants.append(f"grant select on {quoted(table)} to {role};")
        return grants


@dataclass(frozen=True)
class Rights:
    """What one user may do with some tables."""

    user: str
    by_relation: Mapping[int, Access]

    @classmethod
    def load(cls, conn: psycopg.Connection, tables: Sequence[CatalogTable]) -> Rights:
        """Of the connected user, on these tables and their leaf partitions."""
        oids = {relation for info in tables for _, relation in _stored(info)}
        with conn.cursor(row_factory=class_row(Access)) as cursor:
            rows = cursor.execute(QUERIES["access"], {"oids": list(oids)}).fetchall()
        (user,) = conn.execute("select current_user").fetchone() or ("",)
        return cls(user, {row.relation: row for row in rows})

    def owns(self, info: CatalogTable) -> bool:
        found = self.by_relation.get(info.relation)
        return found is not None and found.is_owner

    def missing_grants(self, info: CatalogTable) -> list[str]:
        """The statements without which the table's rows cannot be read; none where they can."""
        grants = [grant for table, access in self._of(info) for grant in access.missing_grants(table, self.user)]
        return list(dict.fromkeys(grants))

    def grants_by_schema(self, tables: Sequence[CatalogTable]) -> list[str]:
        """The same for many tables, in two statements a schema."""
        namespaces = {table.namespace for info in tables for table, _ in self._of(info)}
        user = sql.Identifier(self.user).as_string(None)
        names = [sql.Identifier(namespace).as_string(None) for namespace in sorted(namespaces)]
        return [
            grant
            for name in names
            for grant in (
                f"grant usage on schema {name} to {user};",
                f"grant select on all tables in schema {name} to {user};",
            )
        ]

    def hides_rows(self, info: CatalogTable) -> bool:
        """Whether row-level security would leave rows of the table out of a copy."""
        return any(access.hides_rows for _, access in self._of(info))

    def problem(self, info: CatalogTable) -> Problem | None:
        """Why this user cannot read all rows of the table; None where it can."""
        grants = self.missing_grants(info)
        if grants:
            return Problem(f"user {self.user} may not read table {info.table}", " ".join(grants))
        if self.hides_rows(info):
            return hidden_rows(self.user, info.table)
        return None

    def _of(self, info: CatalogTable) -> Iterator[tuple[TableId, Access]]:
        for table, relation in _stored(info):
            if relation in self.by_relation:
                yield table, self.by_relation[relation]


def missing_grants(conn: psycopg.Connection, table: TableId) -> list[str]:
    """What the connected user lacks to read one table or leaf partition."""
    with conn.cursor(row_factory=class_row(Access)) as cursor:
        named = {"namespace": table.namespace, "name": table.name}
        found = cursor.execute(QUERIES["access_by_name"], named).fetchone()
    return found.missing_grants(table, conn.info.user) if found is not None else []


def hidden_rows(user: str, table: TableId) -> Problem:
    """A copy without the rows that a policy hides would not be exact."""
    fix = sql.SQL("alter role {} bypassrls;").format(sql.Identifier(user)).as_string(None)
    return Problem(f"row-level security hides rows of table {table} from user {user}", fix)


def _stored(info: CatalogTable) -> list[tuple[TableId, int]]:
    """The table, and where its rows are stored if that is elsewhere."""
    parts = [(part.table, part.relation) for part in info.parts if part.relation != info.relation]
    return [(info.table, info.relation), *parts]
