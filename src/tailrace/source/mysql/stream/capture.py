"""Capture: the server's binlog into the log.

One thread reads, encodes and writes. The server need not hear how far we are: its binlog stays as long as it is set to.
So capture reads as fast as the disk takes it. While the log has no room, it reads nothing, and where the server then
closes the connection, it begins again after the last transaction that is durable.

What survives a crash: everything the log's head covers. A transaction whose end was not flushed is forgotten at the
next start, and read again from its first event.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tailrace.errors import DefiniteError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.write.writer import LogBlockedError, LogWriter
from tailrace.model.backoff import Backoff
from tailrace.model.kind import Kind
from tailrace.source.door.control import CaptureControl
from tailrace.source.mysql.server.address import ServerAddress
from tailrace.source.mysql.server.connection import connected
from tailrace.source.mysql.server.identity import identify, require_identity
from tailrace.source.mysql.stream.binlog_socket import BinlogSocket
from tailrace.source.mysql.stream.claims import BinlogClaim, begin_of_dump, require_continuity
from tailrace.source.mysql.stream.encoder import BinlogEncoder
from tailrace.source.mysql.stream.places import BinlogPlace, file_name

BATCH_BYTES = 6 << 20
"""As much is encoded before it is given to the log, however large a transaction is."""
BACKOFF = Backoff(0.5, 30.0)
RETAIN_SECONDS = 1.0
_STEADY_SECONDS = 60
_PAUSE_SECONDS = 0.1


def run(address: ServerAddress, claim: BinlogClaim, writer: LogWriter, control: CaptureControl) -> None:
    """Capture until told to stop. Connects again for ever on transient errors, and reports them."""
    failures = 0
    while not control.stopping.is_set():
        started = time.monotonic()
        try:
            _stream(address, claim, writer, control)
        except TransientError as error:
            failures = 1 if time.monotonic() - started > _STEADY_SECONDS else failures + 1
            pause_seconds = BACKOFF.seconds(failures)
            control.report(f"{error.message}; trying again in {pause_seconds:.0f} s")
            control.stopping.wait(pause_seconds)


def _stream(address: ServerAddress, claim: BinlogClaim, writer: LogWriter, control: CaptureControl) -> None:
    # What the last connection brought of open transactions is void before it is said where the log ends. So is what
    # was prepared in a history that the server has left.
    writer.abandon_active(BinlogPlace(BinlogPlace.of(claim.begin).history, 0, 0).ordinal)
    if not _flush(writer, control):
        return
    failpoint("capture.abandoned")
    with _begun(address, claim, writer, control) as (socket, encoder):
        retain_at = time.monotonic() + RETAIN_SECONDS
        for events in socket.events():
            for event in events:
                encoder.take(event)
                if encoder.records.bytes > BATCH_BYTES:
                    _append(writer, encoder.records.take())
            if encoder.records and _moves(batch := encoder.records.take(), writer):
                _append(writer, batch)
                failpoint("capture.appended")
                _flush(writer, control)
                failpoint("capture.flushed")
            if time.monotonic() >= retain_at:
                writer.retain(control.keep_seconds)
                retain_at = time.monotonic() + RETAIN_SECONDS
            while control.is_paused and not control.stopping.is_set():
                control.stopping.wait(_PAUSE_SECONDS)
            if control.stopping.is_set():
                return


@contextmanager
def _begun(
    address: ServerAddress, claim: BinlogClaim, writer: LogWriter, control: CaptureControl
) -> Iterator[tuple[BinlogSocket, BinlogEncoder]]:
    """The stream of what follows the log's end, from a server that has shown that it has that."""
    with connected(address) as connection:
        identity = identify(connection)
        require_identity(writer.identity, identity)
        place = resume_place(claim, writer)
        require_continuity(connection, identity, place, writer.last_commit)
        place = begin_of_dump(connection, identity, place)
        socket = BinlogSocket(connection, claim.server_id, claim.uuid, identity.is_mariadb)
        socket.begin(file_name(claim.base, place.file), place.offset)
        control.report("")
        control.prove()
        yield socket, BinlogEncoder(place, claim.base, writer.prepared)


def resume_place(claim: BinlogClaim, writer: LogWriter) -> BinlogPlace:
    """After the last transaction that the log has, be it committed or prepared."""
    return BinlogPlace.of(max(claim.begin, writer.received.ordinal, *writer.prepared.values(), 0))


def _append(writer: LogWriter, batch: pa.RecordBatch) -> None:
    try:
        writer.append(batch)
    except ValueError as error:
        hint = "report it, with the version of the server"
        raise DefiniteError(f"the log does not take what the server sent: {error}", hint) from None


def _flush(writer: LogWriter, control: CaptureControl) -> bool:
    """Flush, waiting for room if there is none. False if told to stop first."""
    waited = False
    while not control.stopping.is_set():
        try:
            writer.flush()
        except LogBlockedError as error:
            waited = True
            control.report(f"{error.message}; waiting for room")
            control.stopping.wait(1.0)
            writer.retain(0.0)
            continue
        if waited:
            control.report("")
        return True
    return False


def _moves(batch: pa.RecordBatch, writer: LogWriter) -> bool:
    """Whether the batch says anything new: an idle server repeats its position every second."""
    kinds = batch.column("kind").to_numpy()
    newest = int(batch.column("ordinal").to_numpy().max())
    return bool((kinds != Kind.KEEPALIVE).any() or newest > writer.received.ordinal)
