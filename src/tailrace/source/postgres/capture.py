"""Capture: the server's stream into the log, and the log's durable position back to the server.

One thread receives and answers and never waits for the disk; the other writes and fsyncs. The
server hears only of positions that are fsynced, because it may drop the WAL before them.

What survives a crash: everything the log's head covers. On the next start the server sends
again from its own confirmed position, and transactions the log has are left out.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from select import select

import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.writer import DEFAULTS, LogBlockedError, LogOptions, LogWriter
from tailrace.model.kind import Kind
from tailrace.model.lsn import Lsn
from tailrace.source.postgres import catalog
from tailrace.source.postgres.connection import connect
from tailrace.source.postgres.identity import identify, require_timeline
from tailrace.source.postgres.slot import find_slot
from tailrace.source.postgres.stream import StreamEncoder

FEEDBACK_SECONDS = 0.5
LINGER_SECONDS = 0.02
"""How long a message may wait for company before it is written: one fsync serves them all."""
INBOX_BYTES_MAX = 64 << 20
RETRY_SECONDS_MAX = 30.0
RETAIN_SECONDS = 30.0

_POSTGRES_EPOCH_SECONDS = 946_684_800
_STATUS = struct.Struct(">cQQQqB")


@dataclass(frozen=True)
class CaptureOptions:
    """What one capture process reads and where it writes."""

    dsn: str
    slot: str
    publication: str
    log: Path
    timeline: int = 1
    keep_seconds: float = 24 * 3600.0
    """How long the log keeps what every consumer has acknowledged."""
    log_options: LogOptions = DEFAULTS

    @property
    def inbox_bytes_max(self) -> int:
        """Two of these are flushed together at most. A log at its quota must find room for them when all else in it
        has been let go but for the segment that is being written, which has up to a quarter of the quota."""
        quota_bytes = self.log_options.quota_bytes
        return INBOX_BYTES_MAX if quota_bytes is None else min(INBOX_BYTES_MAX, quota_bytes // 16)


class Inbox:
    """Messages on their way from the receiving to the writing thread, bounded in bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._messages: list[bytes] = []
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed: BaseException | None = None

    def put(self, messages: list[bytes]) -> None:
        with self._changed:
            self._messages += messages
            self._bytes += sum(map(len, messages))
            self._changed.notify_all()

    @property
    def full(self) -> bool:
        return self._bytes >= self._bytes_max

    def close(self, reason: BaseException) -> None:
        with self._changed:
            self._closed = reason
            self._changed.notify_all()

    def take(self, timeout_seconds: float) -> list[bytes]:
        """All that is there; raises the receiver's error once everything before it is taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._closed, timeout_seconds)
            taken, self._messages, self._bytes = self._messages, [], 0
            if not taken and self._closed:
                raise self._closed
            return taken


class Receiver(threading.Thread):
    """Reads the socket and confirms what is durable, whatever the disk is doing."""

    def __init__(self, conn: psycopg.Connection, durable_lsn: Callable[[], Lsn], inbox: Inbox) -> None:
        super().__init__(name="receiver", daemon=True)
        self._pgconn = conn.pgconn
        self._durable_lsn = durable_lsn
        self._inbox = inbox
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            next_feedback = 0.0
            while not self._stopping.is_set():
                if time.monotonic() >= next_feedback:
                    self._confirm()
                    next_feedback = time.monotonic() + FEEDBACK_SECONDS
                if self._inbox.full or not self._receive():
                    self._wait(next_feedback)
            self._confirm()
        except Exception as error:
            self._inbox.close(error)

    def stop(self) -> None:
        """Confirm what is durable once more and end."""
        self._stopping.set()
        self.join(timeout=10)

    def _receive(self) -> bool:
        """Hand over what libpq has buffered; False when it has nothing whole."""
        messages: list[bytes] = []
        get = self._pgconn.get_copy_data
        while len(messages) < 10_000:
            size, data = get(1)
            if size > 0:
                messages.append(bytes(data))
            elif size == 0:
                break
            else:
                self._inbox.put(messages)
                raise _ending(self._pgconn)
        if messages:
            self._inbox.put(messages)
        return bool(messages)

    def _wait(self, until: float) -> None:
        timeout_seconds = max(0.0, until - time.monotonic())
        if self._inbox.full:
            self._stopping.wait(min(timeout_seconds, 0.01))
        elif select([self._pgconn.socket], [], [], min(timeout_seconds, 0.1))[0]:
            self._pgconn.consume_input()

    def _confirm(self) -> None:
        lsn = self._durable_lsn()
        clock = int((time.time() - _POSTGRES_EPOCH_SECONDS) * 1_000_000)
        # Asking for a reply makes the server tell its position at once, also when it has nothing to send.
        self._pgconn.put_copy_data(_STATUS.pack(b"r", lsn, lsn, lsn, clock, 1))
        self._pgconn.flush()


def run(options: CaptureOptions, stopping: threading.Event, report: Callable[[str], None]) -> None:
    """Capture until `stopping` is set. Reconnects for ever on transient errors, saying so; says nothing, in an
    empty report, when it streams."""
    pause_seconds = 0.5
    writer: LogWriter | None = None
    try:
        while not stopping.is_set():
            started = time.monotonic()
            try:
                if writer is None:
                    writer = _open_log(options)
                _stream(options, writer, stopping, report)
            except (TransientError, psycopg.OperationalError) as error:
                pause_seconds = 0.5 if time.monotonic() - started > 60 else pause_seconds
                report(f"{' '.join(str(error).split())}; trying again in {pause_seconds:.0f} s")
                stopping.wait(pause_seconds)
                pause_seconds = min(pause_seconds * 2, RETRY_SECONDS_MAX)
    finally:
        if writer is not None:
            writer.close()


def _open_log(options: CaptureOptions) -> LogWriter:
    with connect(options.dsn, replication=True) as conn:
        return LogWriter.open(options.log, identify(conn).log_identity, options.log_options)


def _stream(
    options: CaptureOptions, writer: LogWriter, stopping: threading.Event, report: Callable[[str], None]
) -> None:
    # A connection that streams takes no more commands, not even the commit that `with` would send.
    with connect(options.dsn) as catalog_conn, closing(connect(options.dsn, replication=True)) as conn:
        require_timeline(options.timeline, identify(conn).timeline)
        _check_continuity(catalog_conn, options.slot, writer)
        writer.abandon_active()
        _start_replication(conn, options, writer.head.lsn)
        report("")
        encoder = StreamEncoder(
            writer.last_commit_lsn, lambda relation: catalog.describe_relation(catalog_conn, relation)
        )
        inbox = Inbox(options.inbox_bytes_max)
        receiver = Receiver(conn, lambda: writer.head.lsn, inbox)
        receiver.start()
        try:
            while not stopping.is_set():
                _write(inbox, encoder, writer, stopping, report)
                writer.retain(options.keep_seconds)
        finally:
            receiver.stop()


def _write(
    inbox: Inbox, encoder: StreamEncoder, writer: LogWriter, stopping: threading.Event, report: Callable[[str], None]
) -> None:
    """Write what comes for a while."""
    until = time.monotonic() + RETAIN_SECONDS
    while not stopping.is_set() and time.monotonic() < until:
        messages = inbox.take(timeout_seconds=0.2)
        if not messages:
            continue
        stopping.wait(LINGER_SECONDS)
        batch = encoder.encode(messages + inbox.take(timeout_seconds=0))
        if _moves(batch, writer):
            writer.append(batch)
            _flush(writer, stopping, report)


def _flush(writer: LogWriter, stopping: threading.Event, report: Callable[[str], None]) -> None:
    """Flush, waiting for room if there is none: the server keeps what we do not take."""
    waited = False
    while not stopping.is_set():
        try:
            writer.flush()
            failpoint("capture.flushed")
            if waited:
                report("")
            return
        except LogBlockedError as error:
            waited = True
            report(f"{error.message}; waiting for room")
            stopping.wait(1.0)
            writer.retain(0.0)


def _moves(batch: pa.RecordBatch, writer: LogWriter) -> bool:
    """Whether the batch says anything new: an idle server repeats its position twice a second."""
    if batch.num_rows == 0:
        return False
    kinds = batch.column("kind").to_numpy()
    return bool((kinds != Kind.KEEPALIVE).any() or batch.column("lsn").to_numpy().max() > writer.head.lsn)


def _check_continuity(conn: psycopg.Connection, name: str, writer: LogWriter) -> None:
    """Refuse to go on over a gap between what the log has and what the slot can still send."""
    slot = find_slot(conn, name)
    if slot is None:
        raise DefiniteError(
            f"replication slot {name} is gone: changes since {writer.head.lsn} cannot be read any more",
            "start a new lake in an empty folder, or remove this one and run the same command",
        )
    if slot.wal_status == "lost":
        raise DefiniteError(
            f"replication slot {name} was invalidated: the server removed WAL we had not read",
            "raise max_slot_wal_keep_size, then start a new lake in an empty folder",
        )
    if writer.head.lsn and slot.confirmed_flush_lsn > writer.head.lsn:
        raise DefiniteError(
            f"slot {name} is confirmed up to {slot.confirmed_flush_lsn}, our log ends at {writer.head.lsn}: "
            "somebody else read from it and those changes are lost",
            "start a new lake in an empty folder with a slot of its own",
        )


def _start_replication(conn: psycopg.Connection, options: CaptureOptions, lsn: Lsn) -> None:
    publication = '"' + options.publication.replace('"', '""') + '"'
    command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names {})").format(
        sql.Identifier(options.slot), sql.SQL(str(lsn)), sql.Literal(publication)
    )
    result = conn.pgconn.exec_(command.as_bytes(conn))
    if result.status == pq.ExecStatus.COPY_BOTH:
        return
    reason = " ".join((result.error_message or b"").decode(errors="replace").split())
    if "is active for PID" in reason:
        raise TransientError(reason, "another process reads from this slot")
    raise DefiniteError(f"cannot stream from slot {options.slot}: {reason}")


def _ending(pgconn: pq.abc.PGconn) -> TailraceError:
    """Why the server ended the stream."""
    result = pgconn.get_result()
    state = result.error_field(pq.DiagnosticField.SQLSTATE) if result else None
    text = (result.error_message if result else b"") or pgconn.error_message
    reason = " ".join(text.decode(errors="replace").split()) or "connection closed"
    if state is not None and state.startswith(b"42"):
        return DefiniteError(f"the server refuses to stream: {reason}", "see what changed in the database")
    return TransientError(f"the server ended the stream: {reason}")
