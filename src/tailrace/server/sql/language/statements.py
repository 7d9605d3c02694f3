"""What can be said in the SQL of sources, as values.

A *source* is one connector: one database, some of its tables, one lake. Two statements are equal
when they ask for the same: clauses are kept in one order, and where a word stood in the text does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TextPlace:
    """Where something stands in the text that was sent, counted from 1."""

    line: int = 1
    column: int = 1


NOWHERE = TextPlace()


@dataclass(frozen=True)
class Secret:
    """A value that is only pointed at: `${env:SHOP_PASSWORD}` or `${file:PATH}`. It may be shown."""

    reference: str


Value = str | Secret


HOST, LAKE = "host", "lake"
"""Two clauses: an address, which `CONNECTION` is another word for, and the lake's folder. The others are the source's
own (`SourceWords.clauses`)."""


@dataclass(frozen=True)
class ClauseValue:
    """`USER 'ann'`: a property of the connector by another word."""

    clause: str
    """In lower case."""
    value: Value = field(repr=False)
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Option:
    """`snapshot.mode = 'initial'`: a property of the connector by its own name."""

    key: str
    value: Value = field(repr=False)
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class TableName:
    """`orders`, `public.orders`, or `public.*` for all tables of a namespace."""

    namespace: str | None
    """None where the statement's `NAMESPACE` says it."""
    name: str | None
    """None for all tables of the namespace."""
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class CreateSources:
    """Make one source with one or many tables."""

    name: str | None
    """None: as the database is called."""
    kind: str
    """Which kind of source, as `source.kinds` has it."""
    clauses: tuple[ClauseValue, ...] = ()
    namespace: str | None = None
    """Of tables that do not say theirs; without tables, the one whose tables are meant."""
    tables: tuple[TableName, ...] = ()
    """Empty: all tables there are, also those that are made later."""
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class AddTables:
    """`ADD TABLE`: these follow too. Their rows are copied beside the others."""

    tables: tuple[TableName, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropTables:
    """`DROP TABLE`: these stop following. What the lake has of them stays."""

    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class SetOptions:
    """`SET (snapshot.mode = 'never')`."""

    options: tuple[Option, ...]


@dataclass(frozen=True)
class ResetOptions:
    """`RESET (snapshot.mode)`: as if it had never been given."""

    keys: tuple[str, ...]


Alteration = AddTables | DropTables | SetOptions | ResetOptions


@dataclass(frozen=True)
class AlterSource:
    """Change one source."""

    name: str
    alteration: Alteration
    if_exists: bool = False
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class SourceName:
    """A source, where several can be named."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class DropSource:
    """End sources. Their lakes stay."""

    names: tuple[SourceName, ...]
    if_exists: bool = False
    cascade: bool = False
    """Also what was made for each in its database."""


@dataclass(frozen=True)
class ShowSources:
    """Every source with its tables and their states."""

    like: str | None = None
    """Only sources whose name is like this: `%` is any text, `_` any character."""


@dataclass(frozen=True)
class ShowCreateSource:
    """The statement that would make a source as it is now."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


Statement = CreateSources | AlterSource | DropSource | ShowSources | ShowCreateSource
