"""The four lists of Debezium's that say which tables, as the two that we have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tailrace.configuration._examination import Examination
from tailrace.configuration._expressions import ExpressionError
from tailrace.configuration.tables import Schemas, chosen, matched, schema_names

Read = TypeVar("Read")

_UNSEEN = "what it refers to has an expression that can be read in more than one way, or in none"


def table_patterns(examination: Examination) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Patterns of tables to copy, none for all of them, and of tables to leave out."""
    exclude = _read_each(examination, "table.exclude.list", matched)
    exclude += _schemas(examination, "schema.exclude.list").tables()
    return tuple(_included(examination)), tuple(exclude)


def append_only_tables(examination: Examination) -> list[str]:
    key = "append.only.tables"
    if examination.items(key) and examination.text("publication.name") is not None:
        examination.refuse(key, "not with publication.name: tables without a key need a publication of their own")
    return _read_each(examination, key, matched)


def _included(examination: Examination) -> list[str]:
    key = "table.include.list"
    schemas = _schemas(examination, "schema.include.list")
    if not examination.items(key):
        return schemas.tables()

    def warn(warning: str) -> None:
        examination.warn(key, _UNSEEN if examination.is_looked_up(key) else warning)

    found = _read_each(examination, key, lambda item: chosen(item, warn, schemas))
    if not found and key not in examination.problems:
        examination.refuse(key, "names no table in the schemas of schema.include.list")
    return found


def _schemas(examination: Examination, key: str) -> Schemas:
    return Schemas(tuple(_read_each(examination, key, schema_names)))


def _read_each(examination: Examination, key: str, read: Callable[[str], list[Read]]) -> list[Read]:
    """What all items of a list come to. Each that cannot be read is a problem of its own."""
    found: dict[Read, None] = {}
    for item in examination.items(key):
        try:
            found |= dict.fromkeys(read(item))
        except ExpressionError as error:
            problem = _UNSEEN if examination.is_looked_up(key) else error.message
            examination.refuse(key, f"{problem}: {error.hint}")
    return list(found)
