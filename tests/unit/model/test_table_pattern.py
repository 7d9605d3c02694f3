r"""A pattern matches the tables that Debezium's expression matches, or the expression is refused.

The oracle is Python's `re`, used as Debezium uses Java's: against the whole `schema.table`, in any case of ASCII. What
the two read in another way is tried one by one below.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.table import TableId
from tailrace.model.table_pattern import (
    Expression,
    ExpressionError,
    escaped,
    exact_pattern,
    parse_expression,
    pattern_text,
    split_list,
)

LETTERS = 'aAbBßÄ_1.$"* [-,?/'
"""Small, so that names collide, and with everything that means something in a pattern or a quoted name."""
NAMES = st.text(LETTERS, min_size=1, max_size=4)
TABLES = st.builds(TableId, NAMES, NAMES)


def debezium_matches(expression: str, table: TableId) -> bool:
    return re.fullmatch(expression, f"{table.namespace}.{table.name}", re.IGNORECASE | re.ASCII) is not None


def matches(expression: str, table: TableId) -> bool:
    return any(table.matches(pattern_text([each])) for each in parse_expression(expression))


@given(TABLES, st.lists(TABLES, max_size=5))
def test_a_name_matches_what_debezium_matches(named: TableId, others: list[TableId]) -> None:
    expression = rf"{escaped(named.namespace)}\.{escaped(named.name)}"
    (parsed,) = parse_expression(expression)
    assert parsed.literal == f"{named.namespace}.{named.name}"
    swapped = TableId(named.namespace.swapcase(), named.name.swapcase())
    for table in (named, *others, swapped, TableId(named.namespace, f"{named.name}a"), TableId("a", str(named))):
        assert matches(expression, table) == debezium_matches(expression, table), table


PIECES = st.sampled_from(
    [
        *("a", "B", "ab", r"\.", ".", ".*", ".+", "(a|b)", "(?:a|.*)", "a?", "_", "Ä", "|", r"\$", "()?", "[ab]"),
        *("[^a.]", r"\d", r"\W+", "a{1,2}", ".*?", "[a-b_]*", "/", "[/a]", "(b.*)?", "a{2}"),
    ]
)
EXPRESSIONS = st.lists(PIECES, min_size=1, max_size=3).map("".join)
"""Short enough to be taken: more repetitions could take too long to match."""


@st.composite
def tables_for(draw: st.DrawFn, expression: str) -> list[TableId]:
    """Some that the expression matches, cut at every dot, and some others."""
    drawn = draw(st.lists(st.from_regex(expression, fullmatch=True, alphabet=LETTERS), max_size=3))
    cuts = [(text[:at], text[at + 1 :]) for text in drawn for at, letter in enumerate(text) if letter == "."]
    return [TableId(*cut) for cut in cuts if all(cut)] + draw(st.lists(TABLES, min_size=1, max_size=4))


@given(EXPRESSIONS, st.data())
def test_an_expression_matches_what_debezium_matches(expression: str, data: st.DataObject) -> None:
    for table in data.draw(tables_for(expression)):
        assert matches(expression, table) == debezium_matches(expression, table), table


@given(EXPRESSIONS, EXPRESSIONS, TABLES)
def test_with_namespaces_a_table_must_be_in_one(expression: str, schema: str, table: TableId) -> None:
    pattern = pattern_text(parse_expression(expression), parse_expression(schema))
    is_in = re.fullmatch(schema, table.namespace, re.IGNORECASE | re.ASCII) is not None
    assert table.matches(pattern) == (is_in and debezium_matches(expression, table))
    assert table.matches(pattern_text([], parse_expression(schema))) == is_in


@given(TABLES, TABLES)
def test_an_exact_pattern_names_one_table_alone(table: TableId, other: TableId) -> None:
    assert table.matches(exact_pattern(str(table)))
    assert other.matches(exact_pattern(str(table))) <= (
        f"{other.namespace}.{other.name}" == str(table) or other == table
    )


@pytest.mark.parametrize(
    ("expression", "literal"),
    [
        (r"public\.orders", "public.orders"),
        ("public.orders", "public.orders"),
        ("^public.orders$", "public.orders"),
        (r"public\.price\$", "public.price$"),
        (r"public\..*", None),
        (r"public\.order.", None),
        ("public.order_.", None),
    ],
)
def test_an_expression_that_is_a_name_is_known_as_one(expression: str, literal: str | None) -> None:
    (found,) = parse_expression(expression)
    assert found.literal == literal


def test_alternatives_are_told_apart() -> None:
    assert [each.literal for each in parse_expression(r"public\.a|public\.b|c\.(d|e)")] == [
        "public.a",
        "public.b",
        None,
    ]


@pytest.mark.parametrize("letter", ["\n", "\r", "\x85", "\u2028", "\u2029"])
def test_a_dot_is_javas_dot_which_matches_no_end_of_a_line(letter: str) -> None:
    assert not matches(r"a\.x.y", TableId("a", f"x{letter}y"))
    assert matches(r"a\.x[^z]y", TableId("a", f"x{letter}y"))


@pytest.mark.parametrize(
    "expression",
    [
        r"public\.(?!secret).*",
        r"(?i)public\.orders",
        r"public\.(a",
        r"public\.a)",
        r"public\.^a",
        r"public\.$a",
        r"\Qpublic.a\E",
        r"public\.\bx",
        r"public\.\p{Lu}",
        r"public\.\u0041",
        r"public\.(a)\1",
        r"public\.(a*)*",
        r"public\.(a|b)+",
        r"public\.[a-z&&[^b]]",
        r"public\.[[:alpha:]]",
        r"public\.[a-Z]",
        r"public\.a{,2}",
        r"public\.a{2,1}",
        r"public\.a}",
        r"public\.a**",
        "public\\",
    ],
)
def test_what_java_may_read_in_another_way_is_refused_with_a_hint(expression: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(expression)
    assert caught.value.hint
    assert expression in caught.value.message


def test_a_list_is_split_at_commas_that_are_not_escaped() -> None:
    assert split_list(r" a.b , c.d\,e ,, f") == ["a.b", r"c.d\,e", "f"]


def test_a_name_lies_within_namespaces_that_match_what_is_before_a_dot() -> None:
    schemas = [*parse_expression("sales_.*"), *parse_expression("PUBLIC")]
    assert Expression("", "public.orders").is_within(schemas)
    assert not Expression("", "other.orders").is_within(schemas)


@pytest.mark.parametrize(
    "expression",
    [
        ".*a.*a.*a.*a.*b",
        "a?" * 30 + "a" * 30,
        "(.*a|b)(c|.*d)(.*e.*f|g).*h",
        "(" * 51 + "a" + ")" * 51,
        "a{1,99}" * 5,
    ],
)
def test_an_expression_that_could_take_long_to_match_is_refused_wherever_it_is_written(expression: str) -> None:
    with pytest.raises(ExpressionError, match=r"too long to match|nested deeper than 50"):
        parse_expression(expression)
    with pytest.raises(ExpressionError):
        TableId("public", "a" * 63).matches(f"/{expression}/")


@pytest.mark.parametrize("expression", ["(.*a.*|.*b.*|.*c.*|.*d.*)", "|".join([r"public\..*x.*"] * 40), "a{3}" * 20])
def test_choices_of_which_one_is_taken_do_not_add_up(expression: str) -> None:
    assert parse_expression(expression)
