"""The apply loop's step: all tables to one transaction, then a cut.

There is no checkpoint. Each table's last commit says how far the table is, and a cut says how far
all are. After a crash between two tables' publishes one table is ahead: it goes on from its own
number, the others catch up, and the next cut is recorded when all are level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from tailrace.connector.batch import TableApplier
from tailrace.connector.home import LakeHome
from tailrace.errors import DefiniteError
from tailrace.lake.delta import Version
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId

CONSUMER = "lake"


class Applier:
    """All tables of one lake. One thread calls it; it publishes tables side by side."""

    def __init__(
        self, spark: SparkSession, home: LakeHome, tables: Sequence[tuple[TableId, int]], in_parallel: int
    ) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(in_parallel, thread_name_prefix="publish")
        self._tables = [TableApplier(spark, home.table_path(table), table, relation) for table, relation in tables]
        self._stamps: list[Stamp] = []

    def start(self, reader: LogReader, head_reaches: Callable[[Lsn], None], time_us: int) -> PublishedCut:
        """Find where each table is. Returns the newest cut, recording one if all tables stand level.

        `head_reaches` waits until the log is durable up to an LSN.
        """
        cut = self._home.cuts.newest()
        versions = list(self._pool.map(lambda table: table.delta.version(), self._tables))
        self._stamps = [version.stamp for version in versions if version.stamp]
        head_reaches(max(version.stamp.lsn for version in versions if version.stamp))
        stood = list(zip(self._tables, versions, strict=True))
        for table, version in stood:
            table.seq = self._seq_of(reader, table.table, version)
        self._require_log(reader)
        newest = max(table.seq for table in self._tables)
        if cut is None or newest > cut.seq or any(_is_newer(str(t.table), version, cut) for t, version in stood):
            # Some tables are ahead of the cut, by a snapshot or because we died before the cut was written.
            cut = self.advance(reader, newest, _snapshot_point(versions), time_us)
        return cut

    def let_go(self, reader: LogReader) -> None:
        """Acknowledge what lies before all tables' snapshots, while the log does not reach them: none of the tables
        needs it, and a log at its quota does not go on before it is deleted."""
        if reader.head.seq > 1 and all(stamp.seq is None and stamp.lsn > reader.head.lsn for stamp in self._stamps):
            # The last one stays: it shows that the log goes back to the snapshots.
            reader.acknowledge(CONSUMER, reader.head.seq - 1)

    @property
    def seq(self) -> int:
        """The transaction that every table has reached."""
        return min(table.seq for table in self._tables)

    def advance(self, reader: LogReader, upto: int, at: Lsn | None = None, time_us: int | None = None) -> PublishedCut:
        """Publish every table up to transaction `upto` and record the cut."""
        lsn, commit_time_us = at or Lsn(0), time_us or 0
        if upto > 0 and upto >= reader.oldest_seq:
            row = reader.transactions(upto - 1, upto)
            lsn = max(lsn, Lsn(row.column("commit_lsn")[0].as_py()))
            commit_time_us = time_us or row.column("commit_time_us")[0].as_py()
        list(self._pool.map(lambda table: table.apply(LogReader(reader.path), upto, lsn), self._tables))
        versions = {str(table.table): table.delta.newest_version() for table in self._tables}
        cut = PublishedCut(upto, lsn, commit_time_us, versions)
        self._home.cuts.append(cut)
        reader.acknowledge(CONSUMER, upto)
        return cut

    def _seq_of(self, reader: LogReader, table: TableId, version: Version) -> int:
        assert version.stamp is not None
        stamp = version.stamp
        # A cut vouches for tables that had nothing to publish in its batch.
        cut = self._home.cuts.newest(lambda cut: str(table) in cut.versions)
        vouched = cut.seq if cut is not None and cut.lsn >= stamp.lsn else 0
        if stamp.seq is not None:
            _require_same_history(reader, table, stamp.seq, stamp.lsn)
            return max(stamp.seq, vouched)
        # The snapshot shows exactly the commits before its LSN.
        seq = max(reader.seq_at_lsn(Lsn(stamp.lsn - 1)), vouched)
        if seq < reader.oldest_seq and reader.oldest_seq > 1 and not vouched:
            raise DefiniteError(
                f"{table}: the log no longer goes back to the table's snapshot at {stamp.lsn}",
                f"remove {self._home.table_path(table)} and run the same command to copy it anew",
            )
        return seq

    def _require_log(self, reader: LogReader) -> None:
        """The log must go on where the tables stand."""
        for table in self._tables:
            if table.seq > reader.head.seq or table.seq < reader.oldest_seq - 1:
                raise DefiniteError(
                    f"{table.table} is at transaction {table.seq}, but the log has "
                    f"{reader.oldest_seq} to {reader.head.seq}: log and lake do not belong together",
                    "restore the lake's _tailrace folder, or start a new lake in an empty folder",
                )


def _require_same_history(reader: LogReader, table: TableId, seq: int, lsn: Lsn) -> None:
    """The transaction a table stands at must be the one the log has under that number."""
    if not reader.oldest_seq <= seq <= reader.head.seq:
        return
    logged = Lsn(reader.transactions(seq - 1, seq).column("commit_lsn")[0].as_py())
    if logged > lsn:
        raise DefiniteError(
            f"{table} is at {lsn}, where the log has {logged}: they do not belong together",
            "restore the lake's _tailrace folder, or start a new lake in an empty folder",
        )


def _is_newer(table: str, version: Version, cut: PublishedCut) -> bool:
    """Whether a table was copied, for the first time or anew, after the cut."""
    assert version.stamp is not None
    copied_later = version.stamp.seq is None and version.stamp.lsn > cut.lsn
    return copied_later or version.number < cut.versions.get(table, version.number + 1)


def _snapshot_point(versions: Sequence[Version]) -> Lsn:
    return max(version.stamp.lsn for version in versions if version.stamp)
