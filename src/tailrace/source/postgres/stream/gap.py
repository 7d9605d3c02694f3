"""A gap in the log, told by a transaction of its own.

What committed in a gap is in no log. A repaired lake has it all the same: rows are read again, and are those of a later
state. They need a commit to be the rows of. So capture logs one before it streams again: a transaction without changes
that stands for all that was lost. It lies right before the first commit that the server will send:

    the log      ... t7  E (the end)            G  t9 ...
    the server   ... t7  x8 (never logged)  C (the slot begins)  t9 ...

Commits have positions that are multiples of eight, so G, one byte before C, is no commit's.
"""

from __future__ import annotations

import time

import psycopg
import pyarrow as pa

from tailrace.log.files.record import RECORD
from tailrace.log.write.writer import LogWriter
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.source.postgres.rows.views import read_view
from tailrace.source.postgres.server.history import GAP_DETAIL, History
from tailrace.source.postgres.server.lsn import Lsn


def is_after_gap(history: History, skip_to: int, end: int) -> bool:
    """Whether nothing has been logged yet of what follows a gap, or of what a person skipped; the log ends here."""
    return end > 0 and (end == history.gap_from or end < skip_to)


def append_gap(writer: LogWriter, conn: psycopg.Connection, history: History, begin: Lsn) -> None:
    """Tell of the gap between the log's end and where the server begins to send. The caller flushes."""
    ordinal = max(history.ordinal(begin - 1), writer.head.ordinal + 1)
    # Every state from now on shows it: a transaction that has ended.
    xid = (read_view(conn).get("xmin", 4) - 1) & 0xFFFFFFFF
    commit = Commit(SourcePosition(ordinal, time.time_ns() // 1000, GAP_DETAIL), ordinal + 1)
    rows = [(ordinal, xid, 0, Kind.BEGIN, 0, b""), (ordinal, xid, 0, Kind.COMMIT, 0, commit.to_bytes())]
    columns = [pa.array(values, each.type) for values, each in zip(zip(*rows, strict=True), RECORD, strict=True)]
    writer.append(pa.RecordBatch.from_arrays(columns, schema=RECORD))
