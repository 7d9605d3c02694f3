"""How far a copy by windows has got. It travels in the stamp of every version that the copy makes, so the rows and what
is known of them cannot disagree: whoever opens the table after a crash continues there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tailrace.model.copy_progress import TableProgress
from tailrace.model.rows.key import KeyRows, from_text, to_text, with_more
from tailrace.model.table import TableId
from tailrace.source.door.rows import Cursor

AGAIN_ROWS_MAX = 1000
"""How many rows are read again together: their keys are listed in a query."""


@dataclass(frozen=True)
class Growth:
    """The rows up to `done` are in; those up to `last` will be. What came after `last`, the stream brings."""

    last: Cursor | None
    """The greatest key when the copy began; None when there were no rows."""
    done: Cursor | None = None
    """None before the first window."""
    again: KeyRows | None = None
    """Keys of rows that came without all of their columns, and must be read from the source again."""
    order: tuple[str, ...] = ()
    """Columns that rows are read in the order of, instead of the key."""
    condition: str | None = None
    """Which rows are read; the table had all of them when this began."""
    rows: int = 0
    """How many rows were read."""
    held_seconds: float = 0.0
    """How long the state was held under which the last rows were read."""
    held_seconds_max: float = 0.0
    """The longest of these times: the longest transaction that the copy had open at the source."""
    windows: int = 0
    """How many windows are in. One is needed also where there were no rows: until the table has followed the log past
    the state that the copy began under, it may lack rows that were deleted in between."""
    rows_estimated: int = 0
    """The source's row estimate when the copy began."""
    chunks: int = 0
    """How many chunks were read."""
    seconds: float = 0.0
    """What the windows took, from the first row that was read to the version that has the last."""

    @property
    def is_whole(self) -> bool:
        return self.windows > 0 and self.done == self.last and self.again is None

    def with_window(self, done: Cursor | None, rows: int, held_seconds: float = 0.0, chunks: int = 0) -> Growth:
        """After one more window was read."""
        longest = max(self.held_seconds_max, held_seconds)
        grown = replace(self, done=done, rows=self.rows + rows, windows=self.windows + 1, chunks=self.chunks + chunks)
        return replace(grown, held_seconds=held_seconds, held_seconds_max=longest)

    def with_again(self, keys: KeyRows | None) -> Growth:
        """With more keys to read again."""
        if keys is None or not keys.num_rows:
            return self
        return replace(self, again=with_more(self.again, keys))

    @property
    def again_next(self) -> KeyRows | None:
        """The first of the keys that must be read again; None if there are none."""
        return None if self.again is None else self.again.slice(0, AGAIN_ROWS_MAX)

    def without_again(self, keys: KeyRows) -> Growth:
        """After the first ones, which these are, were read again."""
        assert self.again is not None
        left = self.again.slice(keys.num_rows)
        return replace(self, again=left if left.num_rows else None)

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "last": self.last,
            "done": self.done,
            "order": self.order,
            "condition": self.condition,
            "rows": self.rows,
            "windows": self.windows,
            "progress": [self.rows_estimated, self.chunks, round(self.seconds, 3)],
            "held": [round(self.held_seconds, 3), round(self.held_seconds_max, 3)],
        }
        if self.again is not None:
            fields["again"] = to_text(self.again)
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Growth:
        held_seconds, held_seconds_max = fields.get("held", (0.0, 0.0))
        progress = fields.get("progress", (0, 0, 0.0))
        again = from_text(fields["again"]) if "again" in fields else None
        return cls(
            _cursor(fields["last"]),
            _cursor(fields["done"]),
            again,
            tuple(fields["order"]),
            fields["condition"],
            fields["rows"],
            held_seconds,
            held_seconds_max,
            fields["windows"],
            *progress,
        )

    def progress(self, table: TableId) -> TableProgress:
        """How far it is."""
        rows = max(self.rows_estimated, self.rows)
        chunks = max(self.chunks, self.chunks * rows // max(1, self.rows))
        held = self.held_seconds, self.held_seconds_max
        return TableProgress(table, self.chunks, chunks, rows, *held, rows_read=self.rows, seconds=self.seconds)


def _cursor(values: list[str] | None) -> Cursor | None:
    return None if values is None else tuple(values)
