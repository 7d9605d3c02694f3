"""What a verification found: values, for the terminal and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tailrace.errors import TailraceError
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState


class TableVerdict(StrEnum):
    """What can be said of one table."""

    EQUAL = "equal"
    """The lake has the source's rows, all of them and no other."""
    DIFFERENT = "different"
    """Some rows differ."""
    SHAPE_DIFFERS = "schema differs"
    """The columns or their types differ; rows are not compared."""
    NOT_COMPARED = "not compared"
    """The lake does not have the table at this point, or the source could not be read; the reason says which."""
    LEFT_OUT = "left out"
    """No longer chosen by its sync: nothing follows it."""


class RowDifference(StrEnum):
    """How the rows of one key differ."""

    MISSING = "missing"
    """The lake lacks a row."""
    EXTRA = "extra"
    """The lake has a row that the source has not, or has one more than once."""
    CHANGED = "changed"
    """Both have it, with other values."""


@dataclass(frozen=True)
class KeyDifference:
    """One key whose rows differ."""

    key: Mapping[str, str | None]
    """Its columns, as text."""
    difference: RowDifference
    source_rows: int
    lake_rows: int
    columns: tuple[str, ...] = ()
    """Those with other values, where both sides have the row."""
    place: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """Puts keys of one table in order. Values of Python."""


@dataclass(frozen=True)
class Compared:
    """The rows of a table that both sides have."""

    source_rows: int
    lake_rows: int
    differing: Mapping[RowDifference, int] = field(default_factory=dict)
    """How many keys, in each way."""
    keys: tuple[KeyDifference, ...] = ()
    """The first of them."""

    @classmethod
    def joined(cls, parts: Sequence[Compared], keys_max: int) -> Compared:
        """What was found of a table whose rows were compared in parts, all rows of a key in one of them."""
        differing: Counter[RowDifference] = Counter()
        for part in parts:
            differing.update(part.differing)
        keys = sorted((key for part in parts for key in part.keys), key=lambda each: each.place)
        source_rows, lake_rows = sum(part.source_rows for part in parts), sum(part.lake_rows for part in parts)
        return cls(source_rows, lake_rows, dict(differing), tuple(keys[:keys_max]))


@dataclass(frozen=True)
class TableReport:
    """What was found of one table."""

    table: TableId
    verdict: TableVerdict
    source_rows: int | None = None
    lake_rows: int | None = None
    differing: Mapping[RowDifference, int] = field(default_factory=dict)
    """How many keys, in each way."""
    keys: tuple[KeyDifference, ...] = ()
    """The first of them."""
    reason: str | None = None
    hint: str | None = None

    @classmethod
    def of_rows(cls, table: TableId, found: Compared) -> TableReport:
        verdict = TableVerdict.DIFFERENT if found.differing else TableVerdict.EQUAL
        return cls(table, verdict, found.source_rows, found.lake_rows, found.differing, found.keys)

    @classmethod
    def not_compared(cls, table: TableId, error: TailraceError) -> TableReport:
        message = error.message.removeprefix(f"{table}: ")
        return cls(table, TableVerdict.NOT_COMPARED, reason=message, hint=error.hint)

    @classmethod
    def of_state(cls, table: TableId, record: TableRecord) -> TableReport:
        """A table that is not live."""
        if record.state is TableState.REMOVED:
            return cls(table, TableVerdict.LEFT_OUT, reason=record.reason)
        reason = f"it is {record.state}" + (f": {record.reason}" if record.reason else "")
        return cls(table, TableVerdict.NOT_COMPARED, reason=reason, hint=record.hint)

    @property
    def is_fine(self) -> bool:
        return self.verdict in (TableVerdict.EQUAL, TableVerdict.LEFT_OUT)

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        keys = [
            {
                "key": dict(each.key),
                "difference": each.difference,
                "rows_in_source": each.source_rows,
                "rows_in_lake": each.lake_rows,
                "columns": list(each.columns),
            }
            for each in self.keys
        ]
        return {
            "table": str(self.table),
            "verdict": self.verdict,
            "rows_in_source": self.source_rows,
            "rows_in_lake": self.lake_rows,
            "differing": {each.value: self.differing.get(each, 0) for each in RowDifference},
            "keys": keys,
            "reason": self.reason,
            "hint": self.hint,
        }


@dataclass(frozen=True)
class LakeReport:
    """What was found of a lake, at one point of its source."""

    position: str | None
    """The point, as the source writes it; None where no table could be compared."""
    seq: int | None
    """The last transaction of the log that the source shows there."""
    tables: tuple[TableReport, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every table that the lake follows was compared and is equal."""
        return all(each.is_fine for each in self.tables)

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        tables = [each.to_fields() for each in self.tables]
        return {"equal": self.is_equal, "position": self.position, "transaction": self.seq, "tables": tables}
