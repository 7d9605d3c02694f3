"""The rows that a source has now: states of the database, and the chunks that are read under one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa

from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import Watermarking
from tailrace.source.door.values import Chunk, SourceTable, View, Waiting, wait_in_silence

Cursor = Sequence[str]
"""Where a row stands in the order of its table's key, in the source's own words. A list in JSON."""


@dataclass(frozen=True)
class SnapshotPoint:
    """A state of the whole database under which chunks can be read."""

    position: SourcePosition
    """What `Codec.shown_up_to` says of it is exactly what the chunks show."""
    token: str
    """How readers in other processes join it."""


@dataclass(frozen=True)
class WindowPoint(SnapshotPoint):
    """A state that stands at no one place of the log: transactions that committed before others may not be in it.

    Its `position` is at or after every transaction that it shows, and capture will report it as reached, as `now`'s.
    """

    view: View
    is_exact: bool
    """If true, `Codec.unseen` lists exactly the transactions that it does not show; if false, it may list more."""


class Rows(Protocol):
    """The rows of one database. Can be pickled: chunks are read on executors."""

    def watermarked(self, how: Watermarking) -> Self:
        """The same source, whose windows write such watermarks. Watermarks prove nothing here: `unseen` decides what a
        state does not show. A definite error where the source has no place for them; `claim` and `examine` find out
        whether it may write there."""
        ...

    def snapshot(self, waiting: Waiting = wait_in_silence) -> AbstractContextManager[SnapshotPoint]:
        """One consistent state of the database, valid inside the `with`; nothing of it is left after a crash."""
        ...

    def window(self, waiting: Waiting = wait_in_silence) -> AbstractContextManager[WindowPoint]:
        """One consistent state of the database for some seconds, valid inside the `with`. Makes nothing at the source
        but watermarks, where it was told to, and without them needs no more rights than reading.

        What was read is worth something only if the `with` ends without an error: the source can no longer lose any
        transaction that the state showed. Of what may hold that up, `waiting` hears nothing but that it does."""
        ...

    def settle(self, tables: Sequence[TableId], waiting: Waiting = wait_in_silence) -> None:
        """Returns when every transaction has ended that was writing to one of these tables at the call. What the
        others write is sent, if the table was prepared before."""
        ...

    def view(self) -> View:
        """What the database shows now. Cheap."""
        ...

    def chunks(self, table: SourceTable, bytes_max: int, readers: int = 1) -> list[Chunk]:
        """The table's rows in parts of at most about this size: all rows, each once. At least one chunk, and if more
        than `readers`, so many that each of them has the same work. The `bytes` of each are about what it takes at the
        source.

        `table` must have been described after the snapshot was taken."""
        ...

    def last_key(self, point: SnapshotPoint, table: SourceTable, order: Sequence[str] = ()) -> Cursor | None:
        """Where the table's last row stands, by its key or by the columns named in `order`; None without rows.

        A definite error where the table has no key, or such a column is missing or may be null."""
        ...

    def key_chunks(
        self,
        point: SnapshotPoint,
        table: SourceTable,
        between: tuple[Cursor | None, Cursor | None],
        rows: int,
        count: int,
        order: Sequence[str] = (),
    ) -> list[Chunk]:
        """The table's rows after the first cursor and no further than the second (None: no bound), in chunks of about
        `rows` rows that follow one another in the order of the key. If they are more than `count` chunks, the first.

        A chunk's `upto` is the cursor up to which it goes; that of the last is the second cursor where no more rows are
        left. No chunks: there are no rows in this range. `table` must have been described after the state was taken.
        """
        ...

    def chunk_of_keys(self, table: SourceTable, keys: pa.Table) -> Chunk:
        """The rows that have one of these keys. `keys` has the key's columns, as `row_schema` types them."""
        ...

    def read_chunk(self, point: SnapshotPoint, chunk: Chunk, schema: TableSchema) -> Iterator[Any]:
        """The chunk's rows as record batches, `row_schema(schema)`, some with `EXACT`. Runs on an executor.

        In a key, a value that its lake type cannot hold is a `TextKeyError`, as for `decode`.

        A transient error when the table was rewritten since the snapshot, which then does not show it any more; under a
        window also when another process keeps it locked, which says who does."""
        ...
