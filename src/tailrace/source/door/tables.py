"""Which tables a source has, and what they look like."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.values import Claim, Definition, SourceTable


@dataclass(frozen=True)
class Check:
    """One finding of a preflight check. `ok` is None where it is worth knowing but does not stop a copy."""

    name: str
    ok: bool | None
    found: str
    fix: str | None = None
    leaves_out: bool = False
    """It concerns only some tables, which are left out while the others are copied."""


class Tables(Protocol):
    """The catalog of one database. No call changes anything there."""

    def identify(self) -> Mapping[str, str]:
        """Which database this is, whatever address it is reached at. A definite error unless changes can be captured
        from it. A log and a lake belong to one identity, until a lake is repaired on a server that has taken the place
        of the other (`restart`). Has `source`, the kind, and `database`, a name."""
        ...

    def tables(
        self, include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
    ) -> list[SourceTable]:
        """The tables that the patterns choose (none: all), by name, those with a problem included.

        A definite error for a pattern that names nothing, and when nothing is chosen. Where a lake has the `known`
        tables, what a pattern named may be gone: then a pattern is an error only if it names none of them either, and
        nothing need be chosen."""
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
        """Cheap: a text that changes whenever `tables`, `describe`, `unsent`, `prepare` or `define` could say more
        than when it was the same. What is committed before the call counts. None where the source cannot tell: live
        reads then go no further than the last cut."""
        return None

    def examine(self, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
        """Everything that stands between this database and its copy, found without changing anything."""
        ...
