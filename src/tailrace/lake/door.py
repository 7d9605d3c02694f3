"""The door to a lake: all that the rest of Tailrace may ask of a table in it.

One implementation for each table format, in a folder of its own beside this file; `formats` finds it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa

from tailrace.errors import DefiniteError, TransientError
from tailrace.lake.stamp import Stamp
from tailrace.model.table import Column, TableSchema
from tailrace.storage.door import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ConflictError(TransientError):
    """Another writer changed the table meanwhile. Nothing of ours is in it: look again and try again."""


class UnfitSessionError(DefiniteError):
    """A Spark session that cannot read the format: no table is to blame."""


@dataclass(frozen=True)
class TableVersion:
    """A version of a table and the newest stamp at or before it; none before a snapshot has landed, and for an old
    version whose stamp the format no longer knows."""

    number: int
    stamp: Stamp | None


@dataclass(frozen=True)
class Scan:
    """How DuckDB reads one version of a table."""

    sql: str
    """What to write after `from`."""
    extension: Path | None = None
    """The extension it needs, as a file."""
    network: Path | None = None
    """The extension that it needs beside that one to reach another machine."""
    setup: str | None = field(default=None, repr=False)
    """A statement to run before, after the extensions are loaded. It may have a secret in it."""


@dataclass(frozen=True)
class Wanted:
    """What of a table's past is to stay. Times are in seconds since 1970."""

    versions: frozenset[int]
    """Versions that someone may ask for. The newest one stays in any case."""
    until: float
    """What was made, or taken out of the table, after this stays too."""
    strangers_until: float
    """Files that no version ever had may belong to one that is being written: those that are older than this go."""
    dry_run: bool = False
    """Only say what would be deleted."""


@dataclass(frozen=True)
class Pruned:
    """What was deleted of a table."""

    files_before: int
    """Files of rows and of deleted rows."""
    files: int = 0
    bytes: int = 0
    commits: int = 0
    """Versions that can no longer be asked for."""
    is_settled: bool = False
    """Nothing can become due before the table gets another version."""


Part = Any
"""What one writer contributes to a version: small, and only the table format's own code looks inside."""
WritePart = Callable[[Iterable[pa.RecordBatch]], Part]
"""Writes one part, in this process or on an executor. Nothing of it counts before the commit."""


Rewrite = Callable[[], Part]
"""Writes rows of the table again, in a task. Nothing of it counts before the commit."""


@dataclass(frozen=True)
class TableSize:
    """How much one version of a table has."""

    rows: int
    """About: of a table that another writer changed, as far as its files tell."""
    bytes: int
    """Of the files that a reader of this version needs, of rows and of deleted rows."""


class Draft(Protocol):
    """A version in the making. Dropping it leaves the table as it was."""

    @property
    def stamp(self) -> Stamp:
        """What the version will carry."""
        ...

    @property
    def write(self) -> WritePart:
        """Lays what it is given over the table's rows."""
        ...

    @property
    def write_alone(self) -> WritePart:
        """What it is given is the table's whole content from now on, and takes no column from an old row."""
        ...

    def rest(self, parts: Iterable[Part]) -> list[Rewrite]:
        """What is left to be done in tasks before the commit; most often nothing. Its parts are committed too."""
        ...

    def again(self, parts: Iterable[Part]) -> pa.Table | None:
        """The keys of a growing table whose rows have to be read again at the source, because the parts could not
        complete them; None if there are none. Asked before the commit, so that its stamp can have them."""
        ...

    def commit(self, parts: Iterable[Part], stamp: Stamp | None = None, *, replaces_all: bool = False) -> int:
        """Make the parts one version, also without any; returns its number. With `stamp`, it carries that one and not
        the one that the draft was begun with. With `replaces_all`, no row of before is left: the parts were written by
        `write_alone`."""
        ...


class Merging(Protocol):
    """Files of a table that are to become fewer. No row changes."""

    @property
    def rewrite(self) -> Rewrite: ...

    def commit(self, part: Part) -> int:
        """Returns the version made."""
        ...


class LakeTable(Protocol):
    """One table of a lake. Only one connector writes it; one thread.

    Every write is one atomic version that carries a stamp, also where no row changes: data and position cannot
    disagree, whatever instruction we die at. What a call had not finished when we died is not there. A `ConflictError`
    when another writer came first.

    A power cut may damage whatever `make_durable` has not returned for. `recover` finds and removes it.
    """

    def version(self, at: int | None = None) -> TableVersion | None:
        """Where the table stands, or stood `at` a version; None when there is none, or it is gone. Versions of other
        writers pass the stamp on. A definite error for a damaged one."""
        ...

    def mark(self, version: int) -> str | None:
        """A text that this version keeps as long as it is the newest, nothing has written it again, and no file of the
        table has come or gone; None for one that is not the newest. Cheap: rows are not looked at."""
        ...

    def make_durable(self, since: int | None) -> None:
        """Everything that the versions after `since` (None: all) up to the newest consist of survives a power cut when
        this returns."""
        ...

    def recover(self, trusted: int | None, aside: Path) -> list[int]:
        """Go back to the last whole version, before anything else is asked after a start. Without one, there is no
        table any more. Numbers that are free by this are given again.

        `trusted` is a version that had been made durable; None if none is known. What is newer counts only if all of
        it is there and can be read. What does not count is kept in a folder in `aside`; returns its versions.
        """
        ...

    def copy(self, schema: TableSchema, stamp: Stamp) -> Draft:
        """A version whose rows are the table's whole content and whose shape is the schema's. Creates the table where
        there is none. Parts are written from rows, of which some may have `EXACT` (`model.rows.exact`)."""
        ...

    def publish(
        self,
        schema: TableSchema,
        stamp: Stamp,
        *,
        is_growing: bool = False,
        tells_all: bool = False,
    ) -> Draft:
        """A version that folds in compacted states, a row a key: the schema's columns and `STATE_METADATA`. The table
        takes the schema's shape. Parts are written from states; a key is in one part only.

        Every part proves its base: a key that the states call new is not in the table, any other is there once. Else a
        `ResyncError` with the keys, and nothing of it is published.

        Of a table without a key, a state is a row and its `COUNT`: how many more of it there are from now on, or fewer.
        Equal rows (`model.rows.row`) are in one state of one part. The proof: the table has as many as go.

        Where rows have `EXACT`, the table has it too, in a column that `columns` tells from the others. A state that
        takes a column from an old row takes from there what that column could not hold.

        With `is_growing` the table, which has a key, does not have all its rows yet. A key may be there or not: a whole
        state is its row from now on, a delete that finds none does nothing, and one that takes columns from a row that
        is missing leaves its key without a row (`lake.growing_states`). Only a key that is there twice is a
        `ResyncError`. `Draft.again` has the keys of rows that moved; with `tells_all` every key that was left without a
        row.
        """
        ...

    def restamp(self, stamp: Stamp) -> int:
        """A version in which nothing changes but how far the table is. Returns its number."""
        ...

    def evolve(self, schema: TableSchema) -> int:
        """Drop, rename and add columns until the table has the schema's. `ResyncError` where it cannot. Older versions
        keep their shape. Returns the newest version."""
        ...

    def maintain(self) -> Merging | None:
        """One step towards good order, if any is due: cheap, and often. Returns what is left of it for a task, if
        anything is. No older version suffers. A version that it makes has the stamp of the one before."""
        ...

    def prune(self, wanted: Wanted) -> Pruned:
        """Delete what only versions need that are not wanted. A wanted version, and any that is made while this runs,
        stays as it is; one that is gone has no `version`, and to read it is an error. Dying in between is harmless."""
        ...

    def columns(self, version: int) -> list[Column]:
        """The version's columns, with what their comments say."""
        ...

    def size(self, version: int) -> TableSize | None:
        """How much a version has; None for one that can no longer be put together. No row is read."""
        ...

    def open(self, spark: SparkSession, version: int, *, keep: bool = False) -> DataFrame:
        """One version in Spark, for ever the same rows; with `keep`, ready to be read again soon. Columns carry the
        comments of `lake.columns`. An `UnfitSessionError` where the session lacks what `LakeFormat.configure` adds."""
        ...

    def scan(self, version: int) -> Scan:
        """One version in DuckDB, for ever the same rows. A definite error where DuckDB cannot read it."""
        ...


class LakeFormat(Protocol):
    """A table format."""

    name: ClassVar[str]

    def configure(self, builder: Any) -> Any:
        """A Spark session's builder with what the format needs."""
        ...

    def table(self, place: Storage) -> LakeTable:
        """The table in this place, which need not be there yet. To import the format does not import Spark."""
        ...
