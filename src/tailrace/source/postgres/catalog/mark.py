"""A mark of the catalog: another one whenever a look at the tables could find something new.

To look at a thousand tables takes seconds, and it is done before every cut. The mark takes milliseconds: one number
for each catalog that a look reads, from the row versions (`xmin`) that are visible in it. Every statement that changes
a definition, a right or a publication leaves other row versions, also one that changes something and changes it back.
Temporary tables are left out: applications make them all the time.
"""

from __future__ import annotations

import psycopg

from tailrace.source.postgres.named_sql import NAMESPACES_SINCE, load

QUERIES = load("catalog/mark.sql")


def catalog_mark(conn: psycopg.Connection) -> str:
    row = conn.execute(QUERIES["mark"]).fetchone()
    assert row is not None
    parts = [row[0]]
    if conn.info.server_version >= NAMESPACES_SINCE:
        found = conn.execute(QUERIES["namespaces_mark"]).fetchone()
        assert found is not None
        parts.append(found[0])
    return " ".join(parts)
