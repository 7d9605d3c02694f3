"""What a source may have been told that a lake has: `confirmed.json`, beside the cuts.

As long as the file is there, the source has been told of nothing that committed after this ordinal and after the newest
cut. Whatever the lake lacks, the source still has, so the log can be lost. A connector that tells the source of what
only its log has takes the file away first.
"""

from __future__ import annotations

import json

from tailrace.errors import DefiniteError
from tailrace.storage.door import Storage


class ConfirmedFile:
    """Written by the connector of the lake, before the source is told."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name

    def load(self) -> int | None:
        """The ordinal; None where the source may have been told of more than the lake has."""
        try:
            return int(json.loads(self._storage.get(self._name))["ordinal"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            hint = "remove it: then the log counts, as with --confirm disk"
            raise DefiniteError(f"{self._storage.address}/{self._name} is damaged", hint) from None

    def store(self, ordinal: int) -> None:
        """Durable when this returns."""
        self._storage.put(self._name, json.dumps({"ordinal": ordinal}).encode(), is_private=True)

    def remove(self) -> None:
        """Gone for good when this returns."""
        if self.load() is not None:
            self._storage.delete([self._name])
            self._storage.sync([self._name])
