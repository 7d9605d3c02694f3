"""The tables of one cut, each opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession

from tailrace.changes.shape import require_same
from tailrace.changes.tail import read_tail
from tailrace.errors import DefiniteError
from tailrace.lake.door import LakeTable
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord
from tailrace.read.overlay import followed, overlay
from tailrace.source.kinds import source_class


class CutTables(Mapping[str, DataFrame]):
    """DataFrames by `namespace.name`. One thread."""

    def __init__(self, spark: SparkSession, home: LakeHome, reader: LogReader, base: PublishedCut, seq: int) -> None:
        record = home.source()
        assert record is not None
        self._spark, self._home, self._reader, self._base, self._seq = spark, home, reader, base, seq
        self._source = source_class(record.kind)
        self._format = format_named(record.format)
        self._records = {str(table): (table, each) for table, each in home.tables.load().items()}
        self._opened: dict[str, DataFrame] = {}

    @property
    def known(self) -> list[TableId]:
        """Every table that the lake knows of, also those that this cut cannot show."""
        return [table for table, _ in self._records.values()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._base.tables)

    def __len__(self) -> int:
        return len(self._base.tables)

    def __getitem__(self, name: str) -> DataFrame:
        """A definite error, with the reason, for a table that this cut cannot show. KeyError for an unknown one."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def _open(self, name: str) -> DataFrame:
        if name not in self._records:
            raise KeyError(name)
        table, record = self._records[name]
        if name not in self._base.tables:
            raise self._missing(name, record)
        in_cut = self._base.tables[name]
        # Another copy of the table may have another relation; then the newest one of that name counts.
        relation = record.relation if record.copy == in_cut.copy else None
        tail = read_tail(self._reader, table, (self._base.seq, self._seq), self._source.decode, relation)
        stored = self._format.table(self._spark, self._home.table_path(table))
        self._require(stored, name)
        frame = stored.open(in_cut.version, keep=self._base.seq < self._seq)
        if tail is None:
            return frame
        if record.copy == in_cut.copy:
            require_same(tail.shape, record.definition, self._source.why_copy)
        start = followed(frame.limit(0) if tail.truncated else frame, tail.schema)
        return overlay(self._spark, start, tail.states, tail.schema)

    def _require(self, stored: LakeTable, name: str) -> None:
        """A definite error unless the lake has the very version that the cut names. Where the lake no longer knows its
        stamp, its number must do."""
        named = self._base.tables[name]
        found = stored.version(named.version)
        if found is None or (found.stamp is not None and not found.stamp.is_of(named)):
            message = f"the version of table {name} that this cut names is gone from the lake"
            raise DefiniteError(message, "read a later cut; tailrace sync makes one", name)

    def _missing(self, name: str, record: TableRecord) -> DefiniteError:
        """Why the cut does not have the table, and how to read what there is of it."""
        reason = f": {record.reason}" if record.reason else ""
        last = self._home.cuts.newest(lambda cut: name in cut.tables and cut.seq <= self._seq)
        hint = record.hint
        if last is not None:
            older = f"its last good state: --as-of {self._source.format(last.position)}"
            hint = f"{hint}; {older}" if hint else older
        return DefiniteError(f"table {name} is {record.state}{reason}", hint, name)
