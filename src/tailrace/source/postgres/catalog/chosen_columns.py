"""Columns for which a person has chosen a lake type: which they are, and whether there are any."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.postgres.catalog._type_choices import TEXT, chosen_type, parted
from tailrace.source.postgres.catalog.tables import CatalogTable


def as_text(infos: Sequence[CatalogTable], patterns: Sequence[str]) -> list[CatalogTable]:
    """The tables, and their columns with the lake types that are chosen for them."""
    if not patterns:
        return list(infos)
    return [
        replace(
            info,
            columns=tuple(
                replace(column, chosen=chosen_type(patterns, info.table, column.name)) for column in info.columns
            ),
        )
        for info in infos
    ]


def require_columns(infos: Sequence[CatalogTable], patterns: Sequence[str], known: Collection[TableId] = ()) -> None:
    """A definite error for a pattern that names no column, or with a type that none of its columns can have. Of a table
    that is there or `known`, its column may be gone or have another type by now: no error then."""
    for choice in patterns:
        pattern, lake = parted(choice)
        columns = [column for info in as_text(infos, [choice]) for column in info.columns if column.chosen is not None]
        table = pattern.rpartition(".")[0]
        if known and (not table or any(each.matches(table) for each in (*known, *(info.table for info in infos)))):
            continue
        if not columns:
            gone = f"if it is gone, leave out --as-text {shlex.quote(choice)}"
            raise DefiniteError(
                f"no column matches '{pattern}'", f"a column is named like public.orders.placed_at; {gone}"
            )
        if lake != TEXT and not any(column.decimal for column in columns):
            found = ", ".join(sorted({column.type.source_type for column in columns}))
            raise DefiniteError(
                f"no numeric without precision matches '{pattern}'", f"{found} is copied as it is; leave the option out"
            )


def _option(choice: str) -> str:
    return f"--as-text {shlex.quote(choice)}"
