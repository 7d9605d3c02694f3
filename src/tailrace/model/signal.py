"""A signal: what a person or a program asks of a lake's connector, in Debezium's layout, and what became of it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

ID_CHARACTERS_MAX = 255
DATA_CHARACTERS_MAX = 1 << 16
"""A list of a thousand tables fits."""
FILE, TABLE = "file", "table"
"""Channels, beside requests."""


@dataclass(frozen=True)
class Signal:
    """An order as it arrived, perhaps one that makes no sense."""

    id: str
    """A second signal of the same id is the same signal."""
    type: str
    """`execute-snapshot`, `pause-snapshot` and so on."""
    data: str = ""
    """What exactly is wanted: a JSON object as text; empty where there is nothing to say."""


@dataclass(frozen=True)
class Arrival:
    """A signal and how it came."""

    signal: Signal
    channel: str
    """`request`, `file` or `table`."""
    reason: str | None = None
    """Why it cannot even be read; None where it can."""


class SignalState(StrEnum):
    """Set by the connector, stored in `signals.json`."""

    WAITING = "waiting"
    """In a request's file; no connector has seen it. Never stored. Next: received or rejected."""
    RECEIVED = "received"
    """In the book, not begun. Next: running, or one of the ends."""
    RUNNING = "running"
    """Its tables are being copied. Next: paused, or one of the ends. A restart finds it and continues."""
    PAUSED = "paused"
    """Its copy waits for a `resume-snapshot`, also after a restart. Next: running, stopped or failed."""
    DONE = "done"
    """Everything that it asked for has been done."""
    REJECTED = "rejected"
    """It makes no sense; the result says which field breaks which rule. Nothing was done."""
    STOPPED = "stopped"
    """A `stop-snapshot` ended it."""
    FAILED = "failed"
    """An error ended it; the result says which."""


ENDED = (SignalState.DONE, SignalState.REJECTED, SignalState.STOPPED, SignalState.FAILED)
"""Nothing comes after these."""


@dataclass(frozen=True)
class SignalRecord:
    """What is known of one signal. Stored."""

    signal: Signal
    channel: str
    state: SignalState
    received_us: int
    """Microseconds since 1970-01-01 UTC."""
    updated_us: int
    result: str | None = None
    """What came of it, for a person."""

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def new_id() -> str:
    """For a signal that came without one."""
    return secrets.token_hex(8)
