"""What both ways of copying promise, and the values that they take and give.

    at once      all tables under one snapshot (`at_once.py`)
    by windows   many short reads in the order of the key (`windows.py`)

A copy runs in threads of its own. The connector's thread adds tables, asks how far they are, and takes the results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tailrace.connector.copy.growth import Growth
from tailrace.connector.publish.opening import LakeParts
from tailrace.errors import TailraceError
from tailrace.lake.door import TableVersion
from tailrace.model.copy_progress import TableProgress
from tailrace.model.rows.text_key import TextKey
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim, Definition, Problem
from tailrace.stop import Stop


@dataclass(frozen=True)
class HowToCopy:
    """From where to where."""

    parts: LakeParts
    source: Source
    claim: Claim
    settings: ConnectorSettings
    stop: Stop
    """Every copy ends with it."""


@dataclass(frozen=True)
class TableStart:
    """Which copy of a table is begun, and how."""

    copy: int
    text_key: TextKey | None = None
    """What of its key this copy has as text."""
    definition: Definition | None = None
    """The one that the copy is begun under."""
    order: tuple[str, ...] = ()
    """Columns to go by instead of the key."""
    condition: str | None = None
    """Which rows are to be read; the others stay as they are in the copy before."""
    has_rows: bool = True
    """Otherwise none is read."""
    is_cut_short: bool = False
    """None is read, because the copy was stopped; those of the copy before stay. It must be there."""


@dataclass(frozen=True)
class CopyResults:
    """What has become of tables since a copy was asked the last time."""

    landed: dict[TableId, TableVersion] = field(default_factory=dict)
    """Tables that have all their rows. The log must keep what follows them until they have joined it."""
    failed: dict[TableId, tuple[int, TailraceError]] = field(default_factory=dict)
    """The numbers of copies that cannot be made, and why."""
    grown: dict[TableId, Growth] = field(default_factory=dict)
    """How far tables are, whole or not."""
    shown_seq: int | None = None
    """A transaction that every landed table is sure to have, where it is known."""


class RunningCopy(Protocol):
    """Copies of some tables, under way. One thread calls it."""

    can_pause: ClassVar[bool]
    error: BaseException | None
    """What ended it, if it could not do its work."""

    @property
    def takes_more(self) -> bool:
        """Whether more tables may be added."""
        ...

    @property
    def tables(self) -> Mapping[TableId, int]:
        """The tables under way, with the numbers of their copies."""
        ...

    @property
    def has_ended(self) -> bool:
        """Nothing more will come of it. Ask for its results once more after this."""
        ...

    @property
    def waits_for(self) -> Problem | None:
        """What holds it up at the source."""
        ...

    @property
    def trouble(self) -> TailraceError | None:
        """What it tries again."""
        ...

    @property
    def needed_after(self) -> int:
        """The log must keep every transaction after this."""
        ...

    def add(self, tables: Mapping[TableId, TableStart]) -> None:
        """Copy these tables too. One that is about to end may leave them for another copy: they are not in `tables`
        then."""
        ...

    def drop(self, table: TableId) -> None:
        """This copy of a table is no longer wanted."""
        ...

    def pause(self, tables: Collection[TableId]) -> None:
        """Read nothing more of these for now, and of no others than these, if it can be paused."""
        ...

    def cut_short(self, tables: Collection[TableId]) -> None:
        """Read no more of these. One that has rows for all that were not read becomes whole, any other fails."""
        ...

    def take_results(self) -> CopyResults: ...

    def progress(self) -> list[TableProgress]: ...

    def cancel(self) -> None:
        """Returns when it has ended, or after a while: what it waits for may not be ours to end."""
        ...
