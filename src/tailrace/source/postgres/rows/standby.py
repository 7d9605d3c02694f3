"""A standby as the source: what it cannot do itself, and who does.

The slot is the standby's own, and so are positions: what it has replayed. The publication is made on the primary.
Copies are read under states of the standby (`views`). One for copies at once is taken at a moment at which the standby
has replayed all that it has received, so that it shows exactly the commits before that position.

If the primary removes rows of its catalog that the slot needs, the standby gives up the slot and says so:
`hot_standby_feedback` keeps the primary from it. A standby that is promoted keeps the slot, and streams on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tailrace.errors import TransientError
from tailrace.source.door.rows import SnapshotPoint
from tailrace.source.door.values import Waiting
from tailrace.source.postgres.rows import views
from tailrace.source.postgres.rows.watermarks import READ_ONLY
from tailrace.source.postgres.server.history import History

EXACT_SECONDS_MAX = 60.0
TURN_SECONDS = 0.02


def is_standby(conn: psycopg.Connection) -> bool:
    row = conn.execute("select pg_is_in_recovery()").fetchone()
    return row is not None and bool(row[0])


@contextmanager
def exact_snapshot(dsn: str, waiting: Waiting, history: History) -> Iterator[SnapshotPoint]:
    """A state of a standby that shows exactly the commits before its position, valid inside the `with`."""
    deadline = time.monotonic() + EXACT_SECONDS_MAX
    while time.monotonic() < deadline:
        with views.window(dsn, waiting, READ_ONLY, history) as point:
            if point.is_exact:
                yield SnapshotPoint(point.position, point.token)
                return
        waiting(None)
        time.sleep(TURN_SECONDS)
    raise TransientError(
        f"the standby had not replayed all that it had received at any moment of {EXACT_SECONDS_MAX:.0f} s",
        "copy by windows: --snapshot-mode incremental",
    )
