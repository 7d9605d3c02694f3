"""Up to where the server is told that we need nothing any more.

What is durable in the log need not be sent again, so that is told, unless the log may be lost with its machine: then
only what the lake has is told. A transaction that is prepared and not ended is in no lake, and its changes are sent
only once, where it was prepared. So nothing from there on is told before its end, either.
"""

from __future__ import annotations

from tailrace.log.write.writer import LogWriter
from tailrace.source.door.control import CaptureControl
from tailrace.source.postgres.server.history import History
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.stream.encoding.replay import Replay

NOTHING = Lsn(0)


class Confirming:
    """The thread that captures looks; the one that receives asks."""

    def __init__(self, writer: LogWriter, control: CaptureControl, history: History, confirmed: Lsn) -> None:
        """`confirmed` is what the server has been told before."""
        self._writer = writer
        self._control = control
        self._history = history
        self._confirmed = confirmed
        self._prepared: int | None = None
        self.look()

    def look(self) -> None:
        """After the log has become another."""
        self._prepared = min(self._writer.prepared.values(), default=None)

    def upto(self, replay: Replay) -> Lsn:
        """Nothing where there is nothing new, or where it is not known yet whether the server has what the log has."""
        durable, limit, prepared = self._writer.head.ordinal, self._control.confirmable, self._prepared
        if replay.is_awaited:
            return NOTHING
        if limit is not None:
            durable = min(durable, limit, durable if prepared is None else prepared - 1)
        lsn = self._history.lsn(durable)
        # A server may take a position that lies before the last one for an order to go back.
        return lsn if lsn >= self._confirmed else NOTHING
