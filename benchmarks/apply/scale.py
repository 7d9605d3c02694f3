"""How large the parts of the benchmark are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Rows and changes."""

    rows: int
    """Of the table that the backlog is about."""
    warm_up: int
    """Changes before those that count, for both contestants."""
    changes: int
    rounds: int
    """One more comes first, cold."""
    batch: int
    """Changes in a small batch."""
    batches: int
    small_rows: int
    large_rows: int
    transactions: tuple[int, int]
    """Changes in the transactions whose memory is compared."""


FULL = Scale(2_000_000, 200_000, 1_000_000, 3, 1000, 15, 100_000, 10_000_000, (1_000_000, 10_000_000))
QUICK = Scale(200_000, 20_000, 100_000, 1, 1000, 5, 20_000, 500_000, (300_000, 1_000_000))
