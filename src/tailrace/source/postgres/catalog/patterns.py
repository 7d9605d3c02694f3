"""Which tables a person means by `public.*`, `orders` or `sales_*.order?`, and which columns by `orders.*_at`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId


@dataclass(frozen=True)
class Candidate:
    """A relation that a pattern may name, whether or not it can be copied."""

    table: TableId
    relation: int
    obstacle: str | None
    """Why its changes cannot be captured, for a person; None where they can."""
    is_table: bool
    """Neither a view nor a foreign table."""
    extension: str | None = None
    """The extension that made it. What the table holds is the extension's business, unless a person names it."""

    def left_out(self, include: Sequence[str]) -> str | None:
        """Why patterns that match it do not choose it, for a person; None where they do."""
        if self.obstacle is not None or self.extension is None:
            return self.obstacle
        if str(self.table) in include or self.table.name in include:
            return None
        return f"part of the extension {self.extension}: to copy it, give its whole name"


TABLE_KINDS = "rp"
"""`relkind` of an ordinary and of a partitioned table."""


def obstacle(kind: str, persistence: str, is_partition: bool, *, by_leaves: bool = False) -> str | None:
    """What keeps a relation (`relkind`, `relpersistence`, `relispartition`) from being copied by its own name. With
    `by_leaves`, partitions are copied by theirs, and the tables that they belong to are not."""
    if kind in "vmf":
        return {"v": "a view", "m": "a materialized view", "f": "a foreign table"}[kind]
    if persistence != "p":
        return "unlogged: its changes are not in the write-ahead log" if persistence == "u" else "temporary"
    if by_leaves:
        return "sent as its partitions, which are copied as tables of their own" if kind == "p" else None
    return "a partition: name the partitioned table" if is_partition else None


def choose(
    candidates: Sequence[Candidate], include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
) -> list[Candidate]:
    """The tables that some `include` pattern (none: all tables) and no `exclude` pattern names.

    Refuses a pattern of `include` that names no table which can be copied: a misspelt table must not
    be missing silently. One that names a `known` table names one that is gone, and is passed over.
    """
    reasons = {candidate.table: candidate.left_out(include) for candidate in candidates}
    usable = [candidate for candidate in candidates if reasons[candidate.table] is None]
    for pattern in include:
        if not any(candidate.table.matches(pattern) for candidate in usable):
            is_gone = any(table.matches(pattern) for table in known) or (known and pattern in exclude)
            if not is_gone:
                raise _no_match(pattern, reasons)
    chosen = [
        candidate
        for candidate in usable
        if (not include or any(candidate.table.matches(pattern) for pattern in include))
        and not any(candidate.table.matches(pattern) for pattern in exclude)
    ]
    if not chosen and not known:
        what = "every table is excluded" if usable else "the database has no table that can be copied"
        raise DefiniteError(what, "check the patterns and the database's name")
    return chosen


def names_column(patterns: Sequence[str], table: TableId, column: str) -> bool:
    """Whether a pattern names the column: `namespace.table.column`, `table.column` in any namespace, or `column` in any
    table."""
    whole = [f"{table}.{column}", f"{table.namespace}.{table.name}.{column}"]
    names = {0: [column], 1: [f"{table.name}.{column}"]}
    return any(fnmatchcase(name, each) for each in patterns for name in names.get(each.count("."), whole))


def _no_match(pattern: str, reasons: Mapping[TableId, str | None]) -> DefiniteError:
    message = f"no table matches '{pattern}'"
    for table, reason in reasons.items():
        if reason is not None and table.matches(pattern):
            return DefiniteError(message, f"{table} is {reason}")
    usable = [table for table, reason in reasons.items() if reason is None]
    known = {str(table): str(table) for table in usable}
    known |= {table.name: str(table) for table in usable}
    folded = {name.lower(): table for name, table in known.items()}
    close = difflib.get_close_matches(pattern.lower(), folded, n=3, cutoff=0.6)
    names = sorted({folded[name] for name in close})
    if names:
        return DefiniteError(message, f"did you mean {' or '.join(names)}?")
    shown = sorted(map(str, usable))[:5]
    return DefiniteError(message, f"the database has {', '.join(shown)}" if shown else "the database has no tables")
