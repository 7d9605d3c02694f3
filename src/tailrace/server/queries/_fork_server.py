"""The fork server of queries in DuckDB: a process for each query, which gets no more of anything than it may take.

    server ── one connection for each query, and its seconds ──▶ fork server ── fork ──▶ a process for one query

The fork server has everything loaded, so a fork takes milliseconds. The fork gets no more memory than it may take,
writes no file and is killed when its time is over. It answers on the query's connection. No fork lives longer than the
fork server, and that lives no longer than the server.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path

from tailrace.forks.server import serve
from tailrace.lake import formats
from tailrace.read.duckdb import names_in
from tailrace.read.names import Dialect, TableNames
from tailrace.server.queries._confined_duckdb import MEMORY_BYTES_MAX, ask
from tailrace.server.queries._wire import ANSWER, ERROR, framed, read_request, told
from tailrace.source import kinds

PROCESS_BYTES_MAX = MEMORY_BYTES_MAX + (512 << 20)
"""What one query's process may take: what DuckDB counts, the log's tail, and the answer."""
NICE = 5


def preload(_: str) -> None:
    """All that a query needs."""
    names_in("select 1")
    TableNames([], Dialect.DUCKDB).read("select 1")
    formats.format_named(formats.DEFAULT)
    for kind in kinds.known():
        kinds.codec_of(kind)


def answer_one(files: list[int]) -> int:
    """Read the request that comes whole, and send its answer, or why there is none."""
    _limit()
    with socket.socket(fileno=files[0]) as connection:
        with connection.makefile("rb") as sent:
            home, query = read_request(sent.read())
        try:
            frame = framed(ANSWER, ask(home, query))
        except BaseException as error:
            frame = framed(ERROR, told(error))
        connection.sendall(frame)
    return 0


def _limit() -> None:
    """Bound what this process may take. Where memory is short, it dies first."""
    sys.dont_write_bytecode = True
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.nice(NICE)
    for limit, value in (
        (resource.RLIMIT_DATA, _taken_bytes() + PROCESS_BYTES_MAX),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))


def _taken_bytes() -> int:
    """What this process has mapped to write to already, most of it shared with the one it was forked from."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    serve(preload, answer_one, kills_forks=True)
