"""Which changes of shape the lake follows, and which it refuses."""

from __future__ import annotations

import pytest

from tailrace.errors import DefiniteError
from tailrace.model.following import added_columns
from tailrace.model.table import Column, TableId, TableSchema

ID = Column("id", "int", "integer", 1)
NAME = Column("name", "string", "character varying(20)", 2)


def added(*columns: Column) -> list[str]:
    schema = TableSchema(TableId("public", "t"), 7, columns, ("id",))
    return [column.name for column in added_columns([ID, NAME], schema)]


def test_a_new_column_is_added_and_a_dropped_one_stays() -> None:
    assert added(ID, NAME) == []
    assert added(ID, Column("n", "int", "integer", 3)) == ["n"]


@pytest.mark.parametrize("source_type", ["character varying(20)", "character varying(50)", "character varying", "text"])
def test_text_may_become_longer(source_type: str) -> None:
    assert added(ID, Column("name", "string", source_type, 2)) == []


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (Column("title", "string", "character varying(20)", 2), "column name was renamed to title"),
        (Column("name", "string", "character varying(20)", 3), "dropped and created again"),
        (Column("name", "string", "character varying(10)", 2), r"is now character varying\(10\)"),
        (Column("name", "string", "json", 2), "is now json"),
        (Column("name", "int", "integer", 2), "is now integer"),
        (Column("n", "int", "integer", 3, missing="5"), "was added with '5'"),
    ],
)
def test_what_changes_old_rows_without_a_change_being_sent_is_refused(column: Column, reason: str) -> None:
    with pytest.raises(DefiniteError, match=reason):
        added(ID, column)
