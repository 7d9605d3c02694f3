"""The signal table: people insert rows into it, and the connector finds them in the log.

Its changes are sent like any table's, whether or not it is copied. Only inserts matter, so it needs no key: without
one it is sent by the publication for inserts.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem
from tailrace.source.postgres.catalog.access import Rights
from tailrace.source.postgres.catalog.publication import find_publication, not_owned, unsent
from tailrace.source.postgres.catalog.tables import CatalogTable, append_only, find_tables, quoted, schema_of

COLUMNS = ("id", "type", "data")


@dataclass(frozen=True)
class SignalTable:
    """One table, known by name. It may be gone, and come again."""

    table: TableId

    @classmethod
    def named(cls, text: str) -> SignalTable:
        """A definite error for what is no table's whole name."""
        try:
            return cls(TableId.parse(text))
        except ValueError:
            hint = "write its schema too: --signal-table public.tailrace_signal"
            raise DefiniteError(f"--signal-table {text} is not the whole name of a table", hint) from None

    def found(self, conn: psycopg.Connection) -> list[CatalogTable]:
        """The table if it is there and can be sent, by inserts if nothing identifies its rows."""
        infos = find_tables(conn, [self.table])
        return append_only([info for info in infos if info.obstacle is None], [glob.escape(str(self.table))])

    def problem(self, conn: psycopg.Connection, publication: str | None, *, can_send_inserts: bool) -> Problem | None:
        """Why signals cannot come this way: through `publication`, which is another's, or else through ours."""
        found = self.found(conn)
        if not found:
            return self._missing(conn)
        (info,) = found
        types = [column.type for column in schema_of(info).columns[: len(COLUMNS)]]
        if len(types) < len(COLUMNS) or any(each != "string" for each in types):
            message = f"signal table {self.table} does not begin with three columns of text, for id, type and data"
            return Problem(message, f"drop table {quoted(self.table)}; {self._create()}")
        if publication is not None:
            return self._unsent(conn, publication)
        rights = Rights.load(conn, found)
        if not rights.owns(info):
            return not_owned(rights.user, info)
        if info.by_inserts and not can_send_inserts:
            message = f"signal table {self.table} has no primary key, and this lake was begun without --signal-table"
            return Problem(message, f"alter table {quoted(self.table)} add primary key (…)")
        return None

    def _missing(self, conn: psycopg.Connection) -> Problem:
        found = [info.obstacle or "" for info in find_tables(conn, [self.table])]
        if not found:
            return Problem(f"signal table {self.table} is not there", self._create())
        logged = f"alter table {quoted(self.table)} set logged;"
        hint = logged if found[0].startswith("unlogged") else "name another one with --signal-table"
        return Problem(f"signal table {self.table} is {found[0]}", hint)

    def _unsent(self, conn: psycopg.Connection, name: str) -> Problem | None:
        found = find_publication(conn, name)
        return unsent(found, self.table) if found is not None and self.table not in found.tables else None

    def _create(self) -> str:
        return f"create table {quoted(self.table)} (id varchar(64) primary key, type varchar(32) not null, data text);"


def without_signals(signals: SignalTable | None, include: Sequence[str], exclude: Sequence[str]) -> Sequence[str]:
    """What to leave out of a copy: the signal table too, unless a pattern is its whole name."""
    if signals is None or str(signals.table) in include:
        return exclude
    return [*exclude, glob.escape(str(signals.table))]
