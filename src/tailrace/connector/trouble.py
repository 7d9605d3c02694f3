"""What keeps a live table from being published though neither the table nor its changes are at fault: a disk that is
full, too many open files, another writer that is always faster.

The table is tried again for ever, less and less often, and continues by itself. Cuts wait for it for a while and
then do without it. Its trouble is told all the while.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tailrace.errors import TransientError
from tailrace.settings import Retries


@dataclass(frozen=True)
class Trouble:
    """A table's trouble, from its first failure until it succeeds."""

    error: TransientError
    lasts_from: float
    """From then on others do not wait for the table."""
    due: float
    """When to try again."""
    attempts: int = 1

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.due

    @property
    def is_lasting(self) -> bool:
        """Whether others need not wait for the table any longer."""
        return time.monotonic() >= self.lasts_from


def after_failure(error: TransientError, before: Trouble | None, retries: Retries) -> Trouble:
    """The trouble that one more failure makes."""
    now, attempts = time.monotonic(), before.attempts + 1 if before else 1
    lasts_from = before.lasts_from if before else now + retries.patience_seconds
    return Trouble(error, lasts_from, now + retries.publish.seconds(attempts), attempts)
