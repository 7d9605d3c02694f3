"""One Postgres database as it is reached: what a person chose, and the connections to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg

from tailrace.model.table import TableId
from tailrace.settings import Watermarking
from tailrace.source.postgres.catalog.chosen_columns import as_text
from tailrace.source.postgres.catalog.publication_filters import Sent, as_sent, sent_by
from tailrace.source.postgres.catalog.signal_table import SignalTable
from tailrace.source.postgres.catalog.tables import CatalogTable, append_only, find_tables
from tailrace.source.postgres.rows.watermarks import watermarks_of
from tailrace.source.postgres.server.connection import (
    ConnectionOptions,
    IdleConnections,
    KeptConnection,
    one_state,
    session,
)
from tailrace.source.postgres.server.history import FIRST
from tailrace.source.postgres.server.identity import Identity, require_streaming
from tailrace.source.postgres.stream.protocol import StreamOptions


@dataclass(frozen=True)
class Options:
    """What a person chose."""

    dsn: str
    slot: str | None = None
    """To be used and left alone, like `publication`. Without a name the source makes its own."""
    publication: str | None = None
    append_only: Sequence[str] = ()
    """Patterns for tables whose rows nothing identifies and which are copied by their inserts."""
    signal_table: str | None = None
    """It is sent whether or not it is copied, and copied only where a pattern gives its whole name."""
    watermarks: Watermarking = Watermarking.READ_ONLY
    """What windows write to the signal table."""
    as_text: Sequence[str] = ()
    """Patterns for columns that are copied as Postgres's text, whatever their type, or with a type after them as that:
    `amount=decimal(38,10)` (`_type_choices`)."""
    stream: StreamOptions = field(default_factory=StreamOptions)
    generated: bool = False
    """Our own publication sends stored generated columns, too."""
    connections: ConnectionOptions = field(default_factory=ConnectionOptions)

    def to_arguments(self) -> Mapping[str, Any]:
        """For JSON, in the order of the fields."""
        nested = {"stream": asdict(self.stream), "connections": asdict(self.connections)}
        return {**vars(self), "watermarks": self.watermarks.value, **nested}


class ReachedDatabase:
    """What the parts of a source have in common."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._signals = SignalTable.named(options.signal_table) if options.signal_table is not None else None
        self._watermarks = watermarks_of(options.watermarks, self._signals)
        self._kept = KeptConnection(options.dsn)
        self._idle = IdleConnections(options.dsn, options.connections)
        self._history = FIRST
        """The history that positions belong to: the claim's, once there is one."""

    def _find(self, conn: psycopg.Connection, tables: Sequence[TableId]) -> list[CatalogTable]:
        with one_state(conn):
            sent = sent_by(conn, self._options.publication, generated=self._options.generated)
            return self._as_chosen(find_tables(conn, set(tables), by_leaves=sent.by_leaves), sent)

    def _as_chosen(self, infos: Sequence[CatalogTable], sent: Sent) -> list[CatalogTable]:
        return as_sent(as_text(append_only(infos, self._options.append_only), self._options.as_text), sent)

    def _identity(self) -> Identity:
        with session(self._options.dsn) as conn:
            return require_streaming(conn, self._options.dsn)
