"""The desk at which signals arrive: every channel is read there, and each signal enters the book once.

requests ─┐
file     ─┼─▶ judged ─▶ signals.json, with the places of the channels ─▶ orders
table    ─┘
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.connector.signals.channels import FileChannel, TableChannel
from tailrace.connector.signals.orders import Order, Rejection, judged, order_of
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome
from tailrace.lake.records.signal_book import Place
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode
from tailrace.model.signal import FILE, TABLE, Arrival, SignalRecord, SignalState
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings


@dataclass(frozen=True)
class OpenSignal:
    """A signal that has not ended, and what it asks for."""

    record: SignalRecord
    order: Order

    @property
    def id(self) -> str:
        return self.record.signal.id


class SignalDesk:
    """One thread. What `take` returns is in the book; `open_signals` has it again after a crash."""

    def __init__(self, home: LakeHome, settings: ConnectorSettings, decode: Decode) -> None:
        """A definite error for a file that cannot be read."""
        file, table = settings.signal_file, settings.signal_table
        self._book = home.signals.book
        self._requests = home.signals.requests
        self._file = FileChannel(file) if file is not None else None
        self._table = TableChannel(TableId.parse(table), decode) if table is not None else None
        self._is_guest = settings.is_guest
        self._place = self._book.place(TABLE)
        """How far the log has been looked through; in the book whenever something was found."""

    def begin(self, reader: LogReader | None) -> None:
        """Call before the source is prepared, with the log if there is one: what is inserted into the signal table
        from now on counts. Durable when this returns."""
        if self._table is not None:
            self._place = self._table.begin(self._place, reader)
            self._book.enter([], {TABLE: self._place})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def seq(self) -> int | None:
        """The log must keep what comes after this transaction; None without a signal table. One that others read counts
        where they will come back."""
        is_read = self._table is not None or self._is_guest
        return int(self._place["seq"]) if is_read and self._place is not None else None

    def take(self, reader: LogReader | None) -> list[OpenSignal]:
        """What has arrived since, oldest first within each channel. Durable when this returns."""
        asked = list(self._requests.signals())
        arrivals = [Arrival(signal, "request") for signal, _ in asked]
        places: dict[str, Place] = {}
        if self._file is not None:
            lines, place = self._file.read(self._book.place(FILE))
            arrivals += lines
            if place is not None and place != self._book.place(FILE):
                places[FILE] = place
        looked = self._place
        if self._table is not None and self._place is not None and reader is not None:
            rows, looked = self._table.read(reader, self._place)
            arrivals += rows
        new: list[SignalRecord] = []
        if arrivals or places:
            places |= {TABLE: looked} if self._table is not None and looked is not None else {}
            new = self._book.enter([judged(each) for each in arrivals], places)
            failpoint("signals.entered")
            for _, path in asked:
                path.unlink(missing_ok=True)
        self._place = looked
        return self._opened(new)

    def open_signals(self) -> list[OpenSignal]:
        """Every signal that has not ended, oldest first."""
        return self._opened(self._book.open_records())

    def set(self, id_: str, state: SignalState, result: str | None = None) -> None:
        """What became of a signal. Durable when this returns; one that has ended stays as it is."""
        self._book.set(id_, state, result)

    def _opened(self, records: list[SignalRecord]) -> list[OpenSignal]:
        found = []
        for record in records:
            order = order_of(record.signal)
            if isinstance(order, Rejection):
                # Known to the version that wrote it, or rejected already.
                self._book.set(record.signal.id, SignalState.REJECTED, order.reason)
            elif not record.has_ended:
                found.append(OpenSignal(record, order))
        return found
