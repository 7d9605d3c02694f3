"""Columns of a key that are text for all rows."""

from __future__ import annotations

from dataclasses import replace

from tailrace.model.rows.text_key import TextKey, text_keyed
from tailrace.model.table import Column, TableId, TableSchema

DAY, N, AT = (
    Column("day", "date", "date", 1),
    Column("n", "bigint", "bigint", 2),
    Column("at", "timestamp", "timestamptz", 3),
)
SCHEMA = TableSchema(TableId("public", "t"), 7, (DAY, N, AT), ("day", "n"))


def types(schema: TableSchema, *columns: int | str) -> list[str]:
    return [column.type for column in text_keyed(schema, TextKey(7, columns, "a value")).columns]


def test_columns_of_the_key_are_text_by_their_numbers_as_far_as_their_types_need_it() -> None:
    assert types(SCHEMA, 1) == ["string", "bigint", "timestamp"]
    assert types(SCHEMA, 2, 3) == ["date", "bigint", "timestamp"], "no type that needs it, and not in the key"
    renamed = replace(SCHEMA, columns=(replace(DAY, name="at_day"), N, AT), key=("at_day", "n"))
    assert types(renamed, 1)[0] == "string"


def test_another_table_of_the_name_is_typed() -> None:
    assert types(replace(SCHEMA, relation=8), 1)[0] == "date"
    assert text_keyed(SCHEMA, None) is SCHEMA
