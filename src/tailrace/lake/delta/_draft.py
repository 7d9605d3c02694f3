"""A version in the making: parts are written side by side, and one commit makes them the table's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.delta.file_names import name_of
from tailrace.lake.delta.json_text import text_of
from tailrace.lake.delta.log.commit import Origin, commit
from tailrace.lake.delta.log.contents import Contents, records
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.delta.metadata import Field, Metadata, upgraded
from tailrace.lake.delta.rows.deletion_vectors import positions_in, read_vector, write_vectors
from tailrace.lake.delta.rows.keyless_part import CountsWriter
from tailrace.lake.delta.rows.part import Part, RowsWriter, StatesWriter
from tailrace.lake.delta.rows.row_files import RowSizes, read_batches, write_rows
from tailrace.lake.door import Rewrite
from tailrace.lake.stamp import Stamp
from tailrace.storage.door import Storage

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
    write: RowsWriter | StatesWriter | CountsWriter

    @property
    def write_alone(self) -> RowsWriter | StatesWriter | CountsWriter:
        return self.write if isinstance(self.write, RowsWriter) else replace(self.write, files=None)

    def again(self, parts: Iterable[Part]) -> pa.Table | None:
        found = [part.again for part in parts if part.again is not None and part.again.num_rows]
        return pa.concat_tables(found) if found else None

    def rest(self, parts: Iterable[Part]) -> list[Rewrite]:
        """Of a table without deletion vectors, a file that loses rows is written again without them."""
        if self.metadata.has_vectors or self.base is None:
            return []
        files, left = self.base.files, self._left(list(parts))
        sizes = (self.write if isinstance(self.write, RowsWriter) else self.write.rows).sizes
        return [
            Rewritten(self.log.table, self.metadata.fields, files[path], vector.serialize(), sizes)
            for path, vector in left.items()
            if len(vector) < records(files[path])
        ]

    def commit(self, parts: Iterable[Part], stamp: Stamp | None = None, *, replaces_all: bool = False) -> int:
        parts = list(parts)
        require_written(self.log.table, parts)
        failpoint("delta.rows")
        metadata = self.widened if any(part.has_exact for part in parts) else self.metadata
        is_all = replaces_all or isinstance(self.write, RowsWriter)
        actions = [*shape_actions(self.base, metadata), *(self._removed() if is_all else self._changed(parts))]
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

    def _removed(self) -> list[Action]:
        return [{"remove": removal(add)} for add in self.base.files.values()] if self.base else []

    def _left(self, parts: Sequence[Part]) -> dict[str, BitMap64]:
        """Of files that lose rows: all that they have lost, by their paths."""
        gone: dict[str, BitMap64] = {}
        for part in parts:
            for path, positions in part.gone.items():
                gone[path] = gone.get(path, BitMap64()) | BitMap64.deserialize(positions)
        if not gone:
            return {}
        assert self.base is not None
        return {path: read_vector(self.log.table, self.base.files[path]) | found for path, found in gone.items()}

    def _changed(self, parts: Sequence[Part]) -> list[Action]:
        """Files that lose rows."""
        left = self._left(parts)
        if not left:
            return []
        assert self.base is not None
        files = self.base.files
        actions: list[Action] = [{"remove": removal(files[path])} for path in left]
        kept = {path: vector for path, vector in left.items() if len(vector) < records(files[path])}
        if kept and self.metadata.has_vectors:
            named = write_vectors(self.log.table, list(kept.values()))
            actions += [{"add": _with_vector(files[path], each)} for path, each in zip(kept, named, strict=True)]
        return actions


@dataclass(frozen=True)
class Rewritten:
    """Writes a file again without some of its rows. Runs in a task."""

    table: Storage
    fields: tuple[Field, ...]
    add: Action
    gone: bytes
    sizes: RowSizes

    def __call__(self) -> Part:
        positions = positions_in(BitMap64.deserialize(self.gone))
        left = read_batches(self.table, name_of(self.table, self.add["path"]), self.fields, positions)
        added = write_rows(self.table, left, self.fields, self.sizes)
        return Part((added,) if added else ())


def require_written(table: Storage, parts: Iterable[Part]) -> None:
    """A definite error for a file that is not here: a machine wrote it to a folder that is not the lake's."""
    for add in (add for part in parts for add in part.added):
        found = table.look(name_of(table, add["path"]))
        if found is None or found.bytes != add["size"]:
            hint = "put the lake into a folder that all of Spark's machines share under one name"
            raise DefiniteError(f"{table.address}/{add['path']} was written by an executor and is not here", hint)


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
