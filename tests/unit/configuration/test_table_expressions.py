"""A pattern of ours matches the tables that Debezium's expression matches, or the expression is refused.

The oracle is Python's `re`, used as Debezium uses Java's: against the whole `schema.table`, in any case of ASCII.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.configuration._expressions import ExpressionError, split_list
from tailrace.configuration.tables import Schemas, chosen, matched, schema_names
from tailrace.model.table import TableId

LETTERS = 'aAbBßÄ_1.$"* [-,?'
"""Small, so that names collide, and with everything that means something in a pattern or a quoted name."""
NAMES = st.text(LETTERS, min_size=1, max_size=4)
TABLES = st.builds(TableId, NAMES, NAMES)


def debezium_matches(expression: str, table: TableId) -> bool:
    return re.fullmatch(expression, f"{table.namespace}.{table.name}", re.IGNORECASE | re.ASCII) is not None


def matches(patterns: list[str], table: TableId) -> bool:
    return any(table.matches(pattern) for pattern in patterns)


def refused(expression: str) -> bool:
    try:
        chosen(expression, lambda _: None)
    except ExpressionError:
        return True
    return False


def literal(name: str) -> str:
    return re.sub(r"([^A-Za-z0-9_ßÄ])", r"\\\1", name)


@given(TABLES, st.lists(TABLES, max_size=5))
def test_a_literal_name_matches_what_debezium_matches(named: TableId, others: list[TableId]) -> None:
    expression = rf"{literal(named.namespace)}\.{literal(named.name)}"
    swapped = TableId(named.namespace.swapcase(), named.name.swapcase())
    if '"' in expression:
        assert refused(expression)
        return
    for patterns in (chosen(expression, pytest.fail), matched(expression)):
        assert matches(patterns, named)
        for table in (*others, swapped, TableId(named.namespace, f"{named.name}a"), TableId("a", str(named))):
            assert matches(patterns, table) == debezium_matches(expression, table), table


PIECES = st.sampled_from(
    ["a", "B", "ab", r"\.", ".", ".*", ".+", "(a|b)", "(?:a|.*)", "a?", "_", "Ä", "|", r"\$", "()?"]
)


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.lists(TABLES, min_size=1, max_size=8))
def test_an_expression_matches_what_debezium_matches_or_is_refused(expression: str, tables: list[TableId]) -> None:
    try:
        patterns = matched(expression)
    except ExpressionError:
        return
    for table in tables:
        assert matches(patterns, table) == debezium_matches(expression, table), table


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.lists(TABLES, min_size=1, max_size=8))
def test_a_table_to_copy_is_never_matched_wrongly_and_missed_only_with_a_warning(
    expression: str, tables: list[TableId]
) -> None:
    warnings: list[str] = []
    try:
        patterns = chosen(expression, warnings.append)
    except ExpressionError:
        return
    for table in tables:
        if matches(patterns, table) or not warnings:
            assert matches(patterns, table) == debezium_matches(expression, table), table


@pytest.mark.parametrize(
    ("expression", "patterns"),
    [
        (r"public\.orders", ["public.orders"]),
        ("public.orders", ["public.orders"]),
        ("^public.orders$", ["public.orders"]),
        (r"public\..*", ["public.*"]),
        (r"public\..+", ["public.*"]),
        (r".+\.orders", ["*.orders"]),
        ("inventory.*", ["inventory*.*"]),
        (".*", ["*.*"]),
        (r".*\.orders", ["*.orders"]),
        (r"(public|sales)\.(orders|items_.*)", ["public.orders", "public.items_*", "sales.orders", "sales.items_*"]),
        (r"public\.orders?", ["public.orders", "public.order"]),
        (r"public\.a|public\.b", ["public.a", "public.b"]),
        (r"public\.price\$", ["public.price$"]),
    ],
)
def test_what_people_write_is_translated(expression: str, patterns: list[str]) -> None:
    """As it is written comes first, then the same in any case."""
    found = chosen(expression, pytest.fail)
    assert found[: len(patterns)] == patterns
    assert [each for each in found[len(patterns) :] if "[" not in each] == []


@pytest.mark.parametrize(
    "expression",
    [
        r"public\.orders_[0-9]+",
        r"public\.orders_\d",
        r"public\.o{2}",
        r"public\.(?!secret).*",
        r"(?i)public\.orders",
        r"public\.a*",
        r"public\.a+",
        r"public\.a??",
        r"public\..*?",
        r"public\.(a",
        r"public\.a)",
        r"public\.^a",
        r"\Qpublic.a\E",
        r"public\.a.+",
        r"public\..b",
        "orders",
        ".*order.*",
        r'public\."a"',
        "((((((((((a|b)(a|b))(a|b))(a|b))(a|b))(a|b))(a|b))(a|b))(a|b))(a|b)).x",
    ],
)
def test_what_a_pattern_cannot_say_is_refused_with_a_hint(expression: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        chosen(expression, lambda _: None)
    assert caught.value.hint


def test_an_unescaped_dot_that_could_be_another_character_is_warned_of() -> None:
    warnings: list[str] = []
    patterns = chosen("public.order_.*", warnings.append)
    assert patterns[0] == "public.order_*"
    assert warnings == [r"'public.order_.*' is taken as if its first dot were escaped, \., and ended the schema's name"]


def test_a_list_is_split_at_commas_that_are_not_escaped() -> None:
    assert split_list(r" a.b , c.d\,e ,, f") == ["a.b", r"c.d\,e", "f"]


@pytest.mark.parametrize(
    ("schemas", "expression", "expected"),
    [
        ("public", r".*\.orders", ["public.orders"]),
        ("public", r"public\.orders|other\.orders", ["public.orders"]),
        ("PUBLIC", r"public\.orders", ["public.orders"]),
        ("sales_.*", r".*\.orders", ["sales_*.orders"]),
        ("sales_.*", r"sales_eu\.orders", ["sales_eu.orders"]),
        ("public", r"other\.orders", []),
    ],
)
def test_with_a_list_of_schemas_a_table_must_be_in_both(schemas: str, expression: str, expected: list[str]) -> None:
    found = chosen(expression, pytest.fail, Schemas(tuple(schema_names(schemas))))
    assert [each.lower() for each in found if "[" not in each] == expected


def test_a_schema_that_two_lists_describe_differently_is_refused() -> None:
    with pytest.raises(ExpressionError, match="cannot be combined"):
        chosen(r"sales_.*\.orders", pytest.fail, Schemas(tuple(schema_names("sales_eu"))))


PLAIN = st.text("aAbß_1", min_size=1, max_size=3)


@given(PLAIN, st.builds(TableId, PLAIN, NAMES))
def test_a_schema_has_all_its_tables_in_any_case(schema: str, table: TableId) -> None:
    is_in = re.fullmatch(schema, table.namespace, re.IGNORECASE | re.ASCII) is not None
    assert matches(Schemas(tuple(schema_names(schema))).tables(), table) == is_in
