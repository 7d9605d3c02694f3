"""The receiving side of capture: the server's messages in, the durable position out, whatever the disk is doing."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from select import select
from typing import NamedTuple

import psycopg
from psycopg import pq

from tailrace.errors import DefiniteError, GapError, TailraceError, TransientError
from tailrace.source.postgres.server.timeline import REPAIR
from tailrace.source.postgres.stream.encoding.unsent_transaction import UnsentError
from tailrace.source.postgres.stream.inbox import Inbox, Messages
from tailrace.stop import Stop

FEEDBACK_SECONDS = 0.5
GATHER_SECONDS = 0.001
"""How long messages may gather in the socket while more and more come. A server that wakes us for each of them is
slowed down by it. A first message after a silence is read at once."""
ANSWER_SECONDS = 5.0
"""An idle server may have just finished its work; give it this long to answer."""

_UNDEFINED_OBJECT = b"42704"
_POSTGRES_EPOCH_SECONDS = 946_684_800
_TOO_LARGE = b"invalid memory alloc request size"
"""What the server says of a value whose text would be larger than it can hold, with a state that says nothing."""
_STATUS = struct.Struct(">cQQQqB")
_MESSAGES_AT_ONCE = 10_000


class Silence(NamedTuple):
    """When a silent server is looked at, and whether it then reads its WAL for us."""

    seconds_max: float
    is_at_work: Callable[[], bool]


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
        silence: Silence,
        shorten: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """What `shorten` leaves of a message is handed over."""
        super().__init__(name="receiver", daemon=True)
        self._pgconn = conn.pgconn
        self._inbox = inbox
        self._durable_ordinal = durable_ordinal
        self._is_paused = is_paused
        self._silence = silence
        self._shorten = shorten
        self._stopping = Stop()
        self._keeps_coming = False
        """Messages have come since we last waited for some."""

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
                    if time.monotonic() - heard > self._silence.seconds_max:
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
        if not self._silence.is_at_work() and not self._is_readable(ANSWER_SECONDS):
            raise TransientError(f"the server has not answered for {self._silence.seconds_max:.0f} s")

    def _receive(self) -> bool:
        """Hand over what libpq has buffered; False when it has nothing whole."""
        messages = Messages()
        data, lengths, get = messages.data, messages.lengths, self._pgconn.get_copy_data
        while len(lengths) < _MESSAGES_AT_ONCE:
            size, message = get(1)
            if size > 0:
                handed = message if self._shorten is None else self._shorten(bytes(message))
                data += handed
                lengths.append(len(handed))
            elif size == 0:
                break
            else:
                self._inbox.put(messages)
                raise _ending(self._pgconn)
        if messages:
            self._inbox.put(messages)
            self._keeps_coming = True
        return bool(messages)

    def _wait(self, until: float) -> None:
        if self._keeps_coming and not self._is_readable(0.0):
            time.sleep(GATHER_SECONDS)
        self._keeps_coming = False
        timeout_seconds = max(0.0, until - time.monotonic())
        if self._is_readable(min(timeout_seconds, 0.1)):
            self._pgconn.consume_input()

    def _is_readable(self, timeout_seconds: float) -> bool:
        return bool(select([self._pgconn.socket], [], [], timeout_seconds)[0])

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
        return GapError(message, f"make sure that nothing drops the publication; {REPAIR}")
    if state is not None and state.startswith(b"42"):
        return DefiniteError(f"the server refuses to stream: {reason}", "see what changed in the database")
    if state is not None and (state.startswith((b"22", b"54")) or _TOO_LARGE in text):
        return UnsentError(f"the server cannot send a value: {reason}")
    return TransientError(f"the server ended the stream: {reason}")
