"""Cuts to read: all tables of a lake as of one commit of the source.

A commit that has been published is read from the lake alone. Any other is the newest published cut
before it, with the log's changes up to it laid over. Both sides never change once written, so a cut
stays what it is however long it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from tailrace.connector.batch import read_tail
from tailrace.connector.home import LakeHome
from tailrace.connector.names import short_names, with_view_names
from tailrace.errors import DefiniteError
from tailrace.lake.evolve import added_columns, lake_columns
from tailrace.lake.opened import open_version
from tailrace.lake.overlay import overlay
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId

TAIL_BYTES_MAX = 8 << 20
"""To open a newer base takes seconds once; this many changes cost a read a fraction of one."""

_last_base: WeakKeyDictionary[SparkSession, dict[str, PublishedCut]] = WeakKeyDictionary()
"""By the log's id, which a lake that is built anew in the same place does not have."""


@dataclass(frozen=True)
class Cut:
    """All tables as of one commit."""

    seq: int
    lsn: Lsn
    commit_time: datetime
    tables: dict[str, DataFrame]
    """By `namespace.name`."""
    spark: SparkSession

    def sql(self, query: str) -> DataFrame:
        """Run Spark SQL over this cut's tables, named as in the source."""
        self.register()
        return self.spark.sql(with_view_names(query, set(self.tables)))

    def register(self) -> None:
        """Make the tables known to the session as temporary views: `namespace.name` in backticks, and
        `name` alone where no other namespace has it."""
        for name, frame in self.tables.items():
            frame.createOrReplaceTempView(f"`{name}`")
        for short, name in short_names(self.tables).items():
            self.tables[name].createOrReplaceTempView(f"`{short}`")


def cut(
    spark: SparkSession, lake: str | Path, *, published: bool = False, as_of: str | Lsn | datetime | None = None
) -> Cut:
    """Register the tables of one cut and return it: the newest commit, the last published one, or the
    state as of an LSN or a time."""
    home = LakeHome.find(Path(lake))
    if not home.log.is_dir():
        raise DefiniteError(f"{lake} has no log yet", "run tailrace sync first")
    reader = LogReader(home.log)
    point = parse_point(as_of) if isinstance(as_of, str) else as_of
    seq = None if published else _wanted_seq(reader, point)
    base = home.cuts.newest(lambda cut: (seq is None or cut.seq <= seq) and _is_at_or_before(cut, point))
    if base is not None and seq is not None:
        base = _convenient_base(spark, reader, base, seq)
    if base is None:
        raise DefiniteError(
            "nothing has been published yet" if as_of is None else f"the lake has no cut as old as {as_of}",
            "wait until the snapshot is done" if as_of is None else "ask for a later point",
        )
    found = _assemble(spark, home, reader, base, base.seq if seq is None else seq)
    found.register()
    return found


def _convenient_base(spark: SparkSession, reader: LogReader, newest: PublishedCut, seq: int) -> PublishedCut:
    """The cut this session read last, while its tail is short; else the newest.

    Any published cut before `seq` gives the same rows. To open a version that was just published
    takes Spark longer than to lay a few thousand more changes over one that is open.
    """
    used = _last_base.setdefault(spark, {}).get(reader.id)
    if (
        used is not None
        and used.seq <= newest.seq
        and used.versions.keys() == newest.versions.keys()
        and used.seq + 1 >= reader.oldest_seq
        and reader.bytes_between(used.seq, seq) <= TAIL_BYTES_MAX
    ):
        return used
    _last_base[spark][reader.id] = newest
    return newest


def _is_at_or_before(cut: PublishedCut, point: Lsn | datetime | None) -> bool:
    """A snapshot's cut contains transactions the log never saw: it is no older than itself."""
    if isinstance(point, datetime):
        return cut.time_us <= point.timestamp() * 1_000_000
    return point is None or cut.lsn <= point


def _wanted_seq(reader: LogReader, point: Lsn | datetime | None) -> int:
    if point is None:
        return reader.head.seq
    if isinstance(point, datetime):
        return reader.seq_at_time(int(point.timestamp() * 1_000_000))
    if point > reader.head.lsn:
        raise DefiniteError(f"the log ends at {reader.head.lsn}, before {point}", "wait, or ask for an earlier point")
    return reader.seq_at_lsn(point)


def parse_point(text: str) -> Lsn | datetime:
    """An LSN (`0/16B3748`) or a time (ISO, UTC unless it says otherwise)."""
    try:
        return Lsn.parse(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise DefiniteError(
            f"{text!r} is neither an LSN nor a time", "write 0/16B3748 or '2026-01-31 12:00:00'"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _assemble(spark: SparkSession, home: LakeHome, reader: LogReader, base: PublishedCut, seq: int) -> Cut:
    if seq > base.seq and base.seq + 1 < reader.oldest_seq:
        raise DefiniteError(f"the log no longer has the changes after {base.lsn}", "ask for a published cut")
    lsn, time_us = base.lsn, base.time_us
    if seq > base.seq:
        row = reader.transactions(seq - 1, seq)
        lsn, time_us = Lsn(row.column("commit_lsn")[0].as_py()), row.column("commit_time_us")[0].as_py()
    tables = dict(_tables(spark, home, reader, base, seq))
    return Cut(seq, lsn, datetime.fromtimestamp(time_us / 1_000_000, UTC), tables, spark)


def _tables(
    spark: SparkSession, home: LakeHome, reader: LogReader, base: PublishedCut, seq: int
) -> Iterator[tuple[str, DataFrame]]:
    for name, version in base.versions.items():
        namespace, _, table = name.partition(".")
        identifier = TableId(namespace, table)
        path = str(home.table_path(identifier))
        tail = read_tail(reader, identifier, base.seq, seq)
        frame = open_version(spark, path, version, keep=base.seq < seq)
        if tail is not None:
            added_columns(lake_columns(frame.schema), tail.schema)
            start = frame.limit(0) if tail.truncated else frame
            frame = overlay(spark, start, tail.states, tail.schema.key)
        yield name, frame
