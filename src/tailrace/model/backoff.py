"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from dataclasses import dataclass

_DOUBLINGS_MAX = 30
"""However often it failed, the pause is a number that a float can hold."""


@dataclass(frozen=True)
class Backoff:
    """Pauses that double with each failure in a row, up to a longest one."""

    first_seconds: float
    most_seconds: float

    def seconds(self, failures: int) -> float:
        """The pause after this many failures in a row. Before any it is the first pause."""
        doublings = min(max(failures - 1, 0), _DOUBLINGS_MAX)
        return min(self.first_seconds * 2.0**doublings, self.most_seconds)
