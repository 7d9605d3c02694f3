"""The tables of a lake, seen from outside: their states, and how far each lags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
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
from tailrace.source.kinds import codec_of
from tailrace.storage.files import read_json

RANGE_BYTES = 32 << 20
CHANGES = (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE)


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
    records = dict(sorted(home.tables.load().items()))
    behind = changes_behind(home, records)
    tables = [LakeTableStatus(table, record, behind[table]) for table, record in records.items()]
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


def changes_behind(
    home: LakeHome, records: Mapping[TableId, TableRecord], bytes_max: int | None = None
) -> dict[TableId, int | None]:
    """How many changes each of these tables is behind; None where the log does not say, and where it would have to
    read more than `bytes_max` of it."""
    found: dict[TableId, int | None] = dict.fromkeys(records)
    if not home.has_log:
        return found
    reader = LogReader(home.log)
    standings = _Standings(home, reader)
    by_start: dict[int, dict[int, TableId]] = {}
    for table, record in records.items():
        if record.relation and record.state is not TableState.REMOVED:
            seq = standings.seq(table, record)
            if seq is not None and seq + 1 >= reader.oldest_seq:
                by_start.setdefault(seq, {})[record.relation] = table
    for seq, tables in by_start.items():
        upto = reader.head.seq
        if bytes_max is None or seq >= upto or reader.bytes_between(seq, upto) <= bytes_max:
            counts = count_changes(reader, set(tables), seq, upto)
            found |= {table: counts[relation] for relation, table in tables.items()}
    return found


class _Standings:
    """What readers find in tables: most are in the newest cut, and the last version of any other says it itself."""

    def __init__(self, home: LakeHome, reader: LogReader) -> None:
        self._home, self._reader = home, reader
        self._newest = home.cuts.newest()
        self._source = home.source()

    def seq(self, table: TableId, record: TableRecord) -> int | None:
        """The last transaction that the table has; None where it has no rows of this copy, or not all."""
        named = self._newest.tables.get(str(table)) if self._newest is not None else None
        if self._newest is not None and named is not None:
            return self._newest.seq if named.copy == record.copy else None
        if self._source is None:
            return None
        with suppress(DefiniteError):
            version = format_named(self._source.format).table(self._home.place_of(table)).version()
            stamp = version.stamp if version is not None else None
            if stamp is not None and stamp.copy == record.copy and stamp.growth is None:
                shown = codec_of(self._source.kind).shown_up_to(stamp.position)
                return stamp.seq if stamp.seq is not None else self._reader.seq_at(shown)
        return None


def count_changes(reader: LogReader, relations: Collection[int], after: int, upto: int) -> Counter[int]:
    """How many changes of each of these tables the transactions have. Nothing is decoded."""
    counts: Counter[int] = Counter()
    touched = set(relations) & reader.relations(after, upto) if after < upto else set()
    for each in reader.ranges(after, upto, RANGE_BYTES, touched) if touched else ():
        for batch in read(reader.path, each, after, upto, touched):
            is_change = np.isin(batch.column("kind").to_numpy(), CHANGES)
            found, numbers = np.unique(batch.column("relation").to_numpy()[is_change], return_counts=True)
            counts.update(dict(zip(found.tolist(), numbers.tolist(), strict=True)))
    return counts
