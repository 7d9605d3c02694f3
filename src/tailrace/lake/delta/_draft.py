"""A version in the making: parts are written side by side, and one commit makes them the table's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.delta._commit_log import CommitLog
from tailrace.lake.delta._committing import Origin, commit
from tailrace.lake.delta._contents import Contents, records
from tailrace.lake.delta._counting import CountsWriter
from tailrace.lake.delta._folding import Part, RowsWriter, StatesWriter
from tailrace.lake.delta._json import text_of
from tailrace.lake.delta._metadata import Metadata, upgraded
from tailrace.lake.delta._rows import read_batches, write_rows
from tailrace.lake.delta._vectors import located, positions_in, read_vector, write_vectors
from tailrace.lake.stamp import Stamp

Action = Mapping[str, Any]


@dataclass(frozen=True)
class DeltaDraft:
    """The version after `base`; the first one where that is None."""

    log: CommitLog
    base: Contents | None
    metadata: Metadata
    widened: Metadata
    """The same, with the column for values that others cannot hold; taken where a part has one."""
    stamp: Stamp
    operation: str
    replaces_all: bool
    write: RowsWriter | StatesWriter | CountsWriter

    def again(self, parts: Iterable[Part]) -> pa.Table | None:
        found = [part.again for part in parts if part.again is not None and part.again.num_rows]
        return pa.concat_tables(found) if found else None

    def commit(self, parts: Iterable[Part], stamp: Stamp | None = None) -> int:
        parts = list(parts)
        self._require_written(parts)
        failpoint("delta.rows")
        metadata = self.widened if any(part.has_exact for part in parts) else self.metadata
        actions = [*shape_actions(self.base, metadata), *self._removed(), *self._changed(parts)]
        actions += [{"add": add} for part in parts for add in part.added]
        version = self.base.version + 1 if self.base else 0
        failpoint("delta.vectors")
        commit(self.log, version, actions, Origin(self.operation, stamp or self.stamp, self._order()))
        failpoint("delta.commit")
        return version

    def _order(self) -> list[str] | None:
        """By which columns files of this version are ordered, as they name them; a copy's are in the source's order."""
        if isinstance(self.write, RowsWriter):
            return None
        return [self.metadata.field(name).physical for name in self.write.schema.key]

    def _require_written(self, parts: Sequence[Part]) -> None:
        """A definite error for a file that is not here: a machine wrote it to a folder that is not the lake's."""
        for add in (add for part in parts for add in part.added):
            path = located(self.log.table, add["path"])
            try:
                is_whole = path.stat().st_size == add["size"]
            except FileNotFoundError:
                is_whole = False
            if not is_whole:
                hint = "put the lake into a folder that all of Spark's machines share under one name"
                raise DefiniteError(f"{path} was written by an executor and is not here", hint)

    def _removed(self) -> list[Action]:
        if not self.replaces_all or self.base is None:
            return []
        return [{"remove": removal(add)} for add in self.base.files.values()]

    def _changed(self, parts: Sequence[Part]) -> list[Action]:
        """Files that lose rows."""
        gone: dict[str, BitMap64] = {}
        for part in parts:
            for path, positions in part.gone.items():
                gone[path] = gone.get(path, BitMap64()) | BitMap64.deserialize(positions)
        if not gone:
            return []
        assert self.base is not None
        table, files = self.log.table, self.base.files
        everything = {path: read_vector(table, files[path]) | positions for path, positions in gone.items()}
        actions: list[Action] = [{"remove": removal(files[path])} for path in everything]
        kept = {path: vector for path, vector in everything.items() if len(vector) < records(files[path])}
        if self.metadata.has_vectors:
            named = write_vectors(table, list(kept.values())) if kept else []
            actions += [{"add": _with_vector(files[path], each)} for path, each in zip(kept, named, strict=True)]
        else:
            actions += [{"add": add} for path, vector in kept.items() if (add := self._without(files[path], vector))]
        return actions

    def _without(self, add: Action, gone: BitMap64) -> Action | None:
        """The file written again without some rows."""
        batches = read_batches(located(self.log.table, add["path"]), self.metadata.fields, positions_in(gone))
        return write_rows(self.log.table, batches, self.metadata.fields)


def shape_actions(base: Contents | None, metadata: Metadata) -> list[Action]:
    """What a commit must say of the table's shape, where it says anything new."""
    if base is not None and base.metadata.action == metadata.action:
        return []
    protocol = upgraded(base.protocol if base else None)
    is_new = base is None or protocol != base.protocol
    return [*([{"protocol": protocol}] if is_new else []), {"metaData": metadata.action}]


def removal(add: Action) -> Action:
    """The action that takes a file out of the table."""
    kept = {name: add[name] for name in ("path", "partitionValues", "size", "deletionVector") if add.get(name)}
    return {
        "partitionValues": {},
        **kept,
        "deletionTimestamp": time.time_ns() // 1_000_000,
        "dataChange": True,
        "extendedFileMetadata": True,
    }


def _with_vector(add: Action, vector: Action) -> Action:
    stats = {**json.loads(add["stats"]), "tightBounds": False}
    return {**add, "deletionVector": vector, "dataChange": True, "stats": text_of(stats)}
