"""The receiving side of capture: the server's messages in, the durable position out, whatever the disk is doing."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from select import select

import psycopg
from psycopg import pq

from tailrace.errors import DefiniteError, GapError, TailraceError, TransientError
from tailrace.source.postgres._timeline import REPAIR

FEEDBACK_SECONDS = 0.5
SILENCE_SECONDS_MAX = 120.0
"""A server that is asked all the time and does not answer for so long is looked at: a network that was cut says
nothing."""

_POSTGRES_EPOCH_SECONDS = 946_684_800
_UNDEFINED_OBJECT = b"42704"
_STATUS = struct.Struct(">cQQQqB")
_MESSAGES_AT_ONCE = 10_000
_OBJECT_BYTES = 64
"""What Python adds to a message."""


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
            self._bytes += sum(map(len, messages)) + _OBJECT_BYTES * len(messages)
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
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
    """Reads the socket into the inbox and confirms what is durable.

    While the inbox is full, or `is_paused` says so, nothing is read: the server's messages wait in the socket and then
    at the server, which keeps the connection because it still hears from us.
    """

    def __init__(
        self,
        conn: psycopg.Connection,
        inbox: Inbox,
        durable_ordinal: Callable[[], int],
        is_paused: Callable[[], bool],
        is_at_work: Callable[[], bool],
    ) -> None:
        """`is_at_work` is asked of a server that is silent: whether it reads its WAL for us at present."""
        super().__init__(name="receiver", daemon=True)
        self._pgconn = conn.pgconn
        self._inbox = inbox
        self._durable_ordinal = durable_ordinal
        self._is_paused = is_paused
        self._is_at_work = is_at_work
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            next_feedback = 0.0
            heard = time.monotonic()
            while not self._stopping.is_set():
                if time.monotonic() >= next_feedback:
                    self._confirm()
                    next_feedback = time.monotonic() + FEEDBACK_SECONDS
                if self._holds_back:
                    heard = time.monotonic()
                    self._stopping.wait(0.01)
                elif self._receive():
                    heard = time.monotonic()
                else:
                    self._wait(next_feedback)
                    if time.monotonic() - heard > SILENCE_SECONDS_MAX:
                        self._require_work()
                        heard = time.monotonic()
            self._confirm()
        except Exception as error:
            self._inbox.close(error)

    def stop(self) -> None:
        """Confirm what is durable once more and end."""
        self._stopping.set()
        self.join(timeout=10)

    @property
    def _holds_back(self) -> bool:
        return self._inbox.is_full or self._is_paused()

    def _require_work(self) -> None:
        """Transient unless the server is silent because of the WAL that it reads: a large transaction of other tables,
        or one of many definitions, can take it hours, and a new connection would begin with it again."""
        if not self._is_at_work():
            raise TransientError(f"the server has not answered for {SILENCE_SECONDS_MAX:.0f} s")

    def _receive(self) -> bool:
        """Hand over what libpq has buffered; False when it has nothing whole."""
        messages: list[bytes] = []
        get = self._pgconn.get_copy_data
        while len(messages) < _MESSAGES_AT_ONCE:
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
        if select([self._pgconn.socket], [], [], min(timeout_seconds, 0.1))[0]:
            self._pgconn.consume_input()

    def _confirm(self) -> None:
        ordinal = self._durable_ordinal()
        clock = int((time.time() - _POSTGRES_EPOCH_SECONDS) * 1_000_000)
        # Asking for a reply makes the server tell its position at once, also when it has nothing to send. Replies that
        # are not read would pile up at the server.
        wants_reply = not self._holds_back
        self._pgconn.put_copy_data(_STATUS.pack(b"r", ordinal, ordinal, ordinal, clock, wants_reply))
        self._pgconn.flush()


def _ending(pgconn: pq.abc.PGconn) -> TailraceError:
    """Why the server ended the stream."""
    result = pgconn.get_result()
    state = result.error_field(pq.DiagnosticField.SQLSTATE) if result else None
    text = (result.error_message if result else b"") or pgconn.error_message
    reason = " ".join(text.decode(errors="replace").split()) or "connection closed"
    if state == _UNDEFINED_OBJECT:
        # Up to Postgres 17 it looks a publication up as it was when the change was made, for every change.
        message = f"the server cannot send changes that were made while it had no publication for them: {reason}"
        return GapError(message, f"let nothing drop the publication; {REPAIR}")
    if state is not None and state.startswith(b"42"):
        return DefiniteError(f"the server refuses to stream: {reason}", "see what changed in the database")
    if state is not None and state.startswith(b"22"):
        hint = "the database's encoding has no UTF-8 for it; change the value and start a new lake in an empty folder"
        return DefiniteError(f"the server cannot send a value: {reason}", hint)
    return TransientError(f"the server ended the stream: {reason}")
