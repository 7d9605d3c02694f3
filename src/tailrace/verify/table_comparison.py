"""One table's comparison as a piece of work for an engine: in one task, or divided by key.

    whole     one task     source rows + lake rows ── compared
    divided   source chunks ─┐
              source chunks ─┼─ dealt out by key ─┬─ compared ─┐
              lake          ─┘                    └─ compared ─┴─ joined

Both ways report the same. Whatever runs in a task returns counts and a few keys: no row leaves the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from tailrace.engine.door import Engine, Job
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes
from tailrace.source.door.values import Chunk, SourceTable
from tailrace.verify.comparing import BothSides, Side, compare
from tailrace.verify.dealing import Blob, TooManyRows, compare_dealt, deal
from tailrace.verify.judged_tables import Judged
from tailrace.verify.report import Compared
from tailrace.verify.sides import Sides, shape_of

CHUNKS_A_SHARE = 8
"""So that several readers can share them."""
Part = tuple[Chunk, ...] | None
"""What one task reads before rows are dealt out: chunks of the source; None is the lake's side."""


@dataclass(frozen=True)
class Limits:
    """How much is done at a time, and how much is reported."""

    sizes: TaskSizes
    readers_max: int
    keys_max: int


@dataclass(frozen=True)
class TableComparison:
    """Implements `Piece`."""

    sides: Sides
    judged: Judged
    chunks: tuple[Chunk, ...]
    bytes: int
    limits: Limits

    @classmethod
    def of(cls, sides: Sides, found: SourceTable, judged: Judged, limits: Limits) -> TableComparison:
        """Asks the source how the table can be read. `found` was described after the snapshot was taken."""
        chunk_bytes = max(1, limits.sizes.compare_bytes // CHUNKS_A_SHARE)
        chunks = tuple(sides.rows.chunks(found, chunk_bytes))
        # By chunks, which are measured: the catalog's estimate may be old, and a new table has none.
        return cls(sides, judged, chunks, sum(chunk.bytes for chunk in chunks), limits)

    @property
    def table(self) -> str:
        return str(self.judged.table)

    def whole(self) -> Compared:
        with self.sides.lake_table(self.judged.table) as lake:
            schema = self.judged.schema(lake.columns)
            both = BothSides(shape_of(schema), self.limits.sizes.decoded_bytes_max)
            for batch in lake.rows(schema):
                both.add(batch, Side.LAKE)
        for batch in self.sides.source_rows(self.chunks, schema):
            both.add(batch, Side.SOURCE)
        return compare(both, _key(schema), self.limits.keys_max)

    def divided(self, engine: Engine, job: Job) -> Compared:
        job = replace(job, description=f"verify {self.table}")
        (schema,) = engine.map(job, [self], TableComparison._schema)
        tasks = max(1, -(-self.bytes // self.limits.sizes.compare_bytes))
        bytes_max = self.limits.sizes.decoded_bytes_max
        found = self._dealt(engine, job, schema, tasks, bytes_max)
        largest = max((each.bytes for each in found if isinstance(each, TooManyRows)), default=0)
        if largest:
            # The source's estimate was far too low. The size is known now, so each task takes what it is dealt: one
            # that still gets more has a key with very many rows, or very large rows.
            tasks = -(-2 * largest * tasks // bytes_max)
            found = self._dealt(engine, job, schema, tasks, None)
        return Compared.joined([each for each in found if isinstance(each, Compared)], self.limits.keys_max)

    def _dealt(
        self, engine: Engine, job: Job, schema: TableSchema, tasks: int, bytes_max: int | None
    ) -> list[Compared | TooManyRows]:
        split, fold = partial(self._split, schema, tasks), partial(self._fold, schema, bytes_max)
        return engine.shuffle(job, self._parts(), split, tasks, fold)

    def _parts(self) -> list[Part]:
        """The lake's side takes longest: it comes first."""
        readers = max(1, min(len(self.chunks), self.limits.readers_max))
        bounds = [number * len(self.chunks) // readers for number in range(readers + 1)]
        return [None, *(self.chunks[begin:end] for begin, end in pairwise(bounds))]

    def _schema(self) -> TableSchema:
        """In a task: the columns in which both sides are read."""
        with self.sides.lake_table(self.judged.table) as lake:
            return self.judged.schema(lake.columns)

    def _split(self, schema: TableSchema, tasks: int, part: Part) -> Iterator[tuple[int, Blob]]:
        """In a task: the rows of a part, for the tasks that their keys belong to."""
        if part is not None:
            yield from deal(self.sides.source_rows(part, schema), Side.SOURCE, _key(schema), tasks)
            return
        with self.sides.lake_table(self.judged.table) as lake:
            yield from deal(lake.rows(schema), Side.LAKE, _key(schema), tasks)

    def _fold(self, schema: TableSchema, bytes_max: int | None, blobs: Iterable[Blob]) -> Compared | TooManyRows:
        """In a task: what differs among the rows that it was dealt."""
        return compare_dealt(blobs, BothSides(shape_of(schema), bytes_max), _key(schema), self.limits.keys_max)


def _key(schema: TableSchema) -> tuple[str, ...]:
    return tuple(schema.key or schema.names)
