"""How a copy follows its table to another shape."""

from __future__ import annotations

import pytest

from tailrace.errors import ResyncError
from tailrace.model.following import Steps, steps, typed_like
from tailrace.model.rows.exact import lake_column
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


DAY = Column("day", "date", "date", 4)
OURS = lake_column(())


def followed(*columns: Column) -> Steps:
    return steps([ID, NAME, DAY, OURS], TableSchema(TableId("public", "t"), 7, columns, ("id",)))


def test_the_column_for_what_others_cannot_hold_stays() -> None:
    assert not followed(ID, NAME, DAY)
    assert followed(ID, NAME, DAY, NEW) == Steps(add=(NEW,))
    assert followed(ID, DAY) == Steps(drop=("name",))


def test_it_makes_room_for_a_column_of_the_source() -> None:
    theirs = Column("_exact", "string", "text", 5)
    assert followed(ID, NAME, DAY, theirs) == Steps(rename={"_exact": "_exact_"}, add=(theirs,))
    renamed = Column("_exact", "string", "text", 2)
    assert followed(ID, renamed, DAY).rename == {"name": "_exact", "_exact": "_exact_"}


def test_a_column_whose_values_rows_may_keep_under_its_name_cannot_leave_that_name() -> None:
    for columns in ((ID, NAME), (ID, NAME, Column("date", "date", "date", 4))):
        with pytest.raises(ResyncError, match="column day was renamed or dropped"):
            followed(*columns)


def test_a_copy_keeps_the_lake_types_that_it_was_made_with() -> None:
    array, text = Column("v", "array<int>", "integer[]", 2), Column("v", "string", "integer[]", 2)
    for now, made in ((array, text), (text, array)):
        schema = TableSchema(TableId("public", "t"), 7, (ID, now), ("id",))
        assert typed_like(schema, [ID, made]).columns == (ID, made)
        assert typed_like(schema, [ID]) is schema
    other = TableSchema(TableId("public", "t"), 7, (ID, Column("v", "int", "integer", 2)), ("id",))
    assert typed_like(other, [ID, text]) is other, "its type in the source is another one"
