"""The states of a lake's tables: one file, replaced as a whole.

The connector writes it, before what it says takes effect; any process reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.model.text_key import TextKey
from tailrace.storage.door import Storage


class TableStates:
    """`tables.json`."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name

    def load(self) -> dict[TableId, TableRecord]:
        """Every table the lake knows; none for a new lake."""
        try:
            content = self._content()
            listed = json.loads(content) if content is not None else []
            return {TableId(each.pop("namespace"), each.pop("name")): _record(each) for each in listed}
        except (ValueError, TypeError, KeyError, AttributeError):
            message = f"{self._storage.address}/{self._name} is damaged"
            raise DefiniteError(message, "restore it from a backup") from None

    def digest(self) -> str:
        """Of what is stored."""
        return hashlib.sha256(self._content() or b"").hexdigest()

    def _content(self) -> bytes | None:
        """None where there is no file."""
        try:
            return self._storage.get(self._name)
        except FileNotFoundError:
            return None

    def store(self, tables: Mapping[TableId, TableRecord]) -> None:
        """Durable when this returns."""
        listed = [asdict(table) | asdict(record) for table, record in sorted(tables.items())]
        self._storage.put(self._name, json.dumps(listed, indent=2).encode(), is_private=True)


def _record(fields: dict[str, Any]) -> TableRecord:
    text_key = fields.pop("text_key", None)
    found = TextKey.from_json(text_key) if text_key is not None else None
    ended = tuple(Ended(**each) for each in fields.pop("ended", ()))
    return TableRecord(TableState(fields.pop("state")), text_key=found, ended=ended, **fields)
