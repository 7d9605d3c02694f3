"""One lake table in Delta Lake's format.

Versions are written by us, in columns: new rows as Parquet files, old rows as deletion vectors, and a commit that has
them all and the stamp. Spark reads them, as does whoever else reads Delta Lake.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import ResyncError
from tailrace.lake.delta import _open_versions, _scan
from tailrace.lake.delta._draft import DeltaDraft, shape_actions
from tailrace.lake.delta._merge import DeltaMerging, MergedFiles, choose
from tailrace.lake.delta._reserved_names import require_addable, require_possible
from tailrace.lake.delta.log import recovery
from tailrace.lake.delta.log.checkpoint import checkpoint, is_due, point_to
from tailrace.lake.delta.log.commit import Origin, commit
from tailrace.lake.delta.log.contents import FOLLOW, MERGE_FILES, Contents, read_contents
from tailrace.lake.delta.log.vacuum import prune
from tailrace.lake.delta.log.versions import COPY, CommitLog
from tailrace.lake.delta.metadata import Metadata, require_kept
from tailrace.lake.delta.rows.growing_part import GrowingWriter
from tailrace.lake.delta.rows.keyless_part import CountsWriter
from tailrace.lake.delta.rows.locator import Locator
from tailrace.lake.delta.rows.part import RowsWriter, StatesWriter
from tailrace.lake.delta.rows.row_files import SIZES, RowSizes
from tailrace.lake.door import Pruned, Scan, TableSize, TableVersion, UnfitSessionError, Wanted
from tailrace.lake.stamp import Stamp
from tailrace.model.following import steps
from tailrace.model.table import Column, TableSchema
from tailrace.storage.door import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaTable:
    """The Delta table in one place."""

    def __init__(self, place: Storage, sizes: RowSizes = SIZES) -> None:
        self._place = place
        self._sizes = sizes
        self._log = CommitLog(place)
        self._known: Contents | None = None

    def version(self, at: int | None = None) -> TableVersion | None:
        number = self._log.newest() if at is None else at
        return TableVersion(number, self._log.stamp(number)) if number is not None and self._log.has(number) else None

    def mark(self, version: int) -> str | None:
        return self._log.mark(version)

    def make_durable(self, since: int | None) -> None:
        self._log.make_durable(since)

    def recover(self, trusted: int | None, aside: Path) -> list[int]:
        moved = recovery.recover(self._log, trusted, aside)
        if moved:
            self._known = None
            _open_versions.forget(self._place.address)
        return moved

    def copy(self, schema: TableSchema, stamp: Stamp) -> DeltaDraft:
        require_possible(schema.table, schema.names)
        base = self._look()
        old = base.metadata if base else None
        metadata = old if old is not None and old.is_like(schema) else Metadata.new(schema, old)
        if base is not None:
            require_kept(schema.table, base.protocol, metadata)
        widened = metadata.with_exact()
        return DeltaDraft(self._log, base, metadata, widened, stamp, COPY, self._rows_writer(metadata, widened))

    def publish(
        self,
        schema: TableSchema,
        stamp: Stamp,
        *,
        is_growing: bool = False,
        tells_all: bool = False,
    ) -> DeltaDraft:
        assert schema.key or not is_growing
        base = self._look()
        assert base is not None
        metadata = self._following(base, schema)
        widened = metadata.with_exact()
        if base.foreign is not None:
            raise ResyncError.of(schema.table, f"the lake had drifted from the source: {base.foreign}")
        files = tuple(base.files.values())
        with_key = partial(GrowingWriter, tells_all=tells_all) if is_growing else StatesWriter
        writer = with_key if schema.key else CountsWriter
        write = writer(self._rows_writer(metadata, widened), schema, self._locator_of(metadata, schema), files)
        return DeltaDraft(self._log, base, metadata, widened, stamp, "PUBLISH", write)

    def restamp(self, stamp: Stamp) -> int:
        base = self._look()
        assert base is not None
        commit(self._log, base.version + 1, [], Origin(FOLLOW, stamp, self._log.key(base.version)))
        return base.version + 1

    def evolve(self, schema: TableSchema) -> int:
        base = self._look()
        assert base is not None
        actions = shape_actions(base, self._following(base, schema))
        if not actions:
            return base.version
        origin = Origin(FOLLOW, self._log.stamp(base.version), self._log.key(base.version))
        commit(self._log, base.version + 1, actions, origin)
        return base.version + 1

    def maintain(self) -> DeltaMerging | None:
        base = self._look()
        assert base is not None
        key = self._log.key(base.version)
        files = choose(self._place, base, key) if base.foreign is None else []
        if files:
            origin = Origin(MERGE_FILES, self._log.stamp(base.version), key)
            rewrite = MergedFiles(self._place, base.metadata.fields, tuple(files), tuple(key or ()), self._sizes)
            return DeltaMerging(self._log, base.version + 1, origin, rewrite)
        if is_due(self._log, base.version):
            checkpoint(self._log, base)
            point_to(self._log, base.version)
        return None

    def prune(self, wanted: Wanted) -> Pruned:
        base = self._look()
        if base is None:
            return Pruned(0, is_settled=True)
        pruned, self._known = prune(self._log, base, wanted)
        return pruned

    def columns(self, version: int) -> list[Column]:
        return _scan.columns(self._log, version)

    def size(self, version: int) -> TableSize | None:
        try:
            found = read_contents(CommitLog(self._place), at=version)
        except FileNotFoundError:
            return None
        return found.size if found is not None else None

    def open(self, spark: SparkSession, version: int, *, keep: bool = False) -> DataFrame:
        if "://" in self._place.address:
            raise UnfitSessionError("Spark cannot read a lake in a bucket yet", "read it with DuckDB")
        return _open_versions.open_version(spark, self._log, version, keep=keep)

    def scan(self, version: int) -> Scan:
        return _scan.scan(self._log, version)

    def _look(self) -> Contents | None:
        self._known = read_contents(self._log, self._known)
        return self._known

    def _following(self, base: Contents, schema: TableSchema) -> Metadata:
        """The table's shape in the schema's."""
        needed = steps(base.metadata.columns, schema)
        require_addable(schema.table, [*needed.rename.values(), *(column.name for column in needed.add)])
        metadata = base.metadata.changed(needed) if needed else base.metadata
        require_kept(schema.table, base.protocol, metadata)
        return metadata

    def _locator_of(self, metadata: Metadata, schema: TableSchema) -> Locator:
        key, whole_rows = [metadata.field(name) for name in schema.key or schema.names], not schema.key
        saved_rows_min = self._sizes.saved_rows_min
        return Locator(self._place, key, whole_rows=whole_rows, exact=metadata.exact, saved_rows_min=saved_rows_min)

    def _rows_writer(self, metadata: Metadata, widened: Metadata) -> RowsWriter:
        assert widened.exact is not None
        return RowsWriter(self._place, metadata.source_fields, widened.exact, self._sizes)
