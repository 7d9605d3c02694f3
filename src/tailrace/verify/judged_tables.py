"""A table that can be compared, and what is reported of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.engine.dividing import Outcome
from tailrace.errors import DefiniteError
from tailrace.model.following import typed_like
from tailrace.model.rows.exact import is_ours
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door.values import Definition
from tailrace.verify.report import Compared, TableReport, TableVerdict


class ShapeError(DefiniteError):
    """The sides do not have the same columns."""


@dataclass(frozen=True)
class Judged:
    """As the source describes it under the snapshot. Travels to tasks."""

    found: TableSchema
    known: Definition | None
    """The definition that the lake's copy has followed to."""

    @property
    def table(self) -> TableId:
        return self.found.table

    def schema(self, lake: Sequence[Column]) -> TableSchema:
        """In which both sides are read; `lake` has these columns. A definite error where the columns differ."""
        schema = typed_like(self.found, lake)
        differences = shape_differences([column for column in lake if not is_ours(column)], schema.columns)
        if differences and schema.definition != self.known:
            raise DefiniteError("its columns changed, and the lake has not followed yet", "run tailrace verify again")
        if differences:
            raise ShapeError("; ".join(differences))
        return schema


def report_of(table: TableId, outcome: Outcome[Compared]) -> TableReport:
    """What was found of one table, or why it could not be compared."""
    match outcome:
        case Outcome(error=ShapeError() as error):
            return TableReport(table, TableVerdict.SHAPE_DIFFERS, reason=error.message)
        case Outcome(result=Compared() as found):
            return TableReport.of_rows(table, found)
        case _:
            assert outcome.error is not None
            return TableReport.not_compared(table, outcome.error)


def shape_differences(lake: Sequence[Column], source: Sequence[Column]) -> list[str]:
    """How the columns differ, for a person; their order does not count."""
    there, wanted = ({column.name: column.type for column in columns} for columns in (lake, source))
    lost = [f"column {name} is missing in the lake" for name in wanted if name not in there]
    added = [f"column {name} is in the lake only" for name in there if name not in wanted]
    typed = [
        f"column {name} is {there[name]} in the lake, not {type_}"
        for name, type_ in wanted.items()
        if there.get(name, type_) != type_
    ]
    return lost + added + typed
