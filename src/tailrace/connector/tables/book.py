"""The book of tables: every table's record, durable before it takes effect, told to those who watch."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace

from tailrace.connector.events import TableChanged
from tailrace.connector.tables.decisions import failed
from tailrace.connector.tables.voucher import Vouching
from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.source.door.values import Definition


class TableBook:
    """Written by the connector's thread, read by any."""

    def __init__(
        self,
        home: LakeHome,
        vouching: Vouching,
        is_same_shape: Callable[[Definition, Definition], bool],
        tell: Callable[[TableChanged], None],
    ) -> None:
        """`is_same_shape` is the source's."""
        self._home = home
        self._vouching = vouching
        self._is_same_shape = is_same_shape
        self._tell = tell
        self._records = home.tables.load()

    @property
    def records(self) -> dict[TableId, TableRecord]:
        return dict(self._records)

    def __getitem__(self, table: TableId) -> TableRecord:
        return self._records[table]

    def digest(self) -> str:
        """Changes whenever a record changes."""
        return self._home.tables.digest()

    def of_state(self, *states: TableState) -> list[TableId]:
        return [table for table, record in self._records.items() if record.state in states]

    def resume(self) -> SourcePosition | None:
        """Where the log ends; None when nothing has been logged and no copy relies on what will be."""
        log = self._home.log
        ordinal = LogReader(log).head.ordinal if (log / "head").exists() else 0
        has_copies = any(r.relation or r.state is TableState.SNAPSHOTTING for r in self._records.values())
        return SourcePosition(ordinal) if ordinal or has_copies else None

    def set(self, records: Mapping[TableId, TableRecord]) -> None:
        """Durable when this returns."""
        named = {table: self._dated(table, self._with_lake(record)) for table, record in records.items()}
        changed = {table: record for table, record in named.items() if self._records.get(table) != record}
        if not changed:
            return
        after = {**self._records, **changed}
        self._home.tables.store(after)
        self._records = after
        for table, record in changed.items():
            self._tell(TableChanged(table, record))

    def _with_lake(self, record: TableRecord) -> TableRecord:
        """A hint that can be pasted names this lake."""
        if record.hint is None:
            return record
        return replace(record, hint=record.hint.replace("LAKE", shlex.quote(str(self._home.lake))))

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        """A table had to stop, by this error."""
        self.set({table: failed(table, self._records[table], error)})

    def table_followed(self, table: TableId, definition: Definition | None, version: int) -> None:
        """A live table has the shape of this definition, from a version of the lake's on."""
        old = self._records[table]
        record = replace(old, definition=definition)
        if old.definition is not None and definition is not None and not self._is_same(old.definition, definition):
            record = replace(record, ended=(*old.ended, Ended(old.copy, self._vouching.upto, version)))
        self.set({table: record})

    def _is_same(self, old: Definition, new: Definition) -> bool:
        return old == new or self._is_same_shape(old, new)

    def _dated(self, table: TableId, record: TableRecord) -> TableRecord:
        """With where the table's copy ends, if it is given up. Stored with what gives it up, so nothing can be vouched
        for under the next one before."""
        old = self._records.get(table)
        if old is None:
            return record
        ended = max(old.ended, record.ended, key=len)
        if old.state is TableState.LIVE and (record.state is not TableState.LIVE or record.copy != old.copy):
            ended = (*ended, Ended(old.copy, self._vouching.upto, reason=record.reason))
        if len(ended) > len(old.ended) and (oldest := self._home.cuts.oldest()) is not None:
            # What ended before the oldest cut is laid over nothing any more.
            ended = tuple(each for each in ended if each.upto >= oldest.position.ordinal)
        return replace(record, ended=ended)
