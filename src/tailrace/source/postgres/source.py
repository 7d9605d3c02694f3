"""PostgresSource: the door `Source` to a Postgres database.

A position's ordinal is an LSN. A claim names the one slot and the one publication of a lake, says which of them are
ours to remove, and on which timeline the server was.

What is left in the database after a crash: the slot and the publication, both named by the stored claim.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from typing import Any, Self

import psycopg
import pyarrow as pa

from tailrace.errors import TransientError
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import Watermarking
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.rows import Cursor, SnapshotPoint, WindowPoint
from tailrace.source.door.source import Source
from tailrace.source.door.stream import Leftovers, Prepared
from tailrace.source.door.tables import Check
from tailrace.source.door.values import Claim, Definition, SourceTable, View, Waiting, wait_in_silence
from tailrace.source.postgres._claims import require_names, require_signals, require_usable
from tailrace.source.postgres._continuity import continued, restart
from tailrace.source.postgres._offsets import PostgresOffsets
from tailrace.source.postgres._removal import INSERTS, drop, leftovers, new_name
from tailrace.source.postgres.catalog import mark
from tailrace.source.postgres.catalog.chosen_columns import as_text, require_columns
from tailrace.source.postgres.catalog.definition import Definition as DefinitionOf
from tailrace.source.postgres.catalog.definition_reader import dated_state, read_chosen, types_of
from tailrace.source.postgres.catalog.problems import source_tables
from tailrace.source.postgres.catalog.publication import Kind, publications, publish, sent_tables
from tailrace.source.postgres.catalog.publication_filters import Sent, as_sent, sent_by
from tailrace.source.postgres.catalog.signal_table import SignalTable, without_signals
from tailrace.source.postgres.catalog.tables import (
    TableInfo,
    append_only,
    find_tables,
    list_tables,
    measured,
    schema_of,
)
from tailrace.source.postgres.codec import PostgresCodec
from tailrace.source.postgres.doctor import doctor
from tailrace.source.postgres.rows import chunks as rows_chunks
from tailrace.source.postgres.rows import earlier_writers, key_ranges, views
from tailrace.source.postgres.rows.standby import exact_snapshot, is_standby
from tailrace.source.postgres.rows.watermarks import watermarks_of
from tailrace.source.postgres.server import address
from tailrace.source.postgres.server.connection import IdleConnections, KeptConnection, explained, one_state, session
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.server.identity import Identity, reached_soon, require_streaming, wal_position
from tailrace.source.postgres.server.lock_waits import Waiter
from tailrace.source.postgres.stream import capture
from tailrace.source.postgres.stream.protocol import StreamOptions
from tailrace.source.postgres.stream.slot import (
    create_slot,
    drop_slot,
    exported_snapshot,
    find_ready_slot,
    require_slot,
)

LOCK_SECONDS = 3.0
"""How long a window waits for a table that is locked."""


class PostgresSource(PostgresCodec, Source):
    """One database of a Postgres server.

    `slot` and `publication` are those a person names, to be used and left alone; without them the source makes its own.
    `append_only` are patterns for tables whose rows nothing identifies and which are copied by their inserts. `as_text`
    are patterns for columns that are copied as Postgres's text, whatever their type, or with a type after them as that:
    `amount=decimal(38,10)` (`_type_choices`). `signal_table` is sent whether or not it is copied, and copied only where
    a pattern gives its whole name. Windows write their `watermarks` to it, if any. `stream` has fields of
    `StreamOptions`. With `generated`, our own publication sends stored generated columns, too.
    """

    def __init__(  # noqa: PLR0913, PLR0917  each is an option
        self,
        dsn: str,
        slot: str | None = None,
        publication: str | None = None,
        append_only: Sequence[str] = (),
        signal_table: str | None = None,
        watermarks: str = Watermarking.READ_ONLY,
        as_text: Sequence[str] = (),
        stream: Mapping[str, Any] | None = None,
        generated: bool = False,
    ) -> None:
        self._dsn = dsn
        self._slot = slot
        self._publication = publication
        self._append_only = list(append_only)
        self._as_text = list(as_text)
        self._signals = SignalTable.named(signal_table) if signal_table is not None else None
        self._watermarking = Watermarking(watermarks)
        self._watermarks = watermarks_of(self._watermarking, self._signals)
        self._stream = StreamOptions(**(stream or {}))
        self._generated = generated
        self._kept = KeptConnection(dsn)
        self._idle = IdleConnections(dsn)
        self._history = FIRST
        self._bridged: int | None = None
        """The gap for which the slot was made again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.arguments.values())

    @property
    def arguments(self) -> Mapping[str, Any]:
        return {
            "dsn": self._dsn,
            "slot": self._slot,
            "publication": self._publication,
            "append_only": self._append_only,
            "signal_table": str(self._signals.table) if self._signals is not None else None,
            "watermarks": self._watermarking.value,
            "as_text": self._as_text,
            "stream": asdict(self._stream),
            "generated": self._generated,
        }

    def watermarked(self, how: Watermarking) -> Self:
        return self if how is self._watermarking else type(self)(**{**self.arguments, "watermarks": how})

    def claimed(self, claim: Claim) -> Self:
        if claim["owns_publication"] or self._publication is not None:
            return self
        found = type(self)(**{**self.arguments, "publication": claim["publication"]})
        found._history = History.of(claim)
        return found

    def reserved(self) -> frozenset[str]:
        return frozenset(f"slot {self._slot} at {server}" for server in address.servers(self._dsn) if self._slot)

    def identify(self) -> Mapping[str, str]:
        return self._identity().log_identity

    def claim(self, stored: Claim | None) -> Claim:
        identity = self._identity()
        if stored is not None:
            self._history = History.of(stored)
            require_names(stored, self._slot, self._publication, needs_inserts=bool(self._append_only))
            self._require_signals(stored)
            return stored
        with session(self._dsn) as conn:
            require_usable(conn, self._slot, self._publication, needs_inserts=bool(self._append_only))
        name = new_name(identity.database)
        needs_inserts = bool(self._append_only or self._signals) and self._publication is None
        claim = {
            "slot": self._slot or name,
            "publication": self._publication or name,
            "owns_slot": self._slot is None,
            "owns_publication": self._publication is None,
            "inserts": f"{name}{INSERTS}" if needs_inserts else None,
            "timeline": identity.timeline,
            "system": identity.system_identifier,
        }
        self._require_signals(claim)
        return claim

    def tables(
        self, include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
    ) -> list[SourceTable]:
        exclude = without_signals(self._signals, include, exclude)
        with session(self._dsn) as conn, one_state(conn):
            sent = sent_by(conn, self._publication, generated=self._generated)
            found = self._as_chosen(list_tables(conn, include, exclude, known, by_leaves=sent.by_leaves), sent)
            require_columns(found, self._as_text, known)
            return source_tables(conn, found)

    def describe(self, tables: Sequence[TableId]) -> dict[TableId, SourceTable]:
        with self._idle.session() as conn, one_state(conn):
            found = source_tables(conn, self._found(conn, tables))
        return {each.table: each for each in found}

    def define(self, claim: Claim, known: Mapping[TableId, Definition | None]) -> dict[TableId, TableSchema]:
        with self._idle.session() as conn, dated_state(conn) as at:
            infos = self._found(conn, list(known))
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
        # Updates of a table of which only inserts are sent show in the server's statistics alone.
        return None if self._append_only else self._kept.ask(mark.catalog_mark)

    def unsent(self, claim: Claim, tables: Sequence[TableId]) -> set[TableId]:
        with session(self._dsn) as conn, one_state(conn):
            return set(tables) - sent_tables(conn, claim, self._found(conn, tables))

    def prepare(
        self,
        claim: Claim,
        tables: Sequence[TableId],
        resume: SourcePosition | None,
        waiting: Waiting = wait_in_silence,
        *,
        keeps_others: bool = False,
    ) -> Prepared:
        slot = claim["slot"]
        done = []
        waiter = Waiter(self._kept, waiting)
        with session(self._dsn) as conn:
            if resume is not None and claim.get("gap_from") == resume.ordinal:
                # What the slot has not sent us is lost anyway. Once: then capture reads from the next one.
                if self._bridged != resume.ordinal and claim["owns_slot"] and drop_slot(conn, slot):
                    done.append(f"slot {slot}, which had lost changes, dropped")
                self._bridged = resume.ordinal
            elif resume is not None:
                # What another process may have read from it is for capture to find out, which knows the log's end.
                require_slot(conn, slot, History.of(claim).lsn(resume.ordinal))
            infos = self._found(conn, tables)
            if self._signals is not None and self._signals.table not in tables:
                infos += self._signals.found(conn)
                tables = [*tables, *(info.table for info in infos if info.table == self._signals.table)]
            kind = Kind(generated=self._generated, keeps_others=keeps_others)
            published, refused = publish(conn, claim, tables, infos, waiter, kind)
            done += published
            # After the publication: what the slot holds is sent as the publication was at that point.
            if find_ready_slot(conn, slot, is_ours=claim["owns_slot"]) is None:
                made = create_slot(self._dsn, slot, waiter, failover=self._stream.failover)
                done.append(f"slot {slot} holds the WAL from {made} on")
        return Prepared(done, refused)

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        return continued(self._dsn, claim, None if end is None else end.ordinal)

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        again = restart(self._dsn, claim, end.ordinal)
        self._history = History.of(again)
        return again

    def drop(self, claim: Claim) -> list[str]:
        with session(self._dsn) as conn:
            return drop(conn, claim)

    def leftovers(self, name: str | None = None) -> Leftovers:
        with session(self._dsn) as conn:
            return leftovers(conn, name)

    def capture(self, claim: Claim, log: LogWriter, control: CaptureControl) -> None:
        names = claim["slot"], publications(claim), claim["timeline"], History.of(claim), claim.get("skip_to") or 0
        stream = capture.Stream(self._dsn, *names, tuple(self._as_text), self._stream)
        capture.run(stream, log, control)

    def offsets(self) -> PostgresOffsets:
        return PostgresOffsets(self._dsn, self._slot, self._publication)

    def now(self) -> SourcePosition:
        return self._history.position(self._kept.ask(reached_soon))

    def lag_bytes(self, ordinal: int) -> int | None:
        try:
            return max(0, self._history.position(self._kept.ask(wal_position)).ordinal - ordinal)
        except TransientError:
            return None

    @contextmanager
    def snapshot(self, waiting: Waiting = wait_in_silence) -> Iterator[SnapshotPoint]:
        if self._kept.ask(is_standby):
            with exact_snapshot(self._dsn, waiting, self._history) as point:
                yield point
            return
        name = f"tailrace_snapshot_{secrets.token_hex(4)}"
        waiter = Waiter(self._kept, waiting)
        with explained(self._dsn), exported_snapshot(self._dsn, name, waiter) as exported:
            yield SnapshotPoint(self._history.position(exported.lsn), exported.name)

    def window(self, waiting: Waiting = wait_in_silence) -> AbstractContextManager[WindowPoint]:
        self._idle.keep()
        return views.window(self._dsn, waiting, self._watermarks, self._history)

    def settle(self, tables: Sequence[TableId], waiting: Waiting = wait_in_silence) -> None:
        with session(self._dsn) as conn:
            relations = [info.relation for info in self._found(conn, tables)]
        earlier_writers.settle(self._kept, relations, waiting)

    def view(self) -> View:
        return self._history.dated(self._kept.ask(views.read_view))

    def chunks(self, table: SourceTable, bytes_max: int, readers: int = 1) -> list[rows_chunks.BlockChunk]:
        with session(self._dsn) as conn:
            return rows_chunks.plan(measured(conn, table.detail), bytes_max, readers)

    def last_key(self, point: SnapshotPoint, table: SourceTable, order: Sequence[str] = ()) -> Cursor | None:
        with rows_chunks.reader(self._idle, point.token, table.table, table.table, LOCK_SECONDS) as conn:
            return key_ranges.last_key(conn, key_ranges.key_order(conn, table, order))

    def key_chunks(
        self,
        point: SnapshotPoint,
        table: SourceTable,
        between: tuple[Cursor | None, Cursor | None],
        rows: int,
        count: int,
        order: Sequence[str] = (),
    ) -> list[key_ranges.KeyChunk]:
        with rows_chunks.reader(self._idle, point.token, table.table, table.table, LOCK_SECONDS) as conn:
            return key_ranges.plan(conn, key_ranges.key_order(conn, table, order), between, rows, count)

    def chunk_of_keys(self, table: SourceTable, keys: pa.Table) -> key_ranges.KeyList:
        with session(self._dsn) as conn:
            return key_ranges.of_keys(key_ranges.key_order(conn, table), keys, table.schema)

    def read_chunk(self, point: SnapshotPoint, chunk: rows_chunks.Chunk, schema: TableSchema) -> Iterator[Any]:
        # A state for seconds is not held for a lock that may take hours. One that is held for hours is worth waiting.
        seconds = LOCK_SECONDS if isinstance(point, WindowPoint) else None
        return rows_chunks.read(self._idle, point.token, chunk, schema, seconds)

    def examine(self, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
        with session(self._dsn) as conn:
            chosen = tuple(self._append_only), self._signals, self._watermarks, tuple(self._as_text), self._stream
            named = doctor.Named(self._slot, self._publication, *chosen, generated=self._generated)
            return doctor.examine(conn, include, without_signals(self._signals, include, exclude), named)

    def _found(self, conn: psycopg.Connection, tables: Sequence[TableId]) -> list[TableInfo]:
        with one_state(conn):
            sent = sent_by(conn, self._publication, generated=self._generated)
            return self._as_chosen(find_tables(conn, set(tables), by_leaves=sent.by_leaves), sent)

    def _as_chosen(self, infos: Sequence[TableInfo], sent: Sent) -> list[TableInfo]:
        return as_sent(as_text(append_only(infos, self._append_only), self._as_text), sent)

    def _identity(self) -> Identity:
        with session(self._dsn) as conn:
            return require_streaming(conn, self._dsn)

    def _require_signals(self, claim: Claim) -> None:
        if self._signals is not None:
            with session(self._dsn) as conn:
                require_signals(conn, claim, self._signals, self._watermarks)
