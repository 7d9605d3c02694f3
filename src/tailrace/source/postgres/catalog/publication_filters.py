"""What a publication sends of a table: which columns, and which rows.

A publication may list columns and have a condition for rows; generated columns are sent where it says so. The lake has
what the publication sends, so a copy reads the same columns and the same rows as the stream brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import psycopg

from tailrace.errors import DefiniteError
from tailrace.source.postgres.catalog.problems import GENERATED_SINCE
from tailrace.source.postgres.catalog.tables import CatalogTable
from tailrace.source.postgres.named_sql import load

QUERIES = load("catalog/publication.sql")
PARTS_SINCE = 150000
"""The server's version from which on a publication can list columns and have conditions for rows."""
_STORED = "s"


@dataclass(frozen=True)
class Sent:
    """What some publications send of some tables, by oid; all rows and columns of those that are not named."""

    has_generated: bool = False
    """Generated columns that are stored are sent, unless a list leaves them out."""
    columns: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The columns that are listed, by number."""
    rows: Mapping[int, str] = field(default_factory=dict)
    """Conditions for rows, in SQL."""
    by_leaves: bool = False
    """Changes of partitions are sent as their own, not as changes of the table that they belong to."""

    def has(self, relation: int, number: int, generated: str) -> bool:
        """Whether a column is sent; `generated` is its `attgenerated`."""
        if relation in self.columns:
            return number in self.columns[relation]
        return not generated or (generated == _STORED and self.has_generated)


def read_sent(conn: psycopg.Connection, publications: Sequence[str]) -> Sent:
    """As the publications are now."""
    named = {"publications": list(publications)}
    has_generated, by_leaves = conn.execute(QUERIES["sent_how"], named).fetchone() or (False, False)
    has_parts = conn.info.server_version >= PARTS_SINCE
    lists = conn.execute(QUERIES["sent_parts"], named).fetchall() if has_parts else []
    return Sent(
        bool(has_generated),
        {relation: frozenset(numbers) for relation, numbers, _ in lists if numbers is not None},
        {relation: condition for relation, _, condition in lists if condition is not None},
        bool(by_leaves),
    )


def sent_by(conn: psycopg.Connection, publication: str | None, *, generated: bool) -> Sent:
    """What a publication that a person has named sends, as it is now; or else ours, which sends whole tables."""
    if publication is not None:
        return read_sent(conn, [publication])
    if generated and conn.info.server_version < GENERATED_SINCE:
        message = f"Postgres {conn.info.server_version // 10000} does not send generated columns"
        raise DefiniteError(message, "leave out --generated-columns, which needs Postgres 18")
    return Sent(has_generated=generated)


def as_sent(infos: Sequence[CatalogTable], sent: Sent) -> list[CatalogTable]:
    """The tables, with what is sent of them."""
    return [
        replace(
            info,
            columns=tuple(
                replace(column, is_sent=sent.has(info.relation, column.number, column.generated))
                for column in info.columns
            ),
            condition=sent.rows.get(info.relation),
        )
        for info in infos
    ]
