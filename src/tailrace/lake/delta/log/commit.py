"""A commit: one new file in the table's log, there as a whole or not at all.

Delta's protocol asks of a writer that its file appear at once and that it never replace another's: a hard link does
both. Whoever comes second sees that the number is taken. So a commit of ours stands on exactly the version before it;
nothing that another writer did in between can be overlooked, whatever kind of change it was.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from tailrace.failpoint import failpoint
from tailrace.files import sync
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
    log.folder.mkdir(parents=True, exist_ok=True)
    draft = log.folder / f".{version:020d}.{uuid.uuid4()}.tmp"
    try:
        with draft.open("w", encoding="utf-8") as file:
            for action in (_info(version, origin), *actions):
                file.write(text_of(action) + "\n")
            file.flush()
            os.fsync(file.fileno())
        failpoint("delta.draft")
        os.link(draft, log.commit_file(version))
        failpoint("delta.link")
    except FileExistsError:
        raise ConflictError(f"{log.table}: another writer made version {version}") from None
    finally:
        draft.unlink(missing_ok=True)
    _sync_all([log.folder, log.table])


def _sync_all(folders: Iterable[Path]) -> None:
    for folder in folders:
        sync(folder)


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
