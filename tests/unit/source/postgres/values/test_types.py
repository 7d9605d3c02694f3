"""Which lake type a Postgres type becomes."""

from __future__ import annotations

import pytest

from tailrace.model.table import TableId
from tailrace.source.postgres.catalog.patterns import names_column
from tailrace.source.postgres.values.types import TypeInfo, lake_type

NUMERIC = TypeInfo(1700, "numeric")


def numeric_typmod(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


@pytest.mark.parametrize(
    ("precision", "scale", "lake"),
    [
        (12, 2, "decimal(12,2)"),
        (38, 38, "decimal(38,38)"),
        (1, 0, "decimal(1,0)"),
        (39, 0, "string"),
        (1000, 1000, "string"),
        (5, -3, "string"),
        (3, 5, "string"),
    ],
)
def test_a_numeric_is_a_decimal_only_where_a_decimal_holds_all_of_it(precision: int, scale: int, lake: str) -> None:
    assert lake_type(NUMERIC, numeric_typmod(precision, scale)) == lake


def test_a_numeric_without_precision_is_text() -> None:
    assert lake_type(NUMERIC, -1) == "string"


def test_a_domain_over_a_domain_has_the_innermost_types_modifier() -> None:
    price = TypeInfo(90001, "price", base=NUMERIC, base_typmod=numeric_typmod(10, 2))
    discount = TypeInfo(90002, "discount", base=price)
    assert lake_type(discount, -1) == "decimal(10,2)"


def test_a_type_nobody_knows_is_text() -> None:
    assert lake_type(TypeInfo(424242, "date"), -1) == "string"


INT = TypeInfo(23, "int4")


def test_an_array_has_the_lake_type_of_its_elements_and_they_have_its_modifier() -> None:
    assert lake_type(TypeInfo(1007, "_int4", element=INT), -1) == "array<int>"
    assert lake_type(TypeInfo(1231, "_numeric", element=NUMERIC), numeric_typmod(12, 2)) == "array<decimal(12,2)>"
    assert lake_type(TypeInfo(1231, "_numeric", element=NUMERIC), -1) == "array<string>"
    assert lake_type(TypeInfo(1007, "_int4", element=INT), -1, arrays=False) == "string"


def test_an_array_of_domains_over_arrays_has_text_for_elements() -> None:
    row = TypeInfo(90003, "row", base=TypeInfo(1007, "_int4", element=INT))
    assert lake_type(row, -1) == "array<int>"
    assert lake_type(TypeInfo(90004, "_row", element=row), -1) == "array<string>"


def test_a_pattern_names_a_column_by_as_much_as_it_says() -> None:
    orders = TableId("public", "orders")
    for pattern in ("placed", "plac*", "orders.placed", "o*.placed", "public.orders.placed", "*.*.placed"):
        assert names_column([pattern], orders, "placed"), pattern
    for pattern in ("place", "other.placed", "other.orders.placed", "orders.*.placed"):
        assert not names_column([pattern], orders, "placed"), pattern
    dotted = TableId("public", "a.b")
    assert names_column(['public."a.b".c'], dotted, "c")
    assert names_column(["public.a.b.c"], dotted, "c")
