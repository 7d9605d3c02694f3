"""What lake columns are called."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.rows.column_names import distinct, folded
from tailrace.model.table import Column, TableId, TableSchema

NAMES = st.sampled_from(["a", "A", "b", "B", "a_2", "A_2", "a_3", "a_3_4", "ab", "AB", "aB"])


def schema(*names: str, key: tuple[str, ...] = (), numbers: bool = True) -> TableSchema:
    columns = (Column(name, "int", "integer", place * numbers) for place, name in enumerate(names, 1))
    return TableSchema(TableId("public", "t"), 7, tuple(columns), key)


def test_a_shape_without_such_names_is_itself() -> None:
    plain = schema("a", "b", key=("a",))
    assert distinct(plain) is plain


def test_the_first_keeps_its_name_and_the_others_have_their_numbers_in_the_key_too() -> None:
    found = distinct(schema("id", "Name", "name", "NAME", "name_3", key=("id", "name")))
    assert found.names == ("id", "Name", "name_3", "NAME_4", "name_3_5")
    assert found.key == ("id", "name_3")
    assert [column.in_source for column in found.columns] == ["id", "Name", "name", "NAME", "name_3"]
    assert distinct(found) is found
    assert distinct(schema("a", "A", numbers=False)).names == ("a", "A_2")


@given(st.lists(NAMES, unique=True))
def test_names_differ_in_more_than_case_and_one_that_is_added_changes_no_other(names: list[str]) -> None:
    found = [distinct(schema(*names[:count])).names for count in range(len(names) + 1)]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(found))
    assert len({name.lower() for name in found[-1]}) == len(names)


def test_a_column_is_called_by_its_own_name_again_when_the_other_has_gone() -> None:
    three = schema("Name", "name", "n")
    assert distinct(replace(three, columns=three.columns[1:])).names == ("name", "n")


@pytest.mark.parametrize(("one", "other"), [("Ä", "ä"), ("ſ", "S"), ("K", "k"), ("İ", "i"), ("ı", "I")])
def test_what_spark_takes_for_one_name_is_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_what_spark_tells_apart_is_told_apart() -> None:
    assert len({folded(name) for name in ("straße", "strasse", "a", "ä", "aa")}) == 5
