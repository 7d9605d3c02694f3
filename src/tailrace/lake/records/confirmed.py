"""What a source may have been told that a lake has: `confirmed.json`, beside the cuts.

As long as the file is there, the source has been told of nothing that committed after this ordinal and after the newest
cut. Whatever the lake lacks, the source still has, so the log can be lost. A connector that tells the source of what
only its log has takes the file away first.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from tailrace.errors import DefiniteError
from tailrace.storage.door import Storage


@dataclass(frozen=True)
class Confirmed:
    """What the file says."""

    ordinal: int
    log: str = ""
    """The id of the log that cuts are made from. Nothing, as long as there is none. Another log in a home is one that
    was lost: a lake has been continued without it."""


class ConfirmedFile:
    """Written by the connector of the lake, before the source is told."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name

    def load(self) -> Confirmed | None:
        """None where the source may have been told of more than the lake has."""
        try:
            found = json.loads(self._storage.get(self._name))
            return Confirmed(int(found["ordinal"]), str(found.get("log", "")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            hint = "remove it: then the log counts, as with --confirm disk"
            raise DefiniteError(f"{self._storage.address}/{self._name} is damaged", hint) from None

    def store(self, confirmed: Confirmed) -> None:
        """Durable when this returns."""
        self._storage.put(self._name, json.dumps(asdict(confirmed)).encode(), is_private=True)

    def remove(self) -> None:
        """Gone for good when this returns."""
        if self.load() is not None:
            self._storage.delete([self._name])
            self._storage.sync([self._name])
