"""Cuts to read: all tables of a lake as of one commit of the source.

A commit that has been published is read from the lake alone. Any other is the newest published cut before it, with
the log's changes up to it laid over. Both sides never change once written, so a cut stays what it is however long it
is used. A table is opened when it is first asked for, and a table in trouble troubles only those who ask for it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from tailrace.errors import DefiniteError
from tailrace.lake.frames import quote
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.read._tables import CutTables
from tailrace.read.names import TableNames
from tailrace.source.door import Source
from tailrace.source.kinds import source_class

TAIL_BYTES_MAX = 8 << 20
"""To open a newer base takes seconds once; this many changes cost a read a fraction of one."""

_last_base: WeakKeyDictionary[SparkSession, dict[str, PublishedCut]] = WeakKeyDictionary()
"""By the log's id, which a lake that is built again in the same place does not have."""

Point = SourcePosition | datetime


@dataclass(frozen=True)
class Cut:
    """All tables as of one commit."""

    seq: int
    position: SourcePosition
    text: str
    """The position as the source writes it."""
    commit_time: datetime
    tables: CutTables
    """DataFrames by `namespace.name`; those in error or being copied are not there, and say why when asked for."""
    spark: SparkSession

    def sql(self, query: str) -> DataFrame:
        """Run Spark SQL over this cut's tables, named as in the source. Opens those that the query names. A definite
        error for a name that several tables have."""
        names = TableNames(self.tables.known)
        named = names.read(query)
        if named is None:
            # Spark understands more than we do, and has the better error message.
            self.register()
            return self.spark.sql(query)
        for table in named.tables:
            self._register(table, names.views(table))
        return self.spark.sql(named.text)

    def register(self) -> None:
        """Make all tables known to the session as temporary views: `namespace.name` in backticks, and `name` alone
        where no other table has it, in any case. A table that cannot be shown is not there, not even as an older cut's
        view."""
        names = TableNames(self.tables.known)
        shown = set()
        for table in self.tables.known:
            with suppress(DefiniteError):
                self._register(table, names.views(table))
                shown |= {view.lower() for view in names.views(table)}
        for view in names.all - shown:
            self.spark.catalog.dropTempView(view)

    def _register(self, table: TableId, views: list[str]) -> None:
        frame = self.tables[str(table)]
        for view in views:
            frame.createOrReplaceTempView(quote(view))


def cut(
    spark: SparkSession,
    lake: str | Path,
    *,
    published: bool = False,
    as_of: str | Point | None = None,
    register: bool = True,
) -> Cut:
    """One cut: the newest commit, the last published one, or the state as of a source position or a time.

    With `register`, its tables are the session's temporary views.
    """
    home = LakeHome.find(Path(lake))
    record = home.source()
    assert record is not None
    if not home.log.is_dir():
        raise DefiniteError(f"{lake} has no log yet", "run tailrace sync first")
    reader, source = LogReader(home.log), source_class(record.kind)
    point = parse_point(as_of, source) if isinstance(as_of, str) else as_of
    seq = None if published else _wanted_seq(reader, point, source)
    base = home.cuts.newest(lambda cut: (seq is None or cut.seq <= seq) and _is_at_or_before(cut, point))
    if base is None:
        raise DefiniteError(
            "nothing has been published yet" if as_of is None else f"the lake has no cut as old as {as_of}",
            "wait until the snapshot is done" if as_of is None else "ask for a later point",
        )
    if seq is not None:
        base = _convenient_base(spark, reader, base, seq)
    if point is not None and seq == base.seq:
        base = _with_tables_that_left(home, base)
    found = _assemble(spark, home, reader, base, base.seq if seq is None else seq)
    if register:
        found.register()
    return found


def _with_tables_that_left(home: LakeHome, base: PublishedCut) -> PublishedCut:
    """With the tables of earlier cuts at the same commit: one that left there had its last good state there."""
    tables = dict(base.tables)

    def collect(cut: PublishedCut) -> bool:
        if cut.seq == base.seq and cut.position <= base.position:
            for name, table in cut.tables.items():
                tables.setdefault(name, table)
        return cut.seq < base.seq

    home.cuts.newest(collect)
    return replace(base, tables=tables)


def _convenient_base(spark: SparkSession, reader: LogReader, newest: PublishedCut, seq: int) -> PublishedCut:
    """The cut this session read last, while its tail is short; else the newest.

    Any published cut before `seq` with the same copies of the same tables gives the same rows. To open a version that
    was just published takes Spark longer than to lay a few thousand more changes over one that is open.
    """
    used = _last_base.setdefault(spark, {}).get(reader.id)
    if (
        used is not None
        and used.seq <= newest.seq
        and _copies(used) == _copies(newest)
        and used.seq + 1 >= reader.oldest_seq
        and reader.bytes_between(used.seq, seq) <= TAIL_BYTES_MAX
    ):
        return used
    _last_base[spark][reader.id] = newest
    return newest


def _copies(cut: PublishedCut) -> dict[str, int]:
    return {name: table.copy for name, table in cut.tables.items()}


def _is_at_or_before(cut: PublishedCut, point: Point | None) -> bool:
    """A snapshot's cut contains transactions the log never saw: it is no older than itself."""
    if isinstance(point, datetime):
        return cut.position.time_us <= point.timestamp() * 1_000_000
    return point is None or cut.position <= point


def _wanted_seq(reader: LogReader, point: Point | None, source: type[Source]) -> int:
    if point is None:
        return reader.head.seq
    if isinstance(point, datetime):
        return reader.seq_at_time(int(point.timestamp() * 1_000_000))
    if point.ordinal > reader.head.ordinal:
        end = source.format(SourcePosition(reader.head.ordinal))
        raise DefiniteError(
            f"the log ends at {end}, before {source.format(point)}", "wait, or ask for an earlier point"
        )
    return reader.seq_at(point.ordinal)


def parse_point(text: str, source: type[Source]) -> Point:
    """A source position (`0/16B3748`) or a time (ISO, UTC unless it says otherwise)."""
    try:
        return source.parse(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        example = source.format(SourcePosition(0x16B3748))
        raise DefiniteError(
            f"{text!r} is neither a position nor a time", f"write {example} or '2026-01-31 12:00:00'"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _assemble(spark: SparkSession, home: LakeHome, reader: LogReader, base: PublishedCut, seq: int) -> Cut:
    record = home.source()
    assert record is not None
    source = source_class(record.kind)
    if seq > base.seq and base.seq + 1 < reader.oldest_seq:
        start = source.format(base.position)
        raise DefiniteError(f"the log no longer has the changes after {start}", "ask for a published cut")
    position = base.position
    if seq > base.seq:
        position = max(position, reader.position_of(seq))
    time = datetime.fromtimestamp(position.time_us / 1_000_000, UTC)
    tables = CutTables(spark, home, reader, base, seq)
    return Cut(seq, position, source.format(position), time, tables, spark)
