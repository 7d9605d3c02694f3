"""Capture: the server's stream into the log, and the log's durable position back to the server.

One thread receives and answers and never waits for the disk; the other writes and fsyncs. The
server hears only of positions that are fsynced, because it may drop the WAL before them.

What survives a crash: everything the log's head covers. On the next start the server sends
again from its own confirmed position, and transactions the log has are left out.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.errors import DefiniteError, GapError, MovedError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.write.writer import LogBlockedError, LogHeldError, LogWriter
from tailrace.model.backoff import Backoff
from tailrace.model.kind import Kind
from tailrace.source.door.control import CaptureControl
from tailrace.source.postgres.catalog.publication import find_publication
from tailrace.source.postgres.rows.standby import is_standby
from tailrace.source.postgres.server.connection import connect, connect_for_names, explained, take_text_as_it_is
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.server.identity import identify, require_identity
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import REPAIR, Read, require_same_timeline, require_wal
from tailrace.source.postgres.stream.confirming import Confirming
from tailrace.source.postgres.stream.encoding.announced_shapes import Announcing, describe_announced
from tailrace.source.postgres.stream.encoding.commits import Known
from tailrace.source.postgres.stream.encoding.encoder import StreamEncoder
from tailrace.source.postgres.stream.encoding.replay import Replay
from tailrace.source.postgres.stream.encoding.unsent_transaction import (
    SteppingEncoder,
    UnsentError,
    shortened,
    take_values_as_they_are,
)
from tailrace.source.postgres.stream.gap import append_gap, is_after_gap
from tailrace.source.postgres.stream.inbox import Inbox
from tailrace.source.postgres.stream.protocol import DEFAULTS, StreamOptions, plugin_options
from tailrace.source.postgres.stream.receiver import Receiver, Silence
from tailrace.source.postgres.stream.slot import confirmed_lsn, require_continuity, require_slot
from tailrace.source.postgres.stream.slot_holder import SlotHolder, is_at_work

LINGER_SECONDS = 0.02
"""How long a message may wait for company before it is written: one fsync serves them all."""
INBOX_BYTES_MAX = 6 << 20
"""Capture holds a few times this in memory: messages that come, those that are written, and their records."""
BACKOFF = Backoff(0.5, 30.0)
STANDBY_SECONDS = 1.0
"""How often a standby is looked at, which may be promoted."""

_TRANSIENT_CLASSES = (b"08", b"53", b"57", b"58")
"""SQLSTATEs of a lost connection, of missing resources, of a shutdown, of the system."""
_IN_USE = b"55006"


@dataclass(frozen=True)
class SlotStream:
    """What one capture reads."""

    dsn: str
    slot: str
    publications: tuple[str, ...]
    """The one that sends every kind of change, then the one for inserts, if there is one."""
    timeline: int
    history: History = FIRST
    skip_to: int = 0
    """Nothing that committed before this is taken, also where the log ends earlier."""
    text_columns: tuple[str, ...] = ()
    """Patterns for columns that a person wants as text."""
    options: StreamOptions = DEFAULTS
    unsent: str = ""
    """Why the server cannot send the next transaction. It is stepped over, and no other is taken."""


class LogFullError(TransientError):
    """The log has no room left for an open transaction and all that follows it, so its commit would never be read."""


def run(stream: SlotStream, writer: LogWriter, control: CaptureControl) -> None:
    """Capture until told to stop. Connects again for ever on transient errors, and reports them."""
    failures = 0
    options, unsent, holder = stream.options, "", SlotHolder(stream.options.alive_seconds)
    while not control.stopping.is_set():
        started = time.monotonic()
        try:
            with explained(stream.dsn):
                _stream(replace(stream, options=options, unsent=unsent), writer, control, holder)
            options, unsent = stream.options, ""
        except UnsentError as error:
            if unsent:
                raise GapError(f"{error.message}, neither as text nor in binary", REPAIR) from None
            control.report(error.message)
            if options.is_streaming:
                # It may be a value of an open transaction, which may never commit: first ask for whole ones alone.
                options = replace(stream.options, is_streaming=False)
            else:
                unsent = error.message
        except LogFullError as error:
            # The server keeps open transactions on its own disk until they commit. Asked for again with the next.
            control.report(error.message)
            options = replace(stream.options, is_streaming=False)
        except TransientError as error:
            options, unsent = stream.options, ""
            failures = 1 if time.monotonic() - started > 60 else failures + 1
            pause_seconds = BACKOFF.seconds(failures)
            control.report(f"{error.message}; trying again in {pause_seconds:.0f} s")
            control.stopping.wait(pause_seconds)


def _stream(stream: SlotStream, writer: LogWriter, control: CaptureControl, holder: SlotHolder) -> None:
    # A connection that streams takes no more commands, not even the commit that `with` would send.
    with connect_for_names(stream.dsn) as catalog_conn, closing(connect(stream.dsn, replication=True)) as conn:
        was_standby, identity = is_standby(catalog_conn), identify(conn)
        require_identity(writer.identity, identity)
        end = stream.history.lsn(writer.head.ordinal)
        require_same_timeline(conn, Read(stream.timeline, end, confirmed_lsn(catalog_conn, stream.slot)), identity)
        # What the last connection brought of open transactions is void, and all it brought of others is durable before
        # it is said where the log ends.
        writer.abandon_active((stream.history.gap_from or 0) if stream.history.is_void else 0)
        if not _flush(writer, control):
            return
        failpoint("capture.abandoned")
        if is_after_gap(stream.history, stream.skip_to, writer.head.ordinal) and (
            confirmed := confirmed_lsn(catalog_conn, stream.slot)
        ):
            append_gap(writer, catalog_conn, stream.history, max(confirmed, stream.history.lsn(stream.skip_to)))
            if not _flush(writer, control):
                return
            failpoint("capture.gap")
        require_wal(replace(identity, is_standby=was_standby), stream.history.lsn(writer.head.ordinal))
        known, begin = _known(stream, writer), _beginning(stream, writer)
        confirmed = require_continuity(catalog_conn, stream.slot, stream.history.lsn(writer.head.ordinal))
        logged = stream.history.lsn(writer.last_commit.ordinal)
        if max(confirmed, begin) <= logged:
            last = replace(writer.last_commit, ordinal=logged)
            known = replace(known, replay=Replay(last))
        encoding = _start_replication(conn, catalog_conn, stream, begin, holder)
        if not stream.unsent:
            control.report("")
        how = Announcing(stream.publications, stream.text_columns, stream.history)
        describe = partial(describe_announced, catalog_conn, how=how)
        encoder = StreamEncoder(known, describe)
        if stream.unsent:
            encoder = SteppingEncoder(known, describe, stream.unsent, encoding)
        confirming = Confirming(writer, control, stream.history, confirmed)
        inbox = Inbox(inbox_bytes_max(writer.options.quota_bytes))
        control.stopping.when_set(inbox.wake)
        receiver = Receiver(
            conn,
            inbox,
            lambda: confirming.upto(known.replay),
            lambda: control.is_paused,
            Silence(stream.options.silence_seconds_max, partial(is_at_work, stream.dsn, conn.info.backend_pid)),
            shortened if stream.unsent else None,
        )
        receiver.start()
        if not encoder.replay.is_awaited:
            control.prove()
        seconds = STANDBY_SECONDS if was_standby else stream.options.upkeep_seconds
        try:
            while not control.stopping.is_set() and not encoder.is_done:
                _require_publications(catalog_conn, stream.publications)
                _require_unmoved(catalog_conn, was_standby)
                _write(_Writing(inbox, encoder, writer, confirming), control, seconds)
                writer.retain(control.keep_seconds)
        finally:
            receiver.stop()


def _beginning(stream: SlotStream, writer: LogWriter) -> Lsn:
    """Where to ask the server to begin: at the last commit that the log has, not where the log ends. What `Replay` says
    of a server that was set back is why. It sends nothing twice unless its slot is confirmed no further.

    A log that has no commit yet may stand for one that was lost, and that may have had what was prepared before its
    last commit. The server has not been told of that, so it sends all of it again if we name no later place."""
    after_prepared = max((ordinal + 1 for ordinal in writer.prepared.values()), default=0)
    logged = (writer.last_commit.ordinal, after_prepared) if writer.is_begun else (0,)
    return stream.history.lsn(max(*logged, stream.history.gap_from or 0, stream.skip_to))


def _known(stream: SlotStream, writer: LogWriter) -> Known:
    """In the server's own positions."""
    lsn = stream.history.lsn
    prepared = {xid: int(lsn(ordinal)) for xid, ordinal in writer.prepared.items() if lsn(ordinal)}
    last, received = lsn(writer.last_commit.ordinal), lsn(writer.head.ordinal)
    if not writer.is_begun:
        # It may stand for one that was lost. What committed before its beginning is in the lake, in rows that were
        # copied or in versions of tables, and the server was not told of all of that.
        last = max(last, Lsn(received - 1))
    return Known(last, prepared, received, history=stream.history)


def _require_publications(conn: psycopg.Connection, names: tuple[str, ...]) -> None:
    """Since Postgres 18 a server that misses a publication sends nothing and does not say so."""
    for number, name in enumerate(names):
        if find_publication(conn, name, inserts=number > 0) is None:
            raise MovedError(
                f"publication {name} is gone: the server sends no more changes",
                "run the same command again: it makes the publication and copies again what was not sent",
            )


def inbox_bytes_max(quota_bytes: int | None) -> int:
    """An inbox is flushed at once. A log at its quota must find room for it when all else in it has been freed but for
    the segment that is being written, which has up to a quarter of the quota."""
    return INBOX_BYTES_MAX if quota_bytes is None else min(INBOX_BYTES_MAX, quota_bytes // 8)


def _require_unmoved(conn: psycopg.Connection, was_standby: bool) -> None:
    """A standby that is promoted streams on, on a timeline that is not stored yet."""
    if was_standby and not is_standby(conn):
        raise MovedError(
            "the standby that we read from was promoted; nothing that we have read is lost",
            "run the same command again: it continues where the log ends",
        )


class _Writing(NamedTuple):
    """What one connection writes."""

    inbox: Inbox
    encoder: StreamEncoder
    writer: LogWriter
    confirming: Confirming


def _write(writing: _Writing, control: CaptureControl, seconds: float) -> None:
    """Write what comes for a while."""
    inbox, encoder, writer, confirming = writing
    until = time.monotonic() + seconds
    while not control.stopping.is_set() and not encoder.is_done and time.monotonic() < until:
        messages = inbox.take(timeout_seconds=0.2, linger_seconds=LINGER_SECONDS)
        if not messages:
            continue
        batch = encoder.encode(messages)
        if not encoder.replay.is_awaited:
            control.prove()
        if _moves(batch, writer):
            _append(writer, batch)
            # Before it is durable: a transaction that this batch prepares holds back from the first moment.
            confirming.look()
            failpoint("capture.appended")
            _flush(writer, control, encoder)
            failpoint("capture.flushed")


def _append(writer: LogWriter, batch: pa.RecordBatch) -> None:
    try:
        writer.append(batch)
    except ValueError as error:
        hint = "the server sent transactions in an impossible order; see whether another process moved the slot"
        raise DefiniteError(f"the log does not take what the server sent: {error}", hint) from None


def _flush(writer: LogWriter, control: CaptureControl, encoder: StreamEncoder | None = None) -> bool:
    """Flush, waiting for room if there is none: the server keeps what we do not take. False if told to stop first."""
    waited = False
    while not control.stopping.is_set():
        try:
            writer.flush()
            if waited:
                control.report("")
            return True
        except LogBlockedError as error:
            waited = True
            if isinstance(error, LogHeldError) and encoder is not None and encoder.has_open_streams:
                raise LogFullError(f"{error.message}; open transactions wait at the server") from None
            control.report(f"{error.message}; waiting for room")
            control.stopping.wait(1.0)
            writer.retain(0.0)
    return False


def _moves(batch: pa.RecordBatch, writer: LogWriter) -> bool:
    """Whether the batch says anything new: an idle server repeats its position twice a second."""
    if batch.num_rows == 0:
        return False
    kinds = batch.column("kind").to_numpy()
    return bool((kinds != Kind.KEEPALIVE).any() or batch.column("ordinal").to_numpy().max() > writer.head.ordinal)


def _start_replication(
    conn: psycopg.Connection, catalog_conn: psycopg.Connection, stream: SlotStream, lsn: Lsn, holder: SlotHolder
) -> str:
    """What names in the stream are written in."""
    is_stepping = bool(stream.unsent)
    options = plugin_options(conn.info.server_version, stream.options, stream.publications, is_binary=is_stepping)
    listed = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.SQL(name), sql.Literal(options[name])) for name in options)
    command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(stream.slot), sql.SQL(str(lsn)), listed
    )
    encoding = "utf-8"
    if is_stepping:
        encoding = take_values_as_they_are(conn)
    else:
        take_text_as_it_is(conn)
    result = conn.pgconn.exec_(command.as_bytes(conn))
    if result.status == pq.ExecStatus.COPY_BOTH:
        return encoding
    reason = " ".join((result.error_message or b"").decode(errors="replace").split())
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    if state == _IN_USE:
        raise holder.problem(catalog_conn, stream.slot)
    if state is None or state[:2] in _TRANSIENT_CLASSES:
        raise TransientError(f"cannot stream from slot {stream.slot}: {reason}")
    require_slot(catalog_conn, stream.slot, lsn)
    raise DefiniteError(f"cannot stream from slot {stream.slot}: {reason}")
