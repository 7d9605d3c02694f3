"""What a server's process has besides its connectors: for those who look after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.engine.door import Engine
from tailrace.engine.spark.session import LazySession
from tailrace.server.verifications.verifications import Verifications


@dataclass(frozen=True)
class OwnParts:
    """Of one process. Where one lake is looked at from outside, there is nothing of most of it."""

    messages: Path | None = None
    """The file of what the server says itself."""
    session: LazySession | None = None
    """The Spark that all connectors share."""
    home: Path | None = None
    state: str | None = None
    """Where connectors are stored, without a user or a password."""
    engine: Callable[[], Engine] | None = None
    """What moves rows of all connectors; None where each piece of work begins one of its own."""
    verifications: Verifications = field(default_factory=Verifications)
    began_us: int = field(default_factory=lambda: time.time_ns() // 1000)
    """When it began, in microseconds since 1970."""
