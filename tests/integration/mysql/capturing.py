"""Capture of a real server in a thread of the test, and what its log amounts to."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from tests.integration.mysql.binlog import position
from tests.mysql_servers import HOST, MARIADB, MySqlServer
from tests.postgres import wait_until

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.ordering import in_order
from tailrace.errors import TailraceError
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import DEFAULTS, LogOptions, LogWriter
from tailrace.model.change import BEFORE, OP, POS, SEQ, UNCHANGED
from tailrace.model.table import TableId
from tailrace.source.door.control import CaptureControl
from tailrace.source.mysql.server.address import ServerAddress, parse_address
from tailrace.source.mysql.server.connection import connected
from tailrace.source.mysql.server.identity import ServerIdentity, identify
from tailrace.source.mysql.stream import capture
from tailrace.source.mysql.stream.claims import BinlogClaim
from tailrace.source.mysql.stream.places import BinlogPlace, file_of
from tailrace.source.mysql.stream.transactions import of_detail
from tailrace.source.mysql.values.row_changes import decode


def address_of(server: MySqlServer) -> ServerAddress:
    return parse_address(f"mysql://root@{HOST}:{server.port}/")


def claim_of(server: MySqlServer) -> tuple[BinlogClaim, ServerIdentity]:
    with connected(address_of(server)) as connection:
        identity = identify(connection)
        return BinlogClaim.made(connection, identity), identity


class Capturing:
    """Runs inside `with`, and again in the next one. Remembers what was reported and what it died of."""

    def __init__(self, server: MySqlServer, log: Path, options: LogOptions = DEFAULTS) -> None:
        self.claim, self.identity = claim_of(server)
        self.log = log
        self.server = server
        self.reports: list[str] = []
        self.error: TailraceError | None = None
        self._options = options

    def __enter__(self) -> Capturing:
        self.control = CaptureControl(self.reports.append, keep_seconds=0.0)
        self.error = None
        self._writer = LogWriter.open(self.log, self.identity.log_identity, self._options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.control.stopping.set()
        self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        try:
            capture.run(address_of(self.server), self.claim, self._writer, self.control)
        except TailraceError as error:
            self.error = error

    def reaches(self, history: int = 0) -> None:
        """Waits until the log has everything that the server has committed."""
        name, offset = position(self.server)
        end = BinlogPlace(history, file_of(name)[1], offset).ordinal
        wait_until(lambda: self.error is not None or self._writer.received.ordinal >= end)
        assert self.error is None, self.error

    def fails(self) -> TailraceError:
        """Waits until it has ended."""
        wait_until(lambda: self.error is not None)
        assert self.error is not None
        return self.error

    @property
    def prepared(self) -> int:
        return len(self._writer.prepared)


def reader_of(log: Path) -> LogReader:
    reader = LogReader(log)
    reader.refresh()
    return reader


def names(log: Path) -> list[str]:
    """Of the log's transactions, in their order."""
    reader = reader_of(log)
    rows = reader.transactions(reader.oldest_seq - 1, reader.head.seq).to_pylist()
    return [of_detail(row["detail"])[1] for row in rows]


def names_at(server: MySqlServer, begin: tuple[str, int]) -> list[str]:
    """Of the transactions that the server itself lists in its files from a position on."""
    found = []
    for name, *_ in server.execute("show binary logs"):
        if name < begin[0]:
            continue
        start = begin[1] if name == begin[0] else 4
        for row in server.execute(f"show binlog events in '{name}' from {start}"):
            if row[2].lower().endswith("gtid"):
                pattern = r"GTID (\d+-\d+-\d+)" if server.make is MARIADB else r"GTID_NEXT= '([^']+)'"
                match = re.search(pattern, row[5])
                assert match is not None, row
                found.append(match[1])
    return found


def replayed(log: Path, table: TableId) -> dict[int, dict[str, Any]]:
    """The rows of a table that had none, after all that the log tells of it, a change at a time."""
    reader = reader_of(log)
    shape = touched_shape(reader, table, (0, reader.head.seq), decode)
    if shape is None:
        return {}
    changes = Changes.of(reader, shape, (0, reader.head.seq)).table()
    rows: dict[int, dict[str, Any]] = {}
    for change in in_order(changes, (SEQ, POS)).to_pylist():
        row = {name: change[name] for name in shape.target.names}
        match change[OP]:
            case "t":
                rows.clear()
            case "d":
                del rows[change[BEFORE]["id"]]
            case "c":
                assert row["id"] not in rows
                rows[row["id"]] = row
            case _:
                old = rows.pop(change[BEFORE]["id"])
                rows[row["id"]] = row | {name: old[name] for name in change[UNCHANGED] or []}
    return rows


def assert_log_is_the_table(server: MySqlServer, log: Path, database: str, name: str = "t") -> None:
    with server.connect(database) as conn, conn.cursor() as cursor:
        cursor.execute(f"select * from {name}")
        columns = [each[0] for each in cursor.description]
        said = {row[0]: dict(zip(columns, row, strict=True)) for row in cursor.fetchall()}
    assert replayed(log, TableId(database, name)) == said
