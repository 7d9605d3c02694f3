"""Where signals come from beside requests: a file that others append lines to, and a table of the source.

Neither keeps what it has read. It is given the place that it had got to, which the book of signals makes durable
together with the signals, and says the next one.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tailrace.changes.signal_rows import arrivals_in
from tailrace.connector.signals.orders import arrival_of
from tailrace.errors import DefiniteError
from tailrace.lake.records.signal_book import Place
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode
from tailrace.model.signal import DATA_CHARACTERS_MAX, FILE, Arrival
from tailrace.model.table import TableId

TAIL_BYTES = 64


@dataclass(frozen=True)
class FileLimits:
    """How much of a file of signals is held in memory."""

    line_bytes_max: int = 8 * DATA_CHARACTERS_MAX
    """A longer line is rejected."""
    read_bytes_max: int = 1 << 20
    """How much is read at once, and then the line at hand."""


class FileChannel:
    """Whole lines, each once, from the start of a file on.

    A file that took the other's place, or lost what had been read, is read from its start. One that is renamed while we
    run is read to its end first.
    """

    def __init__(self, path: Path, limits: FileLimits | None = None) -> None:
        """A definite error for what is there and cannot be read. There may be nothing yet."""
        self._path = path.absolute()
        self._limits = limits or FileLimits()
        self._file: BinaryIO | None = None
        try:
            is_file = not path.exists() or (path.is_file() and os.access(path, os.R_OK))
        except OSError:
            is_file = False
        if not is_file:
            raise DefiniteError(f"{path} cannot be read as a file of signals", "name a file that you may read")

    def read(self, place: Place | None) -> tuple[list[Arrival], Place | None]:
        """What was appended after `place`, and the place after it."""
        file = self._opened()
        if file is None:
            return [], place
        found = os.fstat(file.fileno())
        offset = self._offset(file, found, place)
        arrivals, end = _lines(file, offset, self._limits)
        if not arrivals and self._is_replaced(found):
            self.close()
            return [], place
        tail = os.pread(file.fileno(), min(end, TAIL_BYTES), max(0, end - TAIL_BYTES))
        return arrivals, {"path": str(self._path), "inode": found.st_ino, "offset": end, "tail": tail.hex()}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> BinaryIO | None:
        try:
            if self._file is None and stat.S_ISREG(self._path.stat().st_mode):
                self._file = self._path.open("rb")
        except OSError:
            return None
        return self._file

    def _offset(self, file: BinaryIO, found: os.stat_result, place: Place | None) -> int:
        """Where to continue; 0 unless this is the file of `place` and still has what was read."""
        if place is None or (place["path"], place["inode"]) != (str(self._path), found.st_ino):
            return 0
        end, tail = int(place["offset"]), bytes.fromhex(place["tail"])
        return end if os.pread(file.fileno(), len(tail), end - len(tail)) == tail and end <= found.st_size else 0

    def _is_replaced(self, found: os.stat_result) -> bool:
        try:
            return self._path.stat().st_ino != found.st_ino
        except OSError:
            return False


def _lines(file: BinaryIO, offset: int, limits: FileLimits) -> tuple[list[Arrival], int]:
    """The whole lines from `offset` on, and where they end. A last line without its end waits."""
    arrivals: list[Arrival] = []
    file.seek(offset)
    start, line_bytes_max = offset, limits.line_bytes_max
    while offset - start < limits.read_bytes_max:
        line = file.readline(line_bytes_max)
        last = line
        while last and not last.endswith(b"\n"):
            last = file.readline(line_bytes_max)
        if not last:
            break
        offset, length = file.tell(), file.tell() - offset
        if line.strip():
            arrival = arrival_of(line.decode(errors="surrogateescape"), FILE)
            is_long = length > line_bytes_max
            long = f"line: must have at most {line_bytes_max:,} bytes"
            arrivals.append(Arrival(arrival.signal, FILE, long) if is_long else arrival)
    return arrivals, offset


class TableChannel:
    """Rows that are inserted into one table of the source, each once. Columns count by their place: id, type, data."""

    def __init__(self, table: TableId, decode: Decode) -> None:
        self.table = table
        self._decode = decode
        self._relations: dict[int, bool] = {}
        """Whether the source's number is, or was, one of this table's."""

    def begin(self, place: Place | None, reader: LogReader | None) -> Place:
        """The place to begin at, to be made durable before the table is first sent: where the log ends now. A signal
        that is older than our first interest in the table is of no concern."""
        if place is not None and place["table"] == str(self.table):
            return place
        return self._place(reader, reader.head.seq if reader is not None else 0)

    def read(self, reader: LogReader, place: Place) -> tuple[list[Arrival], Place]:
        """What the log has after `place`, and the place after it. The log may have forgotten what holds no signal."""
        after = int(place["seq"]) if place["log"] == reader.id else 0
        after, upto = max(after, reader.oldest_seq - 1), reader.head.seq
        mine = [each for each in reader.relations(after, upto) if self._is_mine(reader, each)] if after < upto else []
        found = [
            arrival
            for relation in mine
            for arrival in arrivals_in(reader, self.table, (after, upto), self._decode, relation)
        ]
        return [arrival for _, arrival in sorted(found, key=lambda each: each[0])], self._place(reader, upto)

    def _place(self, reader: LogReader | None, seq: int) -> Place:
        return {"table": str(self.table), "log": reader.id if reader is not None else None, "seq": seq}

    def _is_mine(self, reader: LogReader, relation: int) -> bool:
        if relation not in self._relations:
            names = {version.schema.table for version in reader.schemas(relation)}
            self._relations[relation] = self.table in names
        return self._relations[relation]
