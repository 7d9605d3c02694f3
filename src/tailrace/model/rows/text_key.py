"""Columns of a key that are text in the lake because values of theirs have no exact lake type.

A row is told from others by its key, so no value of it can be null with its text beside it (`model.rows.exact`). Where
the source has such a value, the whole column is text in the table's next copy, and stays so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tailrace.errors import TextKeyError
from tailrace.model.rows.lake_types import is_limited
from tailrace.model.table import Column, TableSchema


@dataclass(frozen=True)
class TextKey:
    """Of one table. Stored."""

    relation: int
    """The source's number for the table. Another one of that name is typed again."""
    columns: tuple[int | str, ...]
    """What identifies each of them, see `Column.identity`."""
    reason: str
    """For a person: the first value that was found."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TextKey:
        return cls(fields["relation"], tuple(fields["columns"]), fields["reason"])

    def applied(self, schema: TableSchema) -> TableSchema:
        """The table's shape with these columns as text, as far as they are in the key and of a type that needs it."""
        if schema.relation != self.relation:
            return schema

        def typed(column: Column) -> Column:
            is_meant = column.identity in self.columns and column.name in schema.key and is_limited(column.type)
            return replace(column, type="string") if is_meant else column

        return replace(schema, columns=tuple(map(typed, schema.columns)))


def with_found(known: TextKey | None, error: TextKeyError, reason: str) -> TextKey | None:
    """The columns that are text from now on; None where they are already, so that another copy would find the same."""
    before = known if known is not None and known.relation == error.relation else None
    columns = before.columns if before is not None else ()
    more = tuple(each for each in error.columns if each not in columns)
    if not more:
        return None
    return TextKey(error.relation, (*columns, *more), before.reason if before is not None else reason)


def text_keyed(schema: TableSchema, text_key: TextKey | None) -> TableSchema:
    """The shape that a copy of the table has."""
    return schema if text_key is None else text_key.applied(schema)
