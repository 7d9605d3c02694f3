"""Lists of tables and of schemas become patterns. What those match is tried in `model/test_table_pattern.py`."""

from __future__ import annotations

import pytest

from tailrace.configuration.tables import chosen, matched, of_schemas
from tailrace.model.table import TableId
from tailrace.model.table_pattern import ExpressionError, parse_expression


@pytest.mark.parametrize(
    ("expression", "patterns"),
    [
        (r"public\.orders", ["public.orders", r"/public\.orders/"]),
        ("public.orders", ["public.orders", "/public.orders/"]),
        (r"public\..*", [r"/public\..*/"]),
        (r"public\.a|public\.b", ["public.a", r"/public\.a/", "public.b", r"/public\.b/"]),
        (r"public\.x\*", ["public.x[*]", r"/public\.x\*/"]),
        (r"a\.b\.c", [r"/a\.b\.c/"]),
    ],
)
def test_a_name_comes_first_as_it_is_written(expression: str, patterns: list[str]) -> None:
    assert chosen(expression) == patterns


def test_what_is_left_out_is_left_out_in_any_case() -> None:
    assert matched("public.orders") == ["/public.orders/"]
    assert TableId("Public", "ORDERS").matches(matched("public.orders")[0])


@pytest.mark.parametrize("read", [chosen, matched])
def test_an_expression_without_a_schema_is_refused(read: object) -> None:
    with pytest.raises(ExpressionError, match="'orders' names no table"):
        read("orders")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("schemas", "expression", "expected"),
    [
        ("public", r".*\.orders", [r"/.*\.orders/ in /public/"]),
        ("public", r"public\.orders|other\.orders", ["public.orders", r"/public\.orders/ in /public/"]),
        ("PUBLIC", r"public\.orders", ["public.orders", r"/public\.orders/ in /PUBLIC/"]),
        ("sales_.*", r"sales_.*\.orders", [r"/sales_.*\.orders/ in /sales_.*/"]),
        ("public", r"other\.orders", []),
    ],
)
def test_with_a_list_of_schemas_a_table_must_be_in_both(schemas: str, expression: str, expected: list[str]) -> None:
    assert chosen(expression, parse_expression(schemas)) == expected


def test_a_schema_has_all_its_tables_also_one_with_a_dot_in_its_name() -> None:
    (pattern,) = of_schemas([*parse_expression("public"), *parse_expression(r"a\.b")])
    assert pattern == r"// in /public|a\.b/"
    assert TableId("a.b", "c").matches(pattern)
    assert not TableId("a", "b.c").matches(pattern)
    assert of_schemas([]) == []
