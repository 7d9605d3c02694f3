"""Numbers of lakes that are asked for again and again: read again only where their files have changed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from tailrace.lake.home import LakeHome
from tailrace.log.sizes import LogSize
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.server.lakes.table_figures import KnownTableFigures, TableFigures


@dataclass
class _Known:
    """What was read of one lake."""

    log: LogSize
    digest: str = ""
    states: Counter[TableState] = field(default_factory=Counter)
    figures: KnownTableFigures = field(default_factory=KnownTableFigures)
    lock: threading.Lock = field(default_factory=threading.Lock)


class LakeNumbers:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakKeyDictionary[LakeHome, _Known] = WeakKeyDictionary()

    def states(self, home: LakeHome) -> Mapping[TableState, int]:
        """How many tables are in each state; only states that there are."""
        known = self._of(home)
        with known.lock:
            digest = home.tables.digest()
            if digest != known.digest:
                known.states = Counter(record.state for record in home.tables.load().values())
                known.digest = digest
            return dict(known.states)

    def log_bytes(self, home: LakeHome) -> int:
        """What the log takes on disk."""
        known = self._of(home)
        with known.lock:
            return known.log.bytes()

    def figures(self, home: LakeHome, tables: Collection[TableId]) -> dict[TableId, TableFigures | None]:
        """What tables come to; None where that cannot be told."""
        return self._of(home).figures.of(home, tables)

    def _of(self, home: LakeHome) -> _Known:
        with self._lock:
            return self._known.setdefault(home, _Known(LogSize(home.log)))
