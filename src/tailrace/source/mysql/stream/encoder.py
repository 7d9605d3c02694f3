"""The binlog's events as log records.

Pure: the bytes of events in, records out. The log's transactions are the server's, one for one, in the order of their
commits, each with its commit's place and name:

    GTID  BEGIN  table map  rows …  XID                     a transaction; MariaDB has no BEGIN of its own
    GTID  statement                                         one that defines or truncates tables, or does nothing
    GTID  XA START  rows …  XA END  prepared … GTID  XA COMMIT or XA ROLLBACK       an end that comes later
    payload { BEGIN … XID }                                 compressed

What changed rows and cannot be read is never left out in silence: it marks its table (`Kind.UNSENT`), or, where it
cannot be told which table it was, it ends the stream with a `GapError`, because all tables have to be copied again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from tailrace.errors import GapError
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.source.mysql.events.beginnings import Beginning, read_beginning
from tailrace.source.mysql.events.event import Event, EventKind, unreadable
from tailrace.source.mysql.events.queries import Statement, Verb, read_query, read_statement
from tailrace.source.mysql.events.row_events import is_rows
from tailrace.source.mysql.events.transaction_payload import events_inside
from tailrace.source.mysql.stream.places import BinlogPlace
from tailrace.source.mysql.stream.reading import AGAIN, BinlogReading, Met
from tailrace.source.mysql.stream.record_parts import RecordParts
from tailrace.source.mysql.stream.row_records import ROLLED_BACK, RowRecords
from tailrace.source.mysql.stream.transactions import (
    OpenTransaction,
    commit_detail,
    name_in_beginning,
    name_in_event,
    name_in_statement,
    prepared_xid,
)

_BEGINNINGS = (EventKind.GTID, EventKind.ANONYMOUS_GTID, EventKind.GTID_TAGGED, EventKind.MARIADB_GTID)
_AS_STATEMENT = (EventKind.INTVAR, EventKind.RAND, EventKind.USER_VAR, EventKind.BEGIN_LOAD, EventKind.EXECUTE_LOAD)


class BinlogEncoder:
    """Remembers the open transaction and the tables of the file at hand; never a row. For one thread."""

    def __init__(self, begin: BinlogPlace, base: str, prepared: Collection[int]) -> None:
        """What follows `begin` is encoded, in files of this base. `prepared` are the numbers of the transactions that
        the log has as prepared."""
        self.records = RecordParts()
        self._reading = BinlogReading(begin, base)
        self._prepared = set(prepared)
        self._rows = RowRecords(self.records)
        self._beginning: tuple[Beginning, int, int] | None = None
        """One that nothing has followed yet, its ordinal, and its header's second."""
        self._open: OpenTransaction | None = None
        self._takers: dict[int, Callable[[Event, int], None]] = {
            **dict.fromkeys(_BEGINNINGS, self._begin),
            **dict.fromkeys((EventKind.QUERY, EventKind.QUERY_COMPRESSED), self._take_query),
            **dict.fromkeys(_AS_STATEMENT, self._take_as_statement),
            EventKind.TABLE_MAP: self._announce,
            EventKind.XID: self._take_xid,
            EventKind.XA_PREPARE: self._take_prepare,
            EventKind.TRANSACTION_PAYLOAD: self._take_payload,
            EventKind.INCIDENT: self._take_incident,
        }

    @property
    def at(self) -> BinlogPlace:
        """Everything before has been read."""
        return self._reading.at

    @property
    def is_inside(self) -> bool:
        """Whether a transaction has begun that has not ended."""
        return self._open is not None or self._beginning is not None

    def take(self, data: bytes) -> None:
        """One event, as it was sent."""
        begin = self.at.ordinal
        met, event = self._reading.read(data)
        match met:
            case Met.EVENT:
                self._take_event(event, begin)
            case Met.FILE:
                self._rows.begin_file()
            case Met.NEXT_FILE:
                self._abandon()
                self._pause()
            case Met.NOTHING_MORE:
                self._pause()

    def _take_event(self, event: Event, begin: int) -> None:
        if is_rows(event.kind):
            self._rows.take(event, begin, self._enter(event, begin))
        elif event.kind in self._takers:
            self._takers[event.kind](event, begin)
        elif not event.is_known and not event.may_be_ignored:
            raise unreadable(event.kind, "events of this kind are not known here")

    def _pause(self) -> None:
        """All that was committed before this place has been sent."""
        if not self.is_inside:
            self.records.add(self.at.ordinal, 0, Kind.KEEPALIVE)

    def _abandon(self) -> None:
        """A transaction whose end the server has lost did not happen."""
        if self._open is not None:
            self.records.add(self.at.ordinal, self._open.xid, Kind.ROLLBACK)
            self._rows.shapes.forget()
        self._open = self._beginning = None

    def _announce(self, event: Event, ordinal: int) -> None:
        self._enter(event, ordinal)
        self._rows.announce(event, is_mariadb=self._reading.is_mariadb)

    def _begin(self, event: Event, ordinal: int) -> None:
        if self.is_inside:
            raise unreadable(event.kind, "it begins a transaction inside another one")
        self._beginning = read_beginning(event), ordinal, event.timestamp

    def _enter(self, event: Event, ordinal: int, xa: str = "") -> OpenTransaction:
        """The open transaction, which begins now unless it has."""
        if self._open is not None:
            return self._open
        if self._beginning is None:
            raise unreadable(event.kind, "it belongs to no transaction")
        beginning, begin, second = self._beginning
        xa = xa or (name_in_beginning(beginning.prepared) if beginning.prepared else "")
        xid = prepared_xid(xa) if xa else begin
        time_us = beginning.time_us or second * 1_000_000
        self._open = OpenTransaction(xid, begin, beginning.gtid, time_us, xa)
        self.records.add(begin, xid, Kind.BEGIN)
        return self._open

    def _commit(self, event: Event, ordinal: int) -> None:
        transaction = self._enter(event, ordinal)
        self._finish(transaction, transaction.xid)

    def _finish(self, transaction: OpenTransaction, xid: int) -> None:
        """The place of a commit is where it ends: there the next one may begin."""
        end = self.at.ordinal
        position = SourcePosition(end, transaction.time_us, commit_detail(transaction))
        self.records.add(end, xid, Kind.COMMIT, Commit(position, end).to_bytes())
        self._open = self._beginning = None

    def _take_xid(self, event: Event, ordinal: int) -> None:
        self._commit(event, ordinal)

    def _take_prepare(self, event: Event, ordinal: int) -> None:
        name, is_one_phase = name_in_event(event)
        transaction = self._enter(event, ordinal, name)
        if transaction.xa != name:
            raise unreadable(event.kind, "it prepares another transaction than has begun")
        if is_one_phase:
            self._finish(transaction, transaction.xid)
            return
        self.records.add(self.at.ordinal, transaction.xid, Kind.PREPARE, name.encode())
        self._prepared.add(transaction.xid)
        # Others may commit before it does: what it told of shapes does not count for them.
        self._rows.shapes.forget()
        self._open = self._beginning = None

    def _take_payload(self, event: Event, ordinal: int) -> None:
        for each in events_inside(event):
            self._take_event(each, ordinal)

    def _take_incident(self, event: Event, ordinal: int) -> None:
        raise GapError(f"the server says that its binlog has lost events before {self.at}", AGAIN)

    def _take_as_statement(self, event: Event, ordinal: int) -> None:
        raise GapError(
            f"a session changed rows at {self.at} as statements, which do not tell the rows",
            "set global binlog_format = ROW, and see that no session sets another one; then: " + AGAIN,
        )

    def _take_query(self, event: Event, ordinal: int) -> None:
        query = read_query(event)
        statement = read_statement(query)
        match statement.verb:
            case Verb.BEGIN:
                self._enter(event, ordinal)
            case Verb.XA_START:
                self._enter(event, ordinal, name_in_statement(statement.xa))
            case Verb.COMMIT:
                self._commit(event, ordinal)
            case Verb.ROLLBACK:
                self._roll_back(event, ordinal)
            case Verb.XA_COMMIT | Verb.XA_ROLLBACK:
                self._end_prepared(event, ordinal, statement)
            case Verb.SAVEPOINT | Verb.XA_END:
                self._enter(event, ordinal)
            case Verb.ROWS:
                self._take_as_statement(event, ordinal)
            case _:
                self._define(event, ordinal, statement, query.sql)

    def _roll_back(self, event: Event, ordinal: int) -> None:
        """Of a transaction that changed tables without transactions, which keep what it did to them."""
        transaction = self._enter(event, ordinal)
        for table in transaction.touched.values():
            self._rows.mark(ordinal, transaction, table, ROLLED_BACK)
        self._finish(transaction, transaction.xid)

    def _end_prepared(self, event: Event, ordinal: int, statement: Statement) -> None:
        if self._beginning is None:
            raise unreadable(event.kind, "it ends a prepared transaction inside another one")
        beginning, begin, second = self._beginning
        xid = prepared_xid(name_in_statement(statement.xa))
        if xid not in self._prepared:
            if statement.verb is Verb.XA_COMMIT:
                message = f"a transaction that was prepared before the log began was committed at {self.at}"
                raise GapError(message, AGAIN)
            self._commit(event, ordinal)
            return
        self._prepared.discard(xid)
        if statement.verb is Verb.XA_ROLLBACK:
            self.records.add(ordinal, xid, Kind.ROLLBACK)
            self._rows.shapes.forget()
            # Its end is a transaction of its own, which did nothing.
            self._commit(event, ordinal)
            return
        time_us = beginning.time_us or second * 1_000_000
        self._finish(OpenTransaction(xid, begin, beginning.gtid, time_us), xid)

    def _define(self, event: Event, ordinal: int, statement: Statement, sql: str) -> None:
        """What defines or truncates tables, or may: a message tells which, for whoever looks at the definitions."""
        is_inside = self._open is not None or (self._beginning is not None and self._is_group(self._beginning[0]))
        transaction = self._enter(event, ordinal)
        if statement.verb is not Verb.OTHER:
            tables, databases = [str(table) for table in statement.tables], list(statement.databases)
            told = {"verb": statement.verb.name.lower(), "tables": tables, "databases": databases, "sql": sql}
            self.records.add(ordinal, transaction.xid, Kind.MESSAGE, json.dumps(told).encode())
        if statement.verb is Verb.TRUNCATE:
            for table in statement.tables:
                self.records.add(ordinal, transaction.xid, Kind.TRUNCATE, b"", self._rows.shapes.relation(table))
        if not is_inside:
            self._finish(transaction, transaction.xid)

    def _is_group(self, beginning: Beginning) -> bool:
        """Whether an end follows. MySQL says so with a BEGIN, MariaDB in the beginning itself."""
        return self._reading.is_mariadb and not beginning.is_standalone
