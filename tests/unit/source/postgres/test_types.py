"""Which lake type a Postgres type becomes."""

from __future__ import annotations

import pytest

from tailrace.source.postgres._types import TypeInfo, lake_type

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
