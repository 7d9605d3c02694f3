"""The SQLSTATE with which a server refuses a connection.

libpq keeps only the text of a refusal, in the server's language. It can be asked to write the SQLSTATE instead, but
only between the start of a connection and its first answer, and the driver does not pass that on. So the call is made
in the library that the driver has loaded. Where that library is not found, nothing is known.
"""

from __future__ import annotations

import ctypes
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from select import select

import psycopg
from psycopg import pq

_SQLSTATE_ONLY = 3
_SECONDS_MAX = 10.0
_STATE = re.compile(r":\s+([0-9A-Z]{5})\s*$", re.MULTILINE)
_MAPS = Path("/proc/self/maps")


def refused_with(conninfo: str) -> str | None:
    """The SQLSTATE of the last server that is tried. None where no server answers, or it cannot be known."""
    library = _libpq()
    if library is None:
        return None
    try:
        conn = pq.PGconn.connect_start(conninfo.encode())
    except psycopg.Error:
        return None
    try:
        library.PQsetErrorVerbosity(ctypes.c_void_p(getattr(conn, "pgconn_ptr")), _SQLSTATE_ONLY)  # noqa: B009
        _answered(conn)
        found = _STATE.findall(conn.error_message.decode(errors="replace"))
    except (psycopg.Error, OSError, ValueError):
        return None
    finally:
        conn.finish()
    return found[-1] if found else None


def _answered(conn: pq.abc.PGconn) -> None:
    """Returns when the connection is made or refused, or after some seconds."""
    deadline = time.monotonic() + _SECONDS_MAX
    status: int = pq.PollingStatus.WRITING
    while status in (pq.PollingStatus.READING, pq.PollingStatus.WRITING) and time.monotonic() < deadline:
        sockets = [conn.socket]
        is_reading = status == pq.PollingStatus.READING
        select(sockets if is_reading else [], [] if is_reading else sockets, [], max(0.0, deadline - time.monotonic()))
        status = conn.connect_poll()


@cache
def _libpq() -> ctypes.CDLL | None:
    with suppress(OSError, AttributeError):
        paths = {line.split(None, 5)[-1] for line in _MAPS.read_text().splitlines() if "libpq" in line}
        for path in sorted(paths):
            library = ctypes.CDLL(path)
            library.PQsetErrorVerbosity.restype = ctypes.c_int
            return library
    return None
