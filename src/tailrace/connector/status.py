"""The tables of a lake, seen from outside: their states, and how far each lags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tailrace.connector.copy.growth import Growth
from tailrace.errors import DefiniteError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.model.copy_progress import TableProgress
from tailrace.model.kind import Kind
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.storage.files import read_json

RANGE_BYTES = 32 << 20


@dataclass(frozen=True)
class LakeTableStatus:
    """One table at one moment."""

    table: TableId
    record: TableRecord
    changes_behind: int | None
    """Changes in the log that its last version does not have; None where the log does not say."""


@dataclass(frozen=True)
class LakeStatus:
    """A lake at one moment."""

    state: str
    """The connector's; `killed` when it did not end by itself."""
    reason: str | None
    holder: int | None
    """The process that writes the lake now."""
    tables: list[LakeTableStatus]
    is_here: bool = True
    """Whether the lake's home is on this machine. Else nothing is known of the connector."""


def lake_status(home: LakeHome) -> LakeStatus:
    """Read from the lake's files alone, whether or not a connector runs."""
    holder = home.holder()
    stored = read_json(home.runs.state) or {"state": "stopped", "reason": None}
    has_ended = stored["state"] in ("stopped", "failed")
    state = stored["state"] if holder is not None or has_ended else "killed"
    reader = LogReader(home.log) if home.has_log else None
    tables = [
        LakeTableStatus(table, record, _changes_behind(home, reader, table, record))
        for table, record in sorted(home.tables.load().items())
    ]
    return LakeStatus(state, stored["reason"], holder, tables, home.is_inside or home.folder.is_dir())


def stored_progress(home: LakeHome, records: Mapping[TableId, TableRecord]) -> dict[TableId, TableProgress]:
    """How far copies by windows are: see `stored_growths`."""
    return {table: growth.progress(table) for table, growth in stored_growths(home, records)}


def stored_growths(home: LakeHome, records: Mapping[TableId, TableRecord]) -> Iterator[tuple[TableId, Growth]]:
    """How far the copies of these tables are that are made by windows, as their newest versions say it, whether or not
    a connector runs. A damaged table is left out: the next start goes back to what is whole."""
    source = home.source()
    for table, record in records.items() if source is not None else ():
        assert source is not None
        version = None
        with suppress(DefiniteError):
            version = format_named(source.format).table(home.place_of(table)).version()
        stamp = version.stamp if version is not None else None
        if stamp is not None and stamp.copy == record.copy and stamp.growth is not None:
            yield table, Growth.from_json(stamp.growth)


def _changes_behind(home: LakeHome, reader: LogReader | None, table: TableId, record: TableRecord) -> int | None:
    if reader is None or not record.relation or record.state is TableState.REMOVED:
        return None
    seq = _published_seq(home, table, record)
    if seq is None or seq + 1 < reader.oldest_seq:
        return None
    return count_changes(reader, record.relation, seq, reader.head.seq)


def _published_seq(home: LakeHome, table: TableId, record: TableRecord) -> int | None:
    cut = home.cuts.newest(lambda cut: str(table) in cut.tables)
    return cut.seq if cut is not None and cut.tables[str(table)].copy == record.copy else None


def count_changes(reader: LogReader, relation: int, after: int, upto: int) -> int:
    """How many changes of a table these transactions have. Nothing is decoded."""
    if after >= upto or relation not in reader.relations(after, upto):
        return 0
    count = 0
    for each in reader.ranges(after, upto, RANGE_BYTES, {relation}):
        for batch in read(reader.path, each, after, upto, {relation}):
            kinds = batch.column("kind").to_numpy()
            count += int(np.isin(kinds, [Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE]).sum())
    return count
