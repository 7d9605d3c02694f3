"""The rows of a COPY, in portions of its text.

The server sends one row a message, and libpq hands out one message a call, which takes nearly as long as parsing the
rows. Where the bytes come in the clear they are read past libpq instead, as many at a time as there are, and stay where
they are. Only the heads of the messages are written over, as one more column in front:

    d....7⇥open⏎d....8⇥done⏎    ->    ␣␣␣␣⇥7⇥open⏎␣␣␣␣⇥8⇥done⏎

The server could send such a column itself. But then it would build every row once more, where it otherwise prints
what its scan finds: a tenth of its time.

libpq has nothing to do meanwhile: the statement is sent past it too, and its answer is taken to the end. Where the
connection is encrypted, libpq is asked row by row, with the same result.
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

from tailrace.source.postgres._queries import load

PORTION_BYTES = 8 << 20
PATIENCE_SECONDS = 1.0
"""What has come is passed on when nothing more comes for so long."""

_DATA, _ERROR, _READY = b"dEZ"
_LINE_END = 0x0A
_HEAD = struct.Struct(">Bi")
_COLUMN = b"\t"
_BLANK = np.void(_COLUMN.rjust(_HEAD.size))
_LENGTH_MIN = 4
"""A length counts itself."""
_NOTHING_TO_BIND = bytes(8)
_QUERIES = load("copy_out.sql")


class Portion(NamedTuple):
    """Some whole rows. Good until the next portion is asked for."""

    text: memoryview
    """Postgres's text format, with one more column in front, which is to be ignored."""
    rows: int
    row_bytes_max: int
    """No row is longer."""


def portions(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    """What a `copy … to stdout` sends. An error of the driver's where the server refuses it, also in the middle."""
    encrypted = conn.pgconn.ssl_in_use or (conn.execute(_QUERIES["is_encrypted"]).fetchone() or (True,))[0]
    return _by_libpq(conn, statement) if encrypted else _past_libpq(conn, statement)


def _by_libpq(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    pgconn = conn.pgconn
    # With parameters, if only none: the server then takes one statement alone.
    result = pgconn.exec_params(statement, None)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    received, rows, longest = bytearray(), 0, 0
    while True:
        length, row = pgconn.get_copy_data(0)
        if length < 0:
            break
        received += _COLUMN
        received += row
        rows, longest = rows + 1, max(longest, len(_COLUMN) + length)
        if len(received) >= PORTION_BYTES:
            yield Portion(memoryview(received), rows, longest)
            received, rows, longest = bytearray(), 0, 0
    ended = list(iter(pgconn.get_result, None))
    for each in ended:
        if each.status != pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(each)
    if rows:
        yield Portion(memoryview(received), rows, longest)


def _past_libpq(conn: psycopg.Connection, statement: bytes) -> Iterator[Portion]:
    with closing(socket.socket(fileno=os.dup(conn.pgconn.socket))) as server:
        server.settimeout(PATIENCE_SECONDS)
        parse, bind, execute = b"\0" + statement + b"\0\0\0", _NOTHING_TO_BIND, bytes(5)
        server.sendall(b"".join(map(_message, b"PBES", (parse, bind, execute, b""))))
        yield from _Answer(server).portions()


def _message(kind: int, body: bytes) -> bytes:
    return _HEAD.pack(kind, len(body) + _LENGTH_MIN) + body


class _Answer:
    """What the server says to one statement, up to the point where it is ready for the next."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._buffer = bytearray(PORTION_BYTES)
        self._begin = self._end = 0
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
        view = memoryview(self._buffer)
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
        if len(rest) == len(self._buffer):
            self._buffer = bytearray(2 * len(rest))
        self._buffer[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)

    def _taken(self) -> Iterator[Portion]:
        """All whole messages that are there."""
        while self._end - self._begin >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._buffer, self._begin)
            upto = self._begin + 1 + length
            if length < _LENGTH_MIN:
                raise psycopg.OperationalError("the server sent something that is no message")
            if upto > self._end:
                return
            if kind == _DATA:
                upto, rows, longest = without_heads(self._buffer, self._begin, self._end)
                yield Portion(memoryview(self._buffer)[self._begin : upto], rows, longest)
            elif kind == _ERROR:
                self._error = _error_of(bytes(self._buffer[self._begin + _HEAD.size : upto]))
            elif kind == _READY:
                self._is_over = True
            self._begin = upto


def without_heads(buffer: bytearray, begin: int, end: int) -> tuple[int, int, int]:
    """Write over the heads of the rows from `begin` on, up to the first message that is none or not whole; where that
    is, how many rows, and the length of the longest."""
    starts, upto = _guessed(buffer, begin, end) or _walked(buffer, begin, end)
    _at_every_byte(buffer, _BLANK.dtype, 0)[starts] = _BLANK
    return upto, len(starts), int(np.diff(starts, append=upto).max())


def _at_every_byte(buffer: bytearray, type_: Any, first: int) -> np.ndarray:
    """One value from each byte on, from the `first` one, as far as there is a head: they overlap."""
    return np.ndarray(max(0, len(buffer) - _HEAD.size + 1), type_, buffer, first, (1,))


def _guessed(buffer: bytearray, begin: int, end: int) -> tuple[np.ndarray, int] | None:
    """Where rows begin if each `d` after the end of a line begins one; None if that does not add up: a row may contain
    such a place. It is right where every row ends at the next."""
    data = np.frombuffer(buffer, np.uint8)
    after = begin + 1 + np.flatnonzero(data[begin : end - _HEAD.size] == _LINE_END)
    starts = np.concatenate(([begin], after[data[after] == _DATA]))
    following = starts + 1 + _at_every_byte(buffer, ">u4", 1)[starts]
    if (following[:-1] != starts[1:]).any():
        return None
    return (starts, int(following[-1])) if following[-1] <= end else (starts[:-1], int(starts[-1]))


def _walked(buffer: bytearray, begin: int, end: int) -> tuple[np.ndarray, int]:
    """The same, row by row."""
    starts = []
    while end - begin >= _HEAD.size:
        kind, length = _HEAD.unpack_from(buffer, begin)
        if kind != _DATA or begin + 1 + length > end:
            break
        starts.append(begin)
        begin += 1 + length
    return np.array(starts, np.int64), begin


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
