"""What a lake column is called: what its source column is, unless another one differs from that only in case.

Spark, DuckDB and Delta Lake do not tell upper from lower case in the name of a column, and most sources do.

    number   source   lake
    2        "Name"   Name
    3        name     name_3
    4        "NAME"   NAME_4

Of such columns the one with the lowest number keeps its name, and the others have their numbers after theirs. So a
name depends only on columns that were there before: one that is added never changes the name of another. Where an
earlier one is dropped or renamed, a later one may be called otherwise, which a copy follows like any rename.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailrace.model.table import Column, TableSchema


def folded(name: str) -> str:
    """The same for two names that Spark takes for one: it compares them character by character, in both cases."""
    return "".join(map(_folded, name))


def _folded(character: str) -> str:
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[0]


def distinct(schema: TableSchema) -> TableSchema:
    """The shape with names that differ in more than case. Its columns stand in the order of their numbers; where they
    have none, their places count."""
    if len({folded(name) for name in schema.names}) == len(schema.columns):
        return schema
    columns = _with_names(schema.columns)
    names = {column.in_source: column.name for column in columns}
    return replace(schema, columns=columns, key=tuple(names[name] for name in schema.key))


def _with_names(columns: Sequence[Column]) -> tuple[Column, ...]:
    taken: set[str] = set()
    found = []
    for place, column in enumerate(columns, 1):
        name = column.name
        while folded(name) in taken:
            name = f"{name}_{column.number or place}"
        taken.add(folded(name))
        found.append(column if name == column.name else replace(column, name=name, source_name=column.name))
    return tuple(found)
