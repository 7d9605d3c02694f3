"""What a version of a Delta table consists of: its log, played back.

Spark could say as much, in half a second for each table and batch. Commits that came since the last look are all that
is read.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.errors import DefiniteError
from tailrace.lake.delta.file_names import name_of
from tailrace.lake.delta.json_text import text_of
from tailrace.lake.delta.log.versions import FOLDER, CommitLog
from tailrace.lake.delta.metadata import Metadata
from tailrace.lake.delta.rows.deletion_vectors import files_of, vector_name
from tailrace.lake.door import TableSize
from tailrace.lake.stamp import Stamp
from tailrace.storage.door import Storage

logger = logging.getLogger(__name__)

Action = Mapping[str, Any]
_CHECKPOINT = re.compile(rf"{FOLDER}/(\d{{20}})\.checkpoint(?:\.(\d{{10}})\.(\d{{10}}))?\.parquet")
_KINDS = ("protocol", "metaData", "add", "remove", "txn", "domainMetadata")
MERGE_FILES = "MERGE FILES"
FOLLOW = "FOLLOW"
_REARRANGING = (MERGE_FILES, "OPTIMIZE", "REORG")
"""Operations that change no row, if they say so too."""
_PASSING_ON = (MERGE_FILES, FOLLOW)
"""Operations of ours that change no row: what another writer did before them still counts."""
_MAPS = ("partitionValues", "configuration", "options", "tags")
_DERIVED = ("stats_parsed", "partitionValues_parsed")
"""What a checkpoint has twice."""


@dataclass(frozen=True)
class Contents:
    """One version."""

    version: int
    protocol: Action
    metadata: Metadata
    files: Mapping[str, Action] = field(repr=False)
    """The `add` action of each file, by its path there."""
    foreign: str | None = None
    """What another writer did to the table's rows since our last version, if anything."""
    removed: Mapping[str, Action] = field(default_factory=dict, repr=False)
    """The last `remove` action that names a file, of rows or of deletion vectors; other actions may still name it. What
    is gone from the disk may be left out."""
    others: Mapping[tuple[str, str], Action] = field(default_factory=dict, repr=False)
    """What other writers keep in the table, the newest of each: `txn` and `domainMetadata` actions."""

    @property
    def rows(self) -> int:
        """Rows in the files, deleted ones too."""
        return sum(records(add) for add in self.files.values())

    @property
    def size(self) -> TableSize:
        deleted = sum(int(_vector(add).get("cardinality") or 0) for add in self.files.values())
        vectors = sum(int(_vector(add).get("sizeInBytes") or 0) for add in self.files.values())
        return TableSize(self.rows - deleted, sum(int(add["size"]) for add in self.files.values()) + vectors)


def _vector(add: Action) -> Action:
    return add.get("deletionVector") or {}


def records(add: Action) -> int:
    """How many rows a file has, deleted ones too."""
    return int(json.loads(add["stats"])["numRecords"])


def read_contents(log: CommitLog, known: Contents | None = None, at: int | None = None) -> Contents | None:
    """The newest version, or another one; None without a table. What is known of an older one of the same table is not
    read again. FileNotFoundError for one that can no longer be put together."""
    newest = log.newest() if at is None else at
    if newest is None:
        return None
    if known is None or known.version > newest:
        known = _start(log, newest)
    if known is not None and known.version == newest:
        return known
    playback = _Playback(log.table, known)
    for version in range(known.version + 1 if known else 0, newest + 1):
        playback.take(log.actions(version), version)
    return playback.contents(newest)


def _start(log: CommitLog, newest: int) -> Contents | None:
    """The newest checkpoint's; None if the commits go back to the first version."""
    for version, names in sorted(_whole_checkpoints(log).items(), reverse=True):
        if version > newest:
            continue
        playback = _Playback(log.table, None)
        try:
            playback.take([action for name in names for action in _checkpointed(log.table, name)], version)
        except (pa.ArrowException, OSError):
            # Damaged, or just deleted. An older one may do.
            logger.warning("checkpoint passed over", extra={"table": log.table.address, "version": version})
            continue
        playback.foreign = _foreign_before(log, version)
        return playback.contents(version)
    return None


def _whole_checkpoints(log: CommitLog) -> dict[int, list[str]]:
    """The files of each complete checkpoint."""
    parts: dict[int, list[str]] = {}
    totals: dict[int, int] = {}
    for name in log.names():
        found = _CHECKPOINT.fullmatch(name)
        if found is not None:
            parts.setdefault(int(found[1]), []).append(name)
            totals[int(found[1])] = int(found[3] or 1)
    return {version: names for version, names in parts.items() if len(names) >= totals[version]}


def _foreign_before(log: CommitLog, version: int) -> str | None:
    """A checkpoint does not say who wrote what; the commits that it contains do, while they are there."""
    for number in range(version, -1, -1):
        try:
            is_ours, change = _writer(log.actions(number), number)
        except FileNotFoundError:
            return None
        if is_ours or change:
            return change
    return None


def _writer(actions: Sequence[Action], version: int) -> tuple[bool, str | None]:
    """Whether a commit is ours; if not, what it did to the table's rows."""
    info: Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    if Stamp.from_json(info.get("userMetadata")) is not None and info.get("operation") not in _PASSING_ON:
        return True, None
    changes = [change for action in actions if (change := action.get("add") or action.get("remove"))]
    says_none = not any(change.get("dataChange") for change in changes)
    if not changes or (says_none and info.get("operation") in _REARRANGING):
        return False, None
    return False, f"its version {version} is another writer's {info.get('operation')}"


def _checkpointed(table: Storage, name: str) -> Iterable[Action]:
    """The actions of one file of a checkpoint. Structs there name every field; one without a value counts as absent."""
    with table.open(name) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
        kinds = [kind for kind in _KINDS if kind in file.schema_arrow.names]
        for batch in file.iter_batches(columns=kinds):
            for kind in kinds:
                for action in batch.column(kind).drop_null().to_pylist():
                    yield {kind: _plain(action)}


def _plain(action: Action) -> Action:
    """A checkpoint's action as JSON would have it: maps come as lists of pairs."""
    found: dict[str, Any] = {}
    for name, value in action.items():
        if name in _MAPS:
            found[name] = dict(value or ())
        elif value is not None and name not in _DERIVED:
            found[name] = _plain(value) if isinstance(value, dict) else value
    return found


class _Playback:
    """Takes commits one after another."""

    def __init__(self, table: Storage, known: Contents | None) -> None:
        self._table = table
        self._protocol = known.protocol if known else None
        self._metadata = known.metadata if known else None
        self._files = dict(known.files) if known else {}
        self._removed = dict(known.removed) if known else {}
        self._others = dict(known.others) if known else {}
        self.foreign = known.foreign if known else None

    def take(self, actions: Sequence[Action], version: int) -> None:
        for action in actions:
            if "protocol" in action:
                self._protocol = action["protocol"]
            elif "metaData" in action:
                self._metadata = Metadata.of(action["metaData"])
            elif "add" in action:
                self._files[action["add"]["path"]] = self._counted(action["add"])
            elif "remove" in action:
                self._remove(action["remove"])
            elif "txn" in action:
                self._others["txn", action["txn"]["appId"]] = action["txn"]
            elif "domainMetadata" in action:
                self._others["domainMetadata", action["domainMetadata"]["domain"]] = action["domainMetadata"]
        is_ours, change = _writer(actions, version)
        self.foreign = None if is_ours else change or self.foreign

    def _counted(self, add: Action) -> Action:
        """With the number of rows, which another writer may have left out."""
        if add.get("stats"):
            return add
        with self._table.open(name_of(self._table, add["path"])) as file:
            rows = pq.read_metadata(file).num_rows
        return {**add, "stats": text_of({"numRecords": rows})}

    def _remove(self, removed: Action) -> None:
        self._removed.update(dict.fromkeys(files_of(self._table, removed), removed))
        present = self._files.get(removed["path"])
        # A commit may remove a file with one deletion vector and add it with another, in any order.
        if present is not None and vector_name(present) == vector_name(removed):
            del self._files[removed["path"]]

    def contents(self, version: int) -> Contents:
        if self._protocol is None or self._metadata is None:
            raise DefiniteError("a Delta table without a protocol or a schema", "tailrace tables resync LAKE TABLE")
        return Contents(version, self._protocol, self._metadata, self._files, self.foreign, self._removed, self._others)
