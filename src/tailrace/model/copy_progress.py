"""How far the copy of a table is: what people watch while rows that exist are read."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.model.table import TableId


@dataclass(frozen=True)
class TableProgress:
    """How much of one table has been read."""

    table: TableId
    chunks_done: int
    chunks: int
    rows_estimated: int
    held_seconds: float = 0.0
    """By windows: how long the last one held a state of the source."""
    held_seconds_max: float = 0.0
    """By windows: how long the longest one did."""
    rows_read: int | None = None
    """Their number, where they are counted."""
    seconds: float = 0.0
    """What it has taken so far, without the time in which it was paused or no connector ran."""

    @property
    def rows_done(self) -> int:
        """An estimate."""
        if self.rows_read is not None:
            return self.rows_read
        return self.rows_estimated * self.chunks_done // max(1, self.chunks)

    @property
    def percent(self) -> float:
        return min(100.0, 100.0 * self.rows_done / self.rows_estimated) if self.rows_estimated else 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows_done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None where that cannot be told yet."""
        rate = self.rows_per_second
        return max(0, self.rows_estimated - self.rows_done) / rate if rate else None
