"""The rows of a COPY, in portions of its messages.

The server sends one row a message, and libpq hands out one message a call, which takes longer than reading the values
in it. Where the bytes come in the clear they are read past libpq instead, as many at a time as there are, and stay
where they are.

libpq has nothing to do meanwhile: the statement is sent past it too, and its answer is taken to the end. Where the
connection is encrypted, only libpq can read it, and has no call for more than one row. So it is asked row by row, with
the same result: some 0.35 µs of the reader's processor time more for each row (`benchmarks.snapshot --tls`).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import pq

from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.rows.copy_kernel import SLACK, rows_end

PORTION_BYTES = 1 << 20
PATIENCE_SECONDS = 1.0
"""What has come is passed on when nothing more comes for so long."""

_DATA, _ERROR, _READY = b"dEZ"
_HEAD = struct.Struct(">Bi")
_LENGTH_MIN = 4
"""A length counts itself."""
_NOTHING_TO_BIND = bytes(8)
_QUERIES = load("rows/copy_out.sql")


class Portion(NamedTuple):
    """Some whole rows, a message each, with `SLACK` bytes on both sides. Good until the next portion is asked for."""

    buffer: bytearray
    begin: int
    end: int


def portions(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    """What a `copy … to stdout` sends. An error of the driver's where the server refuses it, also in the middle."""
    encrypted = conn.pgconn.ssl_in_use or (conn.execute(_QUERIES["is_encrypted"]).fetchone() or (True,))[0]
    return by_libpq(conn, statement) if encrypted else past_libpq(conn, statement)


def by_libpq(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    pgconn = conn.pgconn
    # With parameters, if only none: the server then takes one statement alone.
    result = pgconn.exec_params(statement, None)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    received = bytearray(SLACK)
    while True:
        length, row = pgconn.get_copy_data(0)
        if length < 0:
            break
        # In two steps: to join the two first would copy each row once more.
        received += _HEAD.pack(_DATA, length + _LENGTH_MIN)
        received += row
        if len(received) >= PORTION_BYTES:
            yield _portion(received)
            received = bytearray(SLACK)
    ended = list(iter(pgconn.get_result, None))
    for each in ended:
        if each.status != pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(each)
    if len(received) > SLACK:
        yield _portion(received)


def _portion(received: bytearray) -> Portion:
    return Portion(received + bytes(SLACK), SLACK, len(received))


def past_libpq(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    with closing(socket.socket(fileno=os.dup(conn.pgconn.socket))) as server:
        server.settimeout(PATIENCE_SECONDS)
        parse, bind, execute = b"\0" + statement + b"\0\0\0", _NOTHING_TO_BIND, bytes(5)
        server.sendall(b"".join(map(_message, b"PBES", (parse, bind, execute, b""))))
        yield from _Answer(server).portions()


def _message(kind: int, body: bytes | memoryview) -> bytes:
    return b"".join((_HEAD.pack(kind, len(body) + _LENGTH_MIN), body))


class _Answer:
    """What the server says to one statement, up to the point where it is ready for the next."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._buffer = bytearray(PORTION_BYTES)
        self._begin = self._end = SLACK
        """The bytes that have come and were not looked at."""
        self._error: psycopg.Error | None = None
        self._is_over = False

    def portions(self) -> Iterator[Portion]:
        while not self._is_over:
            self._receive()
            yield from self._taken()
        if self._error is not None:
            raise self._error

    def _receive(self) -> None:
        """Fill the buffer, or wait for as long as it is worth."""
        self._make_room()
        view = memoryview(self._buffer)[:-SLACK]
        while self._end < len(view):
            try:
                count = self._server.recv_into(view[self._end :])
            except TimeoutError:
                return
            except OSError as error:
                raise psycopg.OperationalError(f"connection lost: {error.strerror}") from None
            if not count:
                raise self._error or psycopg.OperationalError("the server closed the connection unexpectedly")
            self._end += count
            if self._buffer[self._end - 6 : self._end - 1] == b"Z\0\0\0\5":
                return

    def _make_room(self) -> None:
        """The rest of a message comes to the front; one that fills all of the buffer gets a larger one."""
        rest = self._buffer[self._begin : self._end]
        if len(rest) == len(self._buffer) - 2 * SLACK:
            self._buffer = bytearray(2 * len(self._buffer))
        self._begin, self._end = SLACK, SLACK + len(rest)
        self._buffer[self._begin : self._end] = rest

    def _taken(self) -> Iterator[Portion]:
        """All whole messages that are there."""
        while self._end - self._begin >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._buffer, self._begin)
            upto = self._begin + 1 + length
            if length < _LENGTH_MIN:
                raise psycopg.OperationalError("the server sent something that is not a message")
            if upto > self._end:
                return
            if kind == _DATA:
                upto = rows_end(np.frombuffer(self._buffer, np.uint8), self._begin, self._end)
                yield Portion(self._buffer, self._begin, upto)
            elif kind == _ERROR:
                self._error = _error_of(bytes(self._buffer[self._begin + _HEAD.size : upto]))
            elif kind == _READY:
                self._is_over = True
            self._begin = upto


def _error_of(fields: bytes) -> psycopg.Error:
    """The server's error, as the driver would have raised it."""
    said = {field[0]: field[1:] for field in fields.split(b"\0") if field}
    info: Any = {int(field): said.get(int(field)) for field in pq.DiagnosticField}
    message = said.get(int(pq.DiagnosticField.MESSAGE_PRIMARY), b"").decode(errors="replace")
    try:
        kind = psycopg.errors.lookup(said.get(int(pq.DiagnosticField.SQLSTATE), b"").decode())
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(message, info=info)
