"""Capture: the server's stream into the log, and the log's durable position back to the server.

One thread receives and answers and never waits for the disk; the other writes and fsyncs. The
server hears only of positions that are fsynced, because it may drop the WAL before them.

What survives a crash: everything the log's head covers. On the next start the server sends
again from its own confirmed position, and transactions the log has are left out.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.errors import DefiniteError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.writer import LogBlockedError, LogWriter
from tailrace.model.kind import Kind
from tailrace.source.control import CaptureControl
from tailrace.source.postgres._announced import describe_relation
from tailrace.source.postgres._connection import connect, explained, take_text_as_it_is
from tailrace.source.postgres._identity import identify, require_identity, require_timeline
from tailrace.source.postgres._lsn import Lsn
from tailrace.source.postgres._publication import find_publication
from tailrace.source.postgres._receiver import Inbox, Receiver
from tailrace.source.postgres._slot import require_continuity
from tailrace.source.postgres._stream import StreamEncoder

LINGER_SECONDS = 0.02
"""How long a message may wait for company before it is written: one fsync serves them all."""
INBOX_BYTES_MAX = 64 << 20
RETRY_SECONDS_MAX = 30.0
UPKEEP_SECONDS = 30.0
"""How often the log is freed of what nothing needs, and the publication is looked at."""

_TRANSIENT_CLASSES = (b"08", b"53", b"57", b"58")
"""SQLSTATEs of a lost connection, of missing resources, of a shutdown, of the system."""
_IN_USE = b"55006"


@dataclass(frozen=True)
class Stream:
    """What one capture reads."""

    dsn: str
    slot: str
    publications: tuple[str, ...]
    """The one that sends every kind of change, then the one for inserts, if there is one."""
    timeline: int
    gap_from: int | None = None
    """Where the log ended when it was known that what follows is lost: every table is copied again since."""
    skip_to: int = 0
    """Nothing that committed before this is taken, also where the log ends earlier."""
    text_columns: tuple[str, ...] = ()
    """Patterns for columns that a person wants as text."""


def run(stream: Stream, writer: LogWriter, control: CaptureControl) -> None:
    """Capture until told to stop. Connects again for ever on transient errors, and reports them."""
    pause_seconds = 0.5
    while not control.stopping.is_set():
        started = time.monotonic()
        try:
            with explained(stream.dsn):
                _stream(stream, writer, control)
        except TransientError as error:
            pause_seconds = 0.5 if time.monotonic() - started > 60 else pause_seconds
            control.report(f"{error.message}; trying again in {pause_seconds:.0f} s")
            control.stopping.wait(pause_seconds)
            pause_seconds = min(pause_seconds * 2, RETRY_SECONDS_MAX)


def _stream(stream: Stream, writer: LogWriter, control: CaptureControl) -> None:
    # A connection that streams takes no more commands, not even the commit that `with` would send.
    with connect(stream.dsn) as catalog_conn, closing(connect(stream.dsn, replication=True)) as conn:
        identity = identify(conn)
        require_identity(writer.identity, identity)
        require_timeline(stream.timeline, identity.timeline)
        begin = Lsn(max(writer.head.ordinal, stream.skip_to))
        if writer.head.ordinal != stream.gap_from:
            require_continuity(catalog_conn, stream.slot, begin)
        writer.abandon_active()
        _start_replication(conn, stream, begin)
        control.report("")
        encoder = StreamEncoder(
            writer.last_commit.ordinal,
            lambda relation: describe_relation(catalog_conn, relation, stream.text_columns),
        )
        inbox = Inbox(inbox_bytes_max(writer.options.quota_bytes))
        receiver = Receiver(conn, inbox, lambda: writer.head.ordinal, lambda: control.is_paused)
        receiver.start()
        try:
            while not control.stopping.is_set():
                _require_publications(catalog_conn, stream.publications)
                _write(inbox, encoder, writer, control)
                writer.retain(control.keep_seconds)
        finally:
            receiver.stop()


def _require_publications(conn: psycopg.Connection, names: tuple[str, ...]) -> None:
    """Since Postgres 18 a server that misses a publication sends nothing and does not say so."""
    for number, name in enumerate(names):
        if find_publication(conn, name, inserts=number > 0) is None:
            raise DefiniteError(
                f"publication {name} is gone: the server sends no more changes",
                "run the same command again: it makes the publication and copies again what was not sent",
            )


def inbox_bytes_max(quota_bytes: int | None) -> int:
    """Two inboxes are flushed together at most. A log at its quota must find room for them when all else in it has
    been freed but for the segment that is being written, which has up to a quarter of the quota."""
    return INBOX_BYTES_MAX if quota_bytes is None else min(INBOX_BYTES_MAX, quota_bytes // 16)


def _write(inbox: Inbox, encoder: StreamEncoder, writer: LogWriter, control: CaptureControl) -> None:
    """Write what comes for a while."""
    until = time.monotonic() + UPKEEP_SECONDS
    while not control.stopping.is_set() and time.monotonic() < until:
        messages = inbox.take(timeout_seconds=0.2)
        if not messages:
            continue
        control.stopping.wait(LINGER_SECONDS)
        batch = encoder.encode(messages + inbox.take(timeout_seconds=0))
        if _moves(batch, writer):
            writer.append(batch)
            _flush(writer, control)


def _flush(writer: LogWriter, control: CaptureControl) -> None:
    """Flush, waiting for room if there is none: the server keeps what we do not take. Not if told to stop first."""
    waited = False
    while not control.stopping.is_set():
        try:
            writer.flush()
            failpoint("capture.flushed")
            if waited:
                control.report("")
            return
        except LogBlockedError as error:
            waited = True
            control.report(f"{error.message}; waiting for room")
            control.stopping.wait(1.0)
            writer.retain(0.0)


def _moves(batch: pa.RecordBatch, writer: LogWriter) -> bool:
    """Whether the batch says anything new: an idle server repeats its position twice a second."""
    if batch.num_rows == 0:
        return False
    kinds = batch.column("kind").to_numpy()
    return bool((kinds != Kind.KEEPALIVE).any() or batch.column("ordinal").to_numpy().max() > writer.head.ordinal)


def _start_replication(conn: psycopg.Connection, stream: Stream, lsn: Lsn) -> None:
    publications = ", ".join('"' + name.replace('"', '""') + '"' for name in stream.publications)
    command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names {})").format(
        sql.Identifier(stream.slot), sql.SQL(str(lsn)), sql.Literal(publications)
    )
    take_text_as_it_is(conn)
    result = conn.pgconn.exec_(command.as_bytes(conn))
    if result.status == pq.ExecStatus.COPY_BOTH:
        return
    reason = " ".join((result.error_message or b"").decode(errors="replace").split())
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    if state == _IN_USE:
        raise TransientError(reason, "another process reads from this slot")
    if state is None or state[:2] in _TRANSIENT_CLASSES:
        raise TransientError(f"cannot stream from slot {stream.slot}: {reason}")
    raise DefiniteError(f"cannot stream from slot {stream.slot}: {reason}")
