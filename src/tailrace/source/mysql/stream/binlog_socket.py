"""A connection that streams: the command that asks for the binlog, and the packets that follow.

    length 3  number 1  │  0  event         one packet; an event of 2^24-1 bytes or more takes several

The driver has connected and signed in. From the command on its socket is ours: a large piece is read at once and cut.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError

from tailrace.errors import DamageError, DefiniteError, GapError, TransientError
from tailrace.source.mysql.server.connection import ask, of_driver
from tailrace.source.mysql.stream.reading import AGAIN

HEARTBEAT_SECONDS = 1
READ_BYTES = 1 << 20
_TURN_SECONDS = 0.2
_SILENCE_TURNS_MAX = 300
"""A server that has nothing to send says so every second; one that is silent for longer than this is gone."""
_REGISTER, _DUMP = 0x15, 0x12
_SEND_ANNOTATIONS = 2
"""MariaDB leaves out events that it was not asked for, and their bytes would be missing in our count."""
_OK, _END, _ERROR = 0x00, 0xFE, 0xFF
_PACKET_BYTES_MAX = 0xFFFFFF
_FATAL_READING = 1236


class BinlogSocket:
    """Streams until it is closed. For one thread."""

    def __init__(self, connection: Connection[Any], server_id: int, uuid: str, is_mariadb: bool) -> None:
        self._connection = connection
        self._server_id = server_id
        self._is_mariadb = is_mariadb
        period = HEARTBEAT_SECONDS * 1_000_000_000
        ask(connection, "set @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32'")
        ask(connection, f"set @source_heartbeat_period = {period}, @master_heartbeat_period = {period}")
        # An answer to semi-synchronous replication would say that we keep what the server has lost.
        ask(connection, "set @rpl_semi_sync_replica = 0, @rpl_semi_sync_slave = 0")
        ask(connection, "set @replica_uuid = %s, @slave_uuid = %s", uuid, uuid)
        if is_mariadb:
            ask(connection, "set @mariadb_slave_capability = 4")
        self._buffer = bytearray()
        self._whole = bytearray()

    def begin(self, file: str, offset: int) -> None:
        """Ask for what follows."""
        connection = self._connection
        register = struct.pack("<I", self._server_id) + b"\0\0\0" + struct.pack("<HII", 0, 0, 0)
        connection._execute_command(_REGISTER, register)
        connection._read_ok_packet()
        flags = _SEND_ANNOTATIONS if self._is_mariadb else 0
        connection._execute_command(_DUMP, struct.pack("<IHI", offset, flags, self._server_id) + file.encode())
        connection._sock.settimeout(_TURN_SECONDS)

    def events(self) -> Iterator[list[bytes]]:
        """What has come, again and again; nothing where nothing came for a moment. Errors of the server are raised."""
        silent = 0
        while True:
            try:
                piece = self._connection._sock.recv(READ_BYTES)
            except TimeoutError:
                silent += 1
                if silent > _SILENCE_TURNS_MAX:
                    raise TransientError("the server has been silent for a minute") from None
                yield []
                continue
            if not piece:
                raise TransientError("the server closed the connection")
            silent = 0
            self._buffer += piece
            yield list(self._cut())

    def _cut(self) -> Iterator[bytes]:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 4:
            length = int.from_bytes(buffer[at : at + 3], "little")
            end = at + 4 + length
            if len(buffer) < end:
                break
            self._whole += buffer[at + 4 : end]
            at = end
            if length < _PACKET_BYTES_MAX:
                packet, self._whole = bytes(self._whole), bytearray()
                yield _event(packet)
        del buffer[:at]


def _event(packet: bytes) -> bytes:
    first = packet[0] if packet else _END
    if first == _OK:
        return packet[1:]
    if first == _ERROR:
        raise _refusal(struct.unpack_from("<H", packet, 1)[0], packet[9:].decode(errors="replace"))
    if first == _END and len(packet) < 9:
        raise TransientError("the server ended the stream")
    raise DamageError(f"the server sent a packet of kind {first}", "report it, with the version of the server")


def _refusal(code: int, reason: str) -> Exception:
    """What the server says when it cannot send. Its words are all that tells why."""
    text = f"the server cannot send its binlog: {reason}"
    if code != _FATAL_READING:
        return of_driver(OperationalError(code, reason), "the server cannot send its binlog")
    lower = reason.lower()
    if "same server_uuid" in lower or "same server_id" in lower or "slave with the same" in lower:
        return DefiniteError(text, "another reader has taken the number of this one; see what else reads this lake")
    if "could not find first log" in lower or "purged" in lower or "impossible position" in lower:
        return GapError(text, AGAIN)
    return TransientError(text)
