"""Timelines: whether a server that was promoted still has all that we have read.

A standby that becomes the primary begins a timeline of its own where it had got to. What the old primary wrote after
that point is in no history any more, and the new one writes other changes at the same positions. So a log that ends
before that point can be continued, and one that ends after it has changes that never happened. Unless it read them
from the new primary: a standby that is promoted while we read from it streams on. Then its own slot is confirmed up to
after that point, which no slot that it had as a standby can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from tailrace.errors import GapError, MovedError, TransientError
from tailrace.source.postgres.server.identity import Identity
from tailrace.source.postgres.server.lsn import Lsn

_ALIGNED_BYTES = 8
REPAIR = "repair the lake with --snapshot-mode when_needed: every table is copied again, by windows"


@dataclass(frozen=True)
class Read:
    """How far we have read, on which timeline."""

    timeline: int
    end: Lsn
    """Where our log ends."""
    confirmed: Lsn
    """Up to where the server's slot is confirmed; 0 without one."""


def require_timeline(replication_conn: psycopg.Connection, read: Read, found: Identity) -> None:
    """A `GapError` unless the server has all that we have read."""
    known, end = read.timeline, read.end
    if found.timeline == known:
        return
    left = _history(replication_conn, found.timeline).get(known)
    if left is None or end > left >= read.confirmed:
        branched = (
            f"timeline {known} was left at {left}" if left is not None else f"timeline {known} is none of its own"
        )
        raise GapError(
            f"the server is on timeline {found.timeline}, not {known}: {branched}, and our log has changes up to {end} "
            "that it lacks",
            REPAIR,
        )


def require_wal(found: Identity, end: Lsn) -> None:
    """A `GapError` unless the server has written as much as our log has of it: asked for what is to come, it would
    wait in silence and leave out all that commits before."""
    # A message outside of transactions is logged as received up to the byte after its start, and records are aligned.
    if found.end >= end - end % _ALIGNED_BYTES:
        return
    if found.is_standby:
        # One that was restarted answers before it has replayed again what it had.
        raise TransientError(
            f"the standby's WAL ends at {found.end}, and our log has changes up to {end}: it has to catch up first",
            "see the standby's primary_conninfo, and whether the primary runs",
        )
    raise GapError(
        f"the server's WAL ends at {found.end}, and our log has changes up to {end}: the server was set back, "
        f"perhaps to an older copy of its disk; what the lake has after {found.end} may never have happened there",
        REPAIR,
    )


def require_same_timeline(replication_conn: psycopg.Connection, read: Read, found: Identity) -> None:
    """For the process that writes the log: the timeline must be stored before anything of it is logged."""
    require_timeline(replication_conn, read, found)
    if found.timeline != read.timeline:
        raise MovedError(
            f"the server was promoted and is on timeline {found.timeline} now; nothing that we have read is lost",
            "run the same command again: it continues where the log ends",
        )


def parse_history(content: bytes) -> dict[int, Lsn]:
    """Each earlier timeline and where it was left. Lines have its number, that position, and a remark."""
    lines = [line.split(None, 2) for line in content.decode(errors="replace").splitlines()]
    return {int(line[0]): Lsn.parse(line[1]) for line in lines if len(line) >= 2 and line[0].isdigit()}


def _history(replication_conn: psycopg.Connection, timeline: int) -> dict[int, Lsn]:
    if timeline == 1:
        return {}
    row = replication_conn.execute(f"TIMELINE_HISTORY {timeline:d}").fetchone()
    assert row is not None
    content = row[1]
    return parse_history(content if isinstance(content, bytes) else str(content).encode())
