"""A lake made by hand of a scripted source: log, tables and a cut are real, and no connector has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.doors import feed
from tests.doors.capturing import capturing
from tests.doors.history import Row
from tests.doors.scripted import ScriptedSource

from tailrace.lake import formats
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.source import kinds


class MadeLake:
    """Of all tables that the source has when it is made."""

    def __init__(self, path: Path, source: ScriptedSource, format_name: str = "parquet") -> None:
        kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
        formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
        self.source, self._format = source, formats.format_named(format_name)
        self.home = LakeHome.create(path)
        self._claim = source.claim(None)
        self.home.store_source(SourceRecord(source.identify(), self._claim, format_name))
        self._tables = [found.table for found in source.tables((), ())]
        source.prepare(self._claim, self._tables, None)

    def log(self) -> None:
        """Everything that the script has so far."""
        with capturing(self.source, self._claim, self.home.log) as captured:
            captured.catch_up()

    def publish(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """A cut at the log's end, whose tables have these rows, whatever the source has."""
        reader = LogReader(self.home.log)
        seq = reader.head.seq
        position = reader.position_of(seq)
        tables, records = {}, {}
        for table in self._tables:
            schema = self.source.describe([table])[table].schema
            draft = self._format.table(self.home.place_of(table)).copy(schema, Stamp(position, schema.relation, 1, seq))
            part = draft.write([feed.rows_of(rows[str(table)], schema)])
            tables[str(table)] = CutTable(draft.commit([part]), 1, seq)
            records[table] = TableRecord(
                TableState.LIVE, copy=1, relation=schema.relation, definition=schema.definition
            )
        self.home.tables.store(records)
        self.home.cuts.append(PublishedCut(seq, position, tables))

    def path_of(self, table: TableId) -> Path:
        return Path(self.home.place_of(table).address)
