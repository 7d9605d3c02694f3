"""What tables of a lake come to: rows, bytes, when they changed last. It costs a look into each table's own log, so
what was found is kept as long as a table stands at the same version."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from tailrace.errors import TailraceError
from tailrace.lake.door import LakeTable, TableVersion
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId

THREADS = 8
"""How many tables are looked at at once: in a bucket, a look is mostly waiting."""

_Place = tuple[int, int, int]
"""Version, copy, transaction: numbers of versions are given again."""


@dataclass(frozen=True)
class TableFigures:
    """Of one version of a table: the one in the newest cut, else the last one."""

    rows: int
    """About."""
    bytes: int
    changed_us: int
    """When the source committed the last batch that changed the table, in microseconds since 1970; 0 if unknown."""


class KnownTableFigures:
    """Of one lake. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[TableId, tuple[_Place, TableFigures]] = {}

    def of(self, home: LakeHome, tables: Collection[TableId]) -> dict[TableId, TableFigures | None]:
        """None for a table that has no version yet, or one that cannot be read."""
        source, newest = home.source(), home.cuts.newest()
        if source is None or not tables:
            return dict.fromkeys(tables)
        format, cut = format_named(source.format), newest.tables if newest is not None else {}

        def look(table: TableId) -> TableFigures | None:
            named, place = cut.get(str(table)), home.place_of(table)
            if named is not None:
                return self._at(table, (named.version, named.copy, named.seq), format.table(place))
            return self._last(table, format.table(place))

        with ThreadPoolExecutor(min(THREADS, len(tables))) as threads:
            return dict(zip(tables, threads.map(look, tables), strict=True))

    def _last(self, table: TableId, there: LakeTable) -> TableFigures | None:
        with suppress(TailraceError, OSError):
            found = there.version()
            if found is not None and found.stamp is not None:
                return self._at(table, (found.number, found.stamp.copy, found.stamp.seq or 0), there, found)
        return None

    def _at(
        self, table: TableId, place: _Place, there: LakeTable, found: TableVersion | None = None
    ) -> TableFigures | None:
        with self._lock:
            known = self._known.get(table)
        if known is not None and known[0] == place:
            return known[1]
        with suppress(TailraceError, OSError):
            version, size = found or there.version(place[0]), there.size(place[0])
            if size is not None and version is not None:
                changed_us = version.stamp.position.time_us if version.stamp is not None else 0
                figures = TableFigures(size.rows, size.bytes, changed_us)
                with self._lock:
                    self._known[table] = place, figures
                return figures
        return None
