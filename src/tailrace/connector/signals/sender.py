"""Signals of a lake, seen from outside: sending one, and what became of them all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tailrace.connector.signals.orders import Rejection, order_of, pattern_of
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.model.signal import Signal, SignalRecord, SignalState, new_id
from tailrace.model.table import TableId


def signal(
    lake: str | LakeAddress,
    type: str,
    data: Mapping[str, Any] | str | None = None,
    id: str | None = None,
) -> str:
    """Ask something of a lake's connector, the running one or the next; returns the signal's id.

    Durable when this returns. A second signal of the same id does nothing. A definite error for one that makes no
    sense; nothing is written then.
    """
    text = data if isinstance(data, str) else json.dumps(data) if data is not None else ""
    sent = Signal(new_id() if id is None else id, type, text)
    order = order_of(sent)
    if isinstance(order, Rejection):
        raise DefiniteError(f"invalid signal: {order.reason}", "tailrace signal --help shows examples")
    home = LakeHome.find(lake)
    if sent.id not in {record.signal.id for record in lake_signals(home)}:
        home.signals.requests.ask_signal(sent)
    return sent.id


def send_resync(lake: str | LakeAddress, table: TableId) -> str:
    """Have one table copied again beside the others: a signal like any other, whose id this returns."""
    return signal(lake, "execute-snapshot", {"data-collections": [pattern_of(table)]}, f"resync-{new_id()}")


def lake_signals(home: LakeHome) -> list[SignalRecord]:
    """Every signal that is kept, oldest first, then those that no connector has taken up yet."""
    waiting = [
        SignalRecord(signal, "request", SignalState.WAITING, asked_us, asked_us)
        for signal, path in home.signals.requests.signals()
        for asked_us in (int(path.name.partition("-")[0]) // 1000,)
    ]
    known = home.signals.book.records()
    ids = {record.signal.id for record in known}
    return [*known, *(record for record in waiting if record.signal.id not in ids)]
