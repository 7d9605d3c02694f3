"""The door to a source database: all that the rest of Tailrace may ask of one.

One implementation for each kind of database, in a folder of its own beside this file; `kinds` finds it by name. A
source is a handful of plain arguments: it is made again from them in the capture process and on Spark's executors.

Outside `source/`, a position is a `SourcePosition` whose detail is passed on unread, a claim is a mapping that is
stored and given back, and a chunk is a value that is handed out and given back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import Watermarking
from tailrace.source.control import CaptureControl
from tailrace.source.offsets import OffsetWords, SourceOffsets

Claim = Mapping[str, Any]
"""What a lake's connector has made or will make at the source, in the source's own words. JSON."""
Definition = Mapping[str, Any]
"""Everything that decides what a copy of a table's rows must look like, in the source's own words. JSON."""
Chunk = Any
"""A disjoint part of a table's rows. Can be pickled."""
View = Mapping[str, Any]
"""Which transactions a state of the database shows, in the source's own words. JSON."""
Cursor = Sequence[str]
"""Where a row stands in the order of its table's key, in the source's own words. A list in JSON."""


@dataclass(frozen=True)
class Problem:
    """Why something cannot be done, and what a person can do about it, if possible as a line to paste."""

    message: str
    hint: str


Waiting = Callable[[Problem | None], None]
"""Called again and again while a call is held up by others at the source, with what holds it up as far as it is known.
May raise: the call then ends at once and leaves nothing of what it was about to make."""


def wait_in_silence(_: Problem | None) -> None:
    """For a caller that tells no one and has no reason to stop."""


@dataclass(frozen=True)
class SourceTable:
    """A table as the source describes it now."""

    schema: TableSchema
    rows_estimated: int
    problem: Problem | None = None
    """Why it cannot be copied exactly; None where it can."""
    detail: Any = None
    """What only the source reads."""
    row_bytes_estimated: int | None = None
    """About how much room a row takes; None where that is not known."""

    @property
    def table(self) -> TableId:
        return self.schema.table


@dataclass(frozen=True)
class SnapshotPoint:
    """A state of the whole database under which chunks can be read."""

    position: SourcePosition
    """What `Source.shown_up_to` says of it is exactly what the chunks show."""
    token: str
    """How readers in other processes join it."""


@dataclass(frozen=True)
class WindowPoint(SnapshotPoint):
    """A state that stands at no one place of the log: transactions that committed before others may not be in it.

    Its `position` is at or after every transaction that it shows, and capture will report it as reached, as `now`'s.
    """

    view: View
    is_exact: bool
    """What `Source.unseen` says of its view is exactly what it does not show; otherwise it may be more than that."""


@dataclass(frozen=True)
class Check:
    """One finding of a preflight check. `ok` is None where it is worth knowing but does not stop a copy."""

    name: str
    ok: bool | None
    found: str
    fix: str | None = None
    leaves_out: bool = False
    """It concerns only some tables, which are left out while the others are copied."""


@dataclass(frozen=True)
class Prepared:
    """What `Source.prepare` did."""

    done: Sequence[str]
    """For a person, a line each; empty when everything was there."""
    refused: Mapping[TableId, Problem]
    """Tables whose changes the source will not send, and why."""


@dataclass(frozen=True)
class Leftovers:
    """What connectors have made at a source whose lakes may be gone."""

    claims: Sequence[Claim]
    """For `Source.drop`."""
    in_use: Sequence[str]
    """What is in use and left alone, a line each."""


class Source(Protocol):
    """One source database. Any thread may call; a call that fails raises a transient or a definite error.

    A definite error that concerns one table names it. Columns of a shape have names that differ in more than case
    (`model.column_names`), and so have those of rows and changes.
    """

    kind: ClassVar[str]
    """The name under which `kinds` knows this class."""
    offset_words: ClassVar[OffsetWords]
    """How offsets of this kind are written."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """`type(self)(**arguments)` is the same source in another process. JSON. May hold secrets."""
        ...

    def watermarked(self, how: Watermarking) -> Source:
        """The same source, whose windows write such watermarks. Not to be trusted with anything: what a state does not
        show, `unseen` says. A definite error where it has no place for them; whether it may write there, `claim` and
        `examine` find out."""
        ...

    def claimed(self, claim: Claim) -> Source:
        """The same source for a lake that has this claim, also where a person has not said again what it was begun
        with."""
        ...

    def reserved(self) -> frozenset[str]:
        """What no other connector may use, as far as the arguments alone tell: the same words for every way to write
        it. Two sources that share none may still meet at the source, which refuses it then. A definite error for
        arguments that make no sense."""
        return frozenset()

    def identify(self) -> Mapping[str, str]:
        """Which database this is, whatever address it is reached at. A definite error unless changes can be captured
        from it. A log and a lake belong to one identity, until a lake is repaired on a server that has taken the place
        of the other (`restart`). Has `source`, the kind, and `database`, a name."""
        ...

    def claim(self, stored: Claim | None) -> Claim:
        """Names for what `prepare` will make, chosen once; the caller stores them before anything is made, so that
        nothing is ever left at the source that no lake knows of. Given a stored claim, checks that it still fits the
        arguments and the server, and returns it. Positions of this source are those of the claim from then on."""
        ...

    def tables(
        self, include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
    ) -> list[SourceTable]:
        """The tables that the patterns choose (none: all), by name, those with a problem included.

        A definite error for a pattern that names nothing, and when nothing is chosen. Where a lake has the `known`
        tables, what a pattern named may be gone: then a pattern is an error only if it names none of them either, and
        nothing need be chosen."""
        ...

    def unsent(self, claim: Claim, tables: Sequence[TableId]) -> set[TableId]:
        """Those of the tables whose changes do not reach us at present: what happened to them meanwhile is lost."""
        ...

    def prepare(
        self,
        claim: Claim,
        tables: Sequence[TableId],
        resume: SourcePosition | None,
        waiting: Waiting = wait_in_silence,
        *,
        keeps_others: bool = False,
    ) -> Prepared:
        """Make the source keep and send these tables' changes from now on, or from `resume`, where the log ends. Those
        of others need not be sent any more, unless it `keeps_others`: then what is sent stays as it is.

        Can be called again at any time; changes only what is not so yet. A definite error when changes after
        `resume` are gone."""
        ...

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        """A `GapError` when changes after `end`, where the log ends, are gone, or the source never had what the log
        has. Only while no capture runs. None: nothing is in the log yet. The claim to continue with, which the caller
        stores before it is used."""
        ...

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        """After a `GapError`: the claim with which `prepare` and `capture` take up what follows now, in a log that ends
        at `end`. The caller has every table copied again, and stores the claim before it is used."""
        ...

    def drop(self, claim: Claim) -> list[str]:
        """Remove what `prepare` made, and only that; says what was done, a line each."""
        ...

    def leftovers(self, name: str | None = None) -> Leftovers:
        """What connectors of ours have made and not dropped, as far as names tell. With a name, what is called so; a
        definite error if nothing is."""
        ...

    def capture(self, claim: Claim, log: LogWriter, control: CaptureControl) -> None:
        """Append changes to the log until told to stop. Runs in a process of its own.

        Continues after every transaction that the log has, and drops what it has already, by the position of its
        commit. Tells the source only of what is durable. Transient errors are reported and tried again. Says so
        (`CaptureControl.prove`) when it is sure that the source has the log's last commit."""
        ...

    def offsets(self) -> SourceOffsets:
        """What only those ask who read or edit offsets."""
        ...

    def now(self) -> SourcePosition:
        """A position at or after every transaction that has committed, and that capture will report as reached when it
        has them, also if nothing is ever committed again."""
        ...

    def lag_bytes(self, ordinal: int) -> int | None:
        """About how much of the source's own log lies after this; None where it does not count in bytes."""
        ...

    @staticmethod
    def parse(text: str) -> SourcePosition:
        """What a person wrote, as `format` writes it. ValueError for anything else."""
        ...

    @staticmethod
    def format(position: SourcePosition) -> str:
        """For a person."""
        ...

    @staticmethod
    def is_gap(position: SourcePosition) -> bool:
        """Whether a transaction that committed there stands for changes that the source has lost: what committed
        between it and the transaction before is in no log. Pure."""
        return False

    @staticmethod
    def shown_up_to(position: SourcePosition) -> int:
        """A snapshot at `position` shows the transactions whose commit has at most this ordinal, and no other."""
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

    @staticmethod
    def unseen(view: View, transactions: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each of some transactions of the log's index, whether the view does not show it. Pure."""
        ...

    def describe(self, tables: Sequence[TableId]) -> dict[TableId, SourceTable]:
        """The tables as they are now; one that is gone is missing."""
        ...

    def define(self, claim: Claim, known: Mapping[TableId, Definition | None]) -> dict[TableId, TableSchema]:
        """The shapes of these tables, each with its definition, as they are now; one that is gone is missing.

        `known` are the definitions that their copies were made under, where there are copies; where nothing has moved
        since, it is the known one that is returned. Columns have the lake types that those copies were made with."""
        ...

    def mark(self) -> str | None:
        """Cheap: another text whenever `tables`, `describe`, `unsent`, `prepare` or `define` could have more to say
        than when it was the same. What is committed before the call counts. None where the source cannot tell: live
        reads then go no further than the last cut."""
        return None

    @staticmethod
    def renewed(definition: Definition) -> Definition:
        """The same, for a copy that is begun now. `define` tells the shape of a copy that is there, whose columns may
        have lake types that are chosen no more. Pure."""
        return definition

    @staticmethod
    def why_copy(old: Definition, new: Definition) -> str | None:
        """Why a copy made under `old`, with all changes since, may differ from a table that `new` is the definition
        of; None if it cannot. For a person. An older `new` says nothing. Pure."""
        ...

    @staticmethod
    def is_same_shape(old: Definition, new: Definition) -> bool:
        """Whether the table had the same columns, of the same names and types, from one definition to the other; none
        was there for a moment only. Pure."""
        ...

    @staticmethod
    def why_part(old: Definition, now: Definition, part: TableSchema) -> str | None:
        """Why rows that came from a part of a table may not be the table's any more: `now`, which was read after they
        were committed, does not have that part. None if it does, or if `old` is younger than what told of it. For a
        person. Pure."""
        return None

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

    @staticmethod
    def filtered(chunk: Chunk, condition: str) -> Chunk:
        """Those of the chunk's rows for which a condition holds that a person wrote in the source's own language.

        Reading it is a definite error where it is anything else than a condition, and where it writes."""
        ...

    def read_chunk(self, point: SnapshotPoint, chunk: Chunk, schema: TableSchema) -> Iterator[Any]:
        """The chunk's rows as record batches, `row_schema(schema)`, some with `EXACT`. Runs on an executor.

        In a key, a value that its lake type cannot hold is a `TextKeyError`, as for `decode`.

        A transient error when the table was rewritten since the snapshot, which then does not show it any more; under a
        window also when another process keeps it locked, which says who does."""
        ...

    @staticmethod
    def decode(records: Any, schema: TableSchema) -> Any:
        """A batch of log records of one table and one shape as changes, `change_schema(schema)`, row for row.

        A value that its lake type cannot hold exactly is null, and its text is in `EXACT`, or in `EXACT_BEFORE` where
        it is the old row's (`model.exact`); in a key it is a `TextKeyError`. It is never a neighbouring value."""
        ...

    def examine(self, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
        """Everything that stands between this database and its copy, found without changing anything."""
        ...
