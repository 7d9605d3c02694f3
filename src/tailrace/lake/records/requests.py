"""What people ask of a lake's connector from other processes: one small file each, taken up once.

A request that arrives while no connector runs waits for the next one.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.model.signal import Signal
from tailrace.storage.files import read_json, sync, write_json

logger = logging.getLogger(__name__)


class Requests:
    """A folder of requests, in the order in which they were made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask_signal(self, signal: Signal) -> None:
        """Do what the signal says. Durable when this returns."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        sync(self._folder.parent)
        path = self._folder / f"{time.time_ns():020}-{secrets.token_hex(8)}.json"
        write_json(path, {"signal": asdict(signal)})

    def signals(self) -> Iterator[tuple[Signal, Path]]:
        """Signals, each with the file to remove once it is durable elsewhere."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                content = read_json(path)
                if content is None and not path.exists():
                    continue  # Taken up while we looked.
                fields = content["signal"]
                if not all(isinstance(each, str) for each in fields.values()):
                    raise TypeError("signal")
                yield Signal(**fields), path
            except (DefiniteError, KeyError, TypeError, ValueError, AttributeError):
                logger.warning("request refused: it cannot be understood", extra={"path": str(path)})
                with suppress(FileNotFoundError):
                    path.rename(path.with_suffix(".refused"))
