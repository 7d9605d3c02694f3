"""What tests read of a real server's binlog: a small client of its own, which shares no code with the product."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.mysql_servers import MARIADB, MySqlServer

_EOF, _ERROR = 0xFE, 0xFF
_DUMP, _NON_BLOCKING, _WITH_ANNOTATIONS = 0x12, 1, 2
SERVER_ID = 77


def position(server: MySqlServer) -> tuple[str, int]:
    """Where the server's binlog ends."""
    statement = "show master status" if server.make is MARIADB else "show binary log status"
    file, at, *_ = server.execute(statement)[0]
    return file, at


def raw_events(server: MySqlServer, begin: tuple[str, int]) -> Iterator[bytes]:
    """The bytes of each event from a position to the end, with headers and checksums. The description of the file's
    events comes first."""
    file, at = begin
    with server.connect() as conn:
        cursor = conn.cursor()
        cursor.execute("set @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32'")
        if server.make is MARIADB:
            cursor.execute("set @mariadb_slave_capability = 4")
        flags = _NON_BLOCKING | (_WITH_ANNOTATIONS if server.make is MARIADB else 0)
        body = struct.pack("<IHI", at, flags, SERVER_ID) + file.encode()
        conn._execute_command(_DUMP, body)
        while True:
            packet = conn._read_packet()
            data = packet._data
            if data[0] == _EOF and len(data) < 9:
                return
            assert data[0] == 0, data
            yield bytes(data[1:])
