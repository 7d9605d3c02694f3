"""How many changes have come into logs: a counter for Prometheus, read from the index of each log.

A log counts the changes of every transaction when that is finished. What came between two looks is added at the second
one, whether or not a run began or ended in between. So the count never goes back while the server runs, and it is exact
as long as someone looks before the log deletes what they have not seen: that is a day.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader

ROWS_MAX = 1 << 20
"""Transactions that are counted at one look. After a long time without one, the rest follows at the next looks."""


@dataclass
class _Count:
    """Of one log."""

    log: str
    """Its id: another one is another log, begun again in the same place."""
    upto: int
    changes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ChangeCounts:
    """Any thread."""

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        self._rows_max = rows_max
        self._lock = threading.Lock()
        self._counts: WeakKeyDictionary[LakeHome, _Count] = WeakKeyDictionary()

    def count(self, home: LakeHome) -> int | None:
        """Changes since the first look; None where there is no log. A definite error where its index is damaged."""
        if not home.has_log:
            return None
        with self._lock:
            known = self._counts.get(home)
            if known is None:
                reader = LogReader(home.log)
                known = self._counts[home] = _Count(reader.id, reader.head.seq)
        with known.lock:
            self._add(LogReader(home.log), known)
            return known.changes

    def _add(self, reader: LogReader, known: _Count) -> None:
        if reader.id != known.log:
            known.log, known.upto = reader.id, 0
        try:
            self._add_after(known.upto, reader, known)
        except DefiniteError:
            oldest = reader.oldest_seq
            if oldest <= known.upto + 1:
                raise
            # What no one has looked at for so long is deleted, and stays uncounted.
            self._add_after(oldest - 1, reader, known)

    def _add_after(self, after: int, reader: LogReader, known: _Count) -> None:
        upto = max(after, min(reader.head.seq, after + self._rows_max))
        known.changes += sum(int(rows["changes"].sum()) for rows, _ in reader.portions(after, upto))
        known.upto = upto
