"""A commit: one new file in the table's log, there as a whole or not at all.

Delta's protocol asks of a writer that its file appear at once and that it never replace another's (`put_new`). Whoever
comes second sees that the number is taken. So a commit of ours stands on exactly the version before it; nothing that
another writer did in between can be overlooked, whatever kind of change it was.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from typing import Any

from tailrace.lake.delta.json_text import text_of
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.door import ConflictError
from tailrace.lake.stamp import Stamp

Action = Mapping[str, Any]


@dataclass(frozen=True)
class Origin:
    """What a commit says of itself."""

    operation: str
    stamp: Stamp | None
    key: Sequence[str] | None = None
    """The columns by which the rows of files are ordered, as files call them: for whoever merges files later."""


def commit(log: CommitLog, version: int, actions: Sequence[Action], origin: Origin) -> None:
    """Make `version` of these actions, durably. `ConflictError` when another writer has made it."""
    name = log.commit_file(version)
    content = "".join(f"{text_of(action)}\n" for action in (_info(version, origin), *actions)).encode()
    if not log.table.put_new(name, content) and not _is_there(log, name, content):
        raise ConflictError(f"{log.table.address}: another writer made version {version}")
    # The names of the rows and vectors that it brings.
    log.table.sync([])


def _is_there(log: CommitLog, name: str, content: bytes) -> bool:
    """Whether the commit under this name is our own, after an answer that was lost: no other has our `txnId`."""
    try:
        return log.table.get(name) == content
    except FileNotFoundError:
        return False


def _info(version: int, origin: Origin) -> Action:
    info: dict[str, Any] = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": origin.operation,
        "operationParameters": {} if origin.key is None else {"key": text_of(list(origin.key))},
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": f"tailrace/{version_of('tailrace')}",
        "txnId": str(uuid.uuid4()),
    }
    if version:
        info["readVersion"] = version - 1
    if origin.stamp is not None:
        info["userMetadata"] = origin.stamp.to_json()
    return {"commitInfo": info}
