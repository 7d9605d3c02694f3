"""Which numbers the columns have that the stream once listed, as far as the catalog tells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.source.postgres.catalog.definition import Attribute, Definition, Made, Types
from tailrace.source.postgres.catalog.verdict import may_have_made, numbers_of, why_copy
from tailrace.source.postgres.values.types import RULE, RULE_TEXT_ARRAYS

DROPPED, COMPUTED = "-", "="


def attributes(names: str) -> list[Attribute]:
    """`a - b= c`: a, a dropped one, b computed, c."""
    return [
        Attribute(
            number,
            f"........pg.dropped.{number}........" if name == DROPPED else name.rstrip(COMPUTED),
            type=23,
            typmod=-1,
            source_type="integer",
            is_dropped=name == DROPPED,
            is_unsent=name.endswith(COMPUTED),
            version="1",
        )
        for number, name in enumerate(names.split(), 1)
    ]


@pytest.mark.parametrize(
    ("listed", "now", "numbers"),
    [
        ("a b c", "a b c", [1, 2, 3]),
        ("a b", "a b c", [1, 2]),
        ("a c", "a b= c", [1, 3]),
        ("a b c", "a - c", [1, 2, 3]),
        ("a b c", "a b -", [1, 2, 3]),
        ("a b c", "a b d", [1, 2, 3]),
        ("a b c", "x y z", [1, 2, 3]),
        ("a b", "a - b", [1, 3]),
        ("a b", "a b - -", [1, 2]),
        ("a b c", "a b - d", None),
        ("a b c", "a b - -", None),
        ("a x", "a y x", None),
        ("a b c", "a c b", None),
        ("a b c", "b a c", None),
        ("a b", "a", None),
        ("", "a b", []),
    ],
)
def test_columns_are_matched_by_name_and_by_the_gap_they_stand_in(
    listed: str, now: str, numbers: list[int] | None
) -> None:
    assert numbers_of(listed.split(), attributes(now)) == numbers


@dataclass
class World:
    """A table's columns as a person changes them: the truth."""

    columns: list[Attribute] = field(default_factory=lambda: attributes("a b c"))
    changes: int = 1

    def live(self) -> list[Attribute]:
        return [each for each in self.columns if not each.is_dropped]

    def change(self, kind: str, which: int, name: str) -> None:
        self.changes += 1
        taken = {each.name for each in self.live()}
        changed = replace(attributes(name)[0], number=len(self.columns) + 1, version=str(self.changes))
        if kind == "add" and name not in taken:
            self.columns.append(changed)
        elif kind != "add" and self.live():
            old = self.live()[which % len(self.live())]
            name = f"dropped {old.number}" if kind == "drop" else old.name if name in taken else name
            self.columns[old.number - 1] = replace(changed, number=old.number, name=name, is_dropped=kind == "drop")

    def definition(self, at: int) -> Definition:
        return Definition(at, tuple(self.columns), {"7": 1}, 0, (), {}, {}, "")


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "drop", "rename"]), st.integers(0, 5), st.sampled_from("abcdef")), max_size=8
)


@given(before=CHANGES, after=CHANGES)
def test_a_list_of_columns_is_never_matched_wrongly_unless_the_definition_is_in_doubt(
    before: list[tuple[str, int, str]], after: list[tuple[str, int, str]]
) -> None:
    world = World()
    copied_under = world.definition(1)
    for change in before:
        world.change(*change)
    listed = world.live()
    for change in after:
        world.change(*change)
    now = world.definition(2)
    names = [each.name for each in listed]
    found = numbers_of(names, now.attributes)
    if found is not None and found != [each.number for each in listed]:
        announced = replace(now, listed=dict(zip(names, found, strict=True)))
        assert why_copy(copied_under, announced) is not None


def test_a_choice_of_text_for_a_column_has_the_table_copied_and_another_rule_does_not() -> None:
    made = World().definition(1)
    assert made.types == Types(RULE_TEXT_ARRAYS)
    assert why_copy(made, replace(made, at=2, types=Types(RULE))) is None
    chosen = replace(made, at=2, types=Types(RULE, (2,)))
    assert why_copy(made, chosen) == "column b is to be copied as text"
    assert why_copy(replace(chosen, at=1), replace(made, at=2)) == "column b is no longer to be text"


def test_a_definition_of_an_older_tailrace_has_the_rule_of_its_time() -> None:
    older = {name: value for name, value in World().definition(1).to_json().items() if name != "types"}
    assert Definition.from_json(older).types == Types(RULE_TEXT_ARRAYS, ())
    chosen = replace(World().definition(1), types=Types(RULE, (2, 3)))
    assert Definition.from_json(json.loads(json.dumps(chosen.to_json()))) == chosen


def test_a_table_that_shows_an_earlier_number_than_who_filled_it_was_made_by_another() -> None:
    assert may_have_made(740, Made(740, 750)), "by itself"
    assert may_have_made(740, Made(742, 750)), "perhaps in a sub-transaction"
    assert not may_have_made(740, Made(739, 750))
    assert may_have_made(740, None), "no other session sees it"
    assert not may_have_made(760, Made(739, 750)), "who filled it is not seen yet, and who made it is"


def test_numbers_of_transactions_are_compared_across_the_end_of_them() -> None:
    end = 1 << 32
    assert may_have_made(end - 2, Made(5, end + 9)), "a sub-transaction after the first numbers were used up"
    assert not may_have_made(5, Made(end - 2, end + 9))
    assert not may_have_made(740, Made(3_000_000_000, 7 * end + 750)), "made thousands of millions ago"
    assert not may_have_made(740, Made(900, 7 * end + 750))


@given(top=st.integers(3, 1 << 40), others=st.lists(st.integers(1, 1 << 20), min_size=2, max_size=2))
def test_who_made_a_table_is_never_taken_for_another(top: int, others: list[int]) -> None:
    sub, end = top + others[0], top + others[0] + others[1]
    assert may_have_made(top % (1 << 32), Made(sub % (1 << 32), end))
    assert may_have_made(top % (1 << 32), Made(top % (1 << 32), end))
    assert not may_have_made(sub % (1 << 32), Made(top % (1 << 32), end))
