"""The door to a source database: all that the rest of Tailrace may ask of one, in four parts.

    codec     pure: decode records, compare and show positions, judge definitions
    tables    the catalog: which tables there are, and what they look like
    stream    changes: claim, prepare, capture, drop
    rows      states of the database, and rows that are read under them

`Source` is all four together, `Database` is tables and rows. Only what joins parts takes one of these; everything else
takes the part that it asks.

One implementation for each kind of database, in a folder of its own beside this one; `kinds` finds it by name. A
source is a handful of plain arguments: it is made again from them in the capture process and on Spark's executors.

Outside `source/`, a position is a `SourcePosition` whose detail is passed on unread, a claim is a mapping that is
stored and given back, and a chunk is a value that is handed out and given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from tailrace.source.door.codec import Codec
from tailrace.source.door.rows import Rows
from tailrace.source.door.stream import Stream
from tailrace.source.door.tables import Tables
from tailrace.source.door.values import Claim


class Database(Tables, Rows, Protocol):
    """The tables of a source and their rows, without its changes: what a copy reads."""


class Source(Codec, Tables, Stream, Rows, Protocol):
    """One source database. Any thread may call; a call that fails raises a transient or a definite error.

    A definite error that concerns one table names it. Columns of a shape have names that differ in more than case
    (`model.rows.column_names`), and so have those of rows and changes.
    """

    @property
    def arguments(self) -> Mapping[str, Any]:
        """`type(self)(**arguments)` is the same source in another process. JSON. May hold secrets."""
        ...

    def claimed(self, claim: Claim) -> Self:
        """The same source for a lake that has this claim, also where a person has not said again what it was begun
        with."""
        ...
