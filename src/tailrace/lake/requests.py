"""What people ask of a lake's connector from other processes: one small file each, taken up once.

A request that arrives while no connector runs waits for the next one.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.lake.files import read_json, sync, write_json
from tailrace.model.table import TableId

logger = logging.getLogger(__name__)


class Requests:
    """A folder of requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask_resync(self, table: TableId) -> None:
        """Copy this table again. Durable when this returns."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        sync(self._folder.parent)
        content = {"resync": {"namespace": table.namespace, "name": table.name}}
        write_json(self._folder / f"{secrets.token_hex(8)}.json", content)

    def resyncs(self) -> Iterator[tuple[TableId, Path]]:
        """Tables to copy again, each with the file to remove once that is durable elsewhere."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                wanted = read_json(path)["resync"]
                yield TableId(wanted["namespace"], wanted["name"]), path
            except (DefiniteError, KeyError, TypeError):
                logger.warning("request refused: it cannot be understood", extra={"path": str(path)})
                path.rename(path.with_suffix(".refused"))
