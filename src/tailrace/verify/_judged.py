"""A table that can be compared, and what comes of it whoever compares it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.errors import DefiniteError, TailraceError
from tailrace.model.exact import is_ours
from tailrace.model.following import typed_like
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door import Definition, SourceTable
from tailrace.spark.task_errors import is_spark_gone
from tailrace.verify._in_memory import TooLargeError
from tailrace.verify.report import Compared, TableReport, Verdict

logger = logging.getLogger(__name__)


class ShapeError(DefiniteError):
    """The sides do not have the same columns."""


@dataclass(frozen=True)
class Judged:
    """As the source describes it under the snapshot."""

    found: SourceTable
    known: Definition | None
    """The definition that the lake's copy has followed to."""

    @property
    def table(self) -> TableId:
        return self.found.table

    def schema(self, lake: Sequence[Column]) -> TableSchema:
        """In which both sides are read; `lake` has these columns. A definite error where the columns differ."""
        schema = typed_like(self.found.schema, lake)
        differences = shape_differences([column for column in lake if not is_ours(column)], schema.columns)
        if differences and schema.definition != self.known:
            raise DefiniteError("its columns have changed, and the lake has yet to follow", "run tailrace verify again")
        if differences:
            raise ShapeError("; ".join(differences))
        return schema


def reported(table: TableId, compare: Callable[[], Compared]) -> TableReport:
    """What was found of one table, or why it could not be compared. Raises what is no fault of one table."""
    try:
        return TableReport.of_rows(table, compare())
    except ShapeError as error:
        return TableReport(table, Verdict.SHAPE_DIFFERS, reason=error.message)
    except TailraceError as error:
        return TableReport.not_compared(table, error)
    except TooLargeError:
        raise
    except Exception as error:
        if is_spark_gone(error):
            raise
        logger.debug("comparing failed", extra={"table": str(table)}, exc_info=True)
        first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
        return TableReport.not_compared(table, DefiniteError(f"it cannot be read: {first_line[:300]}"))


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
