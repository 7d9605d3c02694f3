"""Checkpoints: all actions that make up a version, in one Parquet file, so that a reader need not play back the commits
before it.

A checkpoint appears as a whole, on disk before anything relies on it: before `_last_checkpoint` names it, and before a
commit that it contains is deleted. Whoever dies in between leaves a checkpoint that is not needed yet.

Tombstones, the actions of removed files, stay as long as their files are there: a VACUUM of another writer would
otherwise take such files for strangers and delete them by their age, though a version that is kept may need them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.failpoint import failpoint
from tailrace.lake.delta.file_names import checksums_of
from tailrace.lake.delta.log._whole_files import is_whole
from tailrace.lake.delta.log.contents import Contents
from tailrace.lake.delta.log.versions import LAST_CHECKPOINT, CommitLog
from tailrace.lake.delta.rows.deletion_vectors import files_of

COMMITS_MIN = 32
COMMITS_MAX = 128
"""How many commits a reader may have to play back."""

Action = Mapping[str, Any]

_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
        "maxRowIndex": pa.int64(),
    }
)
_FILE = {
    "path": pa.string(),
    "partitionValues": _TEXTS,
    "size": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": _TEXTS,
    "deletionVector": _VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
}
SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct({**_FILE, "modificationTime": pa.int64(), "clusteringProvider": pa.string()}),
        "remove": pa.struct({**_FILE, "deletionTimestamp": pa.int64(), "extendedFileMetadata": pa.bool_()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
    }
)
"""As Delta's protocol has it."""


def is_due(log: CommitLog, version: int) -> bool:
    """Whether readers of the newest version play back too many commits. A large checkpoint pays later: the log at most
    doubles by them."""
    last = max((number for number in log.checkpoints() if number <= version), default=-1)
    if version - last < COMMITS_MIN:
        return False
    if version - last >= COMMITS_MAX or last < 0:
        return True
    played_back = sum(_bytes(log, log.commit_file(number)) for number in range(last + 1, version + 1))
    return played_back >= _bytes(log, log.checkpoint_file(last))


def _bytes(log: CommitLog, name: str) -> int:
    found = log.table.look(name)
    return found.bytes if found else 0


def checkpoint(log: CommitLog, contents: Contents) -> None:
    """Write the checkpoint of a version. Durable when this returns. One that is there is replaced."""
    rows = [{kind: _checked(action)} for kind, action in _actions(log, contents)]
    content = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), content, write_page_checksum=True, store_schema=False)
    _replace(log, log.checkpoint_file(contents.version), content.getvalue().to_pybytes())
    failpoint("delta.checkpoint")


def _replace(log: CommitLog, name: str, content: bytes) -> None:
    # Hadoop's checksums of one that another writer left would no longer fit.
    log.table.delete([checksums_of(name)])
    log.table.put(name, content)


def has_checkpoint(log: CommitLog, version: int) -> bool:
    """Whether there is one to rely on. What Arrow wrote is ours, and was durable before it had its name; any other is
    read to its end and synced."""
    name = log.checkpoint_file(version)
    try:
        with log.table.open(name) as file:
            if str(pq.read_metadata(file).created_by).startswith("parquet-cpp-arrow"):
                return True
    except (OSError, pa.ArrowException):
        return False
    if not is_whole(log.table, name):
        return False
    log.table.sync([name])
    return True


def point_to(log: CommitLog, version: int) -> None:
    """Let readers begin at the checkpoint of a version, unless they begin at a later one. It must be durable."""
    if _pointed_to(log) >= version:
        return
    with log.table.open(log.checkpoint_file(version)) as file:
        hint = {"version": version, "size": pq.read_metadata(file).num_rows, "sizeInBytes": file.size()}
    _replace(log, LAST_CHECKPOINT, json.dumps(hint).encode())
    failpoint("delta.checkpoint.hint")


def _pointed_to(log: CommitLog) -> int:
    try:
        return int(json.loads(log.table.get(LAST_CHECKPOINT))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def _actions(log: CommitLog, contents: Contents) -> Iterator[tuple[str, Action]]:
    yield "protocol", contents.protocol
    yield "metaData", contents.metadata.action
    for (kind, _), action in contents.others.items():
        if not action.get("removed"):
            yield kind, action
    live = {file for add in contents.files.values() for file in files_of(log.table, add)}
    for add in contents.files.values():
        yield "add", {**add, "dataChange": False}
    gone = {name: action for name, action in contents.removed.items() if name not in live}
    tombstones = {id(action): action for name, action in gone.items() if log.table.look(name) is not None}
    for action in tombstones.values():
        yield "remove", {**action, "dataChange": False}


def _checked(action: Action) -> Action:
    """Without what is not in the protocol, maps as Arrow wants them."""
    return {name: _pairs(value) if name != "deletionVector" else value for name, value in action.items()}


def _pairs(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if "provider" in value:
        return {**value, "options": list((value.get("options") or {}).items())}
    return list(value.items())
