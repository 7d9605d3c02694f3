"""How large the parts of the benchmark are."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.settings import TaskSizes


@dataclass(frozen=True)
class Scale:
    """Rows, changes and rounds."""

    small_rows: int
    """Of each of the five small tables."""
    small_publishes: int
    """That count, by each of the two."""
    rows: int
    """Of the table that is copied, and then changed."""
    changes: int
    rounds: int
    """One more comes first and does not count."""
    sizes: TaskSizes


FULL = Scale(10_000, 100, 2_000_000, 1_000_000, 3, TaskSizes())
# With small tasks, so that a small publish is divided as a large one is.
QUICK = Scale(1000, 15, 50_000, 20_000, 1, TaskSizes(1 << 20, 2 << 20, 16 << 20))
