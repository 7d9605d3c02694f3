"""How a copy follows its table to another shape."""

from __future__ import annotations

import pytest

from tailrace.errors import ResyncError
from tailrace.model.following import Steps, steps
from tailrace.model.table import Column, TableId, TableSchema

ID = Column("id", "int", "integer", 1)
NAME = Column("name", "string", "character varying(20)", 2)
NEW = Column("n", "int", "integer", 3)


def taken(*columns: Column) -> Steps:
    return steps([ID, NAME], TableSchema(TableId("public", "t"), 7, columns, ("id",)))


def test_the_same_shape_needs_no_step() -> None:
    assert not taken(ID, NAME)
    assert not taken(ID, Column("name", "string", "text", 2))


def test_columns_are_known_by_their_numbers() -> None:
    assert taken(ID, NAME, NEW) == Steps(add=(NEW,))
    assert taken(ID) == Steps(drop=("name",))
    assert taken(ID, Column("title", "string", "text", 2)) == Steps(rename={"name": "title"})
    again = Column("name", "string", "text", 3)
    assert taken(ID, again) == Steps(drop=("name",), add=(again,))


def test_columns_without_numbers_are_known_by_their_names() -> None:
    present = [Column("id", "int", ""), Column("a", "int", "")]
    schema = TableSchema(TableId("shop", "t"), 7, (Column("id", "int", ""), Column("b", "int", "")), ("id",))
    assert steps(present, schema) == Steps(drop=("a",), add=(Column("b", "int", ""),))


def test_a_name_may_go_to_another_column_when_its_own_is_dropped() -> None:
    present = [ID, NAME, Column("old", "string", "text", 3)]
    schema = TableSchema(TableId("public", "t"), 7, (ID, Column("name", "string", "text", 3)), ("id",))
    assert steps(present, schema) == Steps(drop=("name",), rename={"old": "name"})


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((ID, Column("name", "int", "integer", 2)), "was character varying.20. and is now integer"),
        ((Column("name", "int", "integer", 1), Column("id", "string", "text", 2)), "exchanged their names"),
    ],
)
def test_what_no_step_can_do_needs_a_new_copy(columns: tuple[Column, ...], reason: str) -> None:
    with pytest.raises(ResyncError, match=reason):
        taken(*columns)
