"""What two connectors of a server may not share: a lake, and a replication slot of one server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tailrace.configuration.reading import Configuration
from tailrace.server.errors import ConflictError

LOOPBACK = ("", "localhost", "127.0.0.1", "::1")


def require_unshared(found: Configuration, others: Mapping[str, Configuration]) -> None:
    """A conflict that names the other connector. A slot that is named by another address of the same server is not
    found here; the source refuses it later."""
    lake, slot = _lake(found), _slot(found)
    for name, other in others.items():
        theirs = _lake(other)
        if lake == theirs or lake in theirs.parents or theirs in lake.parents:
            raise ConflictError(f"lake.path: connector {name} has its lake in {theirs}", "choose another folder")
        if slot is not None and slot == _slot(other):
            raise ConflictError(f"slot.name: connector {name} has the slot {slot[-1]}", "choose another name")


def _lake(found: Configuration) -> Path:
    return found.settings.lake.resolve()


def _slot(found: Configuration) -> tuple[str, int, str] | None:
    name = found.source_options.get("slot")
    if name is None:
        return None
    address = urlsplit(found.dsn)
    host = (address.hostname or "").lower()
    return ("localhost" if host in LOOPBACK else host, address.port or 5432, name)
