"""PostgresTables: which tables a Postgres database has, and what they look like."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.tables import Check
from tailrace.source.door.values import Claim, Definition, SourceTable
from tailrace.source.postgres._reached import ReachedDatabase
from tailrace.source.postgres.catalog.chosen_columns import require_columns
from tailrace.source.postgres.catalog.definition import Definition as DefinitionOf
from tailrace.source.postgres.catalog.definition_reader import catalog_mark, dated_state, read_chosen, types_of
from tailrace.source.postgres.catalog.problems import source_tables
from tailrace.source.postgres.catalog.publication import publications
from tailrace.source.postgres.catalog.publication_filters import sent_by
from tailrace.source.postgres.catalog.signal_table import without_signals
from tailrace.source.postgres.catalog.tables import list_tables, schema_of
from tailrace.source.postgres.doctor import doctor
from tailrace.source.postgres.server.connection import one_state, session
from tailrace.source.postgres.server.history import History


class PostgresTables(ReachedDatabase):
    """The part `Tables` of the door."""

    def identify(self) -> Mapping[str, str]:
        return self._identity().log_identity

    def tables(
        self, include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
    ) -> list[SourceTable]:
        exclude = without_signals(self._signals, include, exclude)
        with session(self._options.dsn) as conn, one_state(conn):
            sent = sent_by(conn, self._options.publication, generated=self._options.generated)
            found = self._as_chosen(list_tables(conn, include, exclude, known, by_leaves=sent.by_leaves), sent)
            require_columns(found, self._options.as_text, known)
            return source_tables(conn, found)

    def describe(self, tables: Sequence[TableId]) -> dict[TableId, SourceTable]:
        with self._idle.session() as conn, one_state(conn):
            found = source_tables(conn, self._find(conn, tables))
        return {each.table: each for each in found}

    def define(self, claim: Claim, known: Mapping[TableId, Definition | None]) -> dict[TableId, TableSchema]:
        with self._idle.session() as conn, dated_state(conn) as at:
            infos = self._find(conn, list(known))
            before = {info.relation: known[info.table] for info in infos}
            definitions = {oid: DefinitionOf.from_json(each) for oid, each in before.items() if each is not None}
            types = {info.relation: types_of(info, definitions.get(info.relation)) for info in infos}
            found = read_chosen(conn, publications(claim), infos, definitions, types, History.of(claim).ordinal(at))
        return {
            info.table: replace(schema_of(info, types[info.relation].rule), definition=found[info.relation].to_json())
            for info in infos
            if info.relation in found
        }

    def mark(self) -> str | None:
        # Where only inserts of a table are sent, its updates show in the server's statistics alone.
        return None if self._options.append_only else self._kept.ask(catalog_mark)

    def examine(self, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
        options = self._options
        named = doctor.Named(
            options.slot,
            options.publication,
            tuple(options.append_only),
            self._signals,
            self._watermarks,
            tuple(options.as_text),
            options.stream,
            generated=options.generated,
        )
        with session(options.dsn) as conn:
            return doctor.examine(conn, include, without_signals(self._signals, include, exclude), named)
