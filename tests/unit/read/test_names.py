"""Table names of the source in Spark SQL."""

from __future__ import annotations

import pytest

from tailrace.errors import DefiniteError
from tailrace.read.names import named_tables, short_names, with_view_names

TABLES = {"public.orders", "public.customers", "audit.orders"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from public.orders", "select * from `public.orders` as `orders`"),
        ("select * from public.orders o where o.id = 1", "select * from `public.orders` o where o.id = 1"),
        ("select orders.id from public.orders", "select orders.id from `public.orders` as `orders`"),
        (
            "select public.orders.id from public.orders join audit.orders a using (id)",
            "select `orders`.id from `public.orders` as `orders` join `audit.orders` a using (id)",
        ),
        (
            "with x as (select 1 as n) select 'public.orders', n from x, public.customers",
            "with x as (select 1 as n) select 'public.orders', n from x, `public.customers` as `customers`",
        ),
        ("select * from customers", "select * from customers"),
        ("select * from other.thing", "select * from other.thing"),
        ("this is ( not sql", "this is ( not sql"),
    ],
)
def test_a_qualified_name_becomes_the_view_of_that_name_and_nothing_else_changes(query: str, expected: str) -> None:
    assert with_view_names(query, TABLES) == expected


def test_a_name_alone_stands_for_a_table_only_where_no_other_namespace_has_it() -> None:
    assert short_names(TABLES) == {"customers": "public.customers"}


def test_a_query_names_the_tables_it_means_by_full_or_short_name_in_any_case() -> None:
    tables = ["public.orders", "sales.orders", "public.Lines", "public.quiet"]
    assert named_tables("select * from PUBLIC.Orders o join lines l using (id)", tables) == [
        "public.orders",
        "public.Lines",
    ]
    assert named_tables("with orders as (select 1) select * from orders", tables) == []
    assert named_tables("with q as (select 1) select * from q", tables) == []
    assert named_tables("this is [ no sql", tables) == tables


def test_a_short_name_that_another_table_has_as_its_whole_name_or_in_another_case_stands_for_none() -> None:
    assert short_names(["audit.public.orders", "public.orders"]) == {"orders": "public.orders"}
    assert short_names(["sales.orders", "archive.Orders", "sales.lines"]) == {"lines": "sales.lines"}


def test_a_query_means_the_table_of_that_whole_name_and_an_unclear_name_lists_the_candidates() -> None:
    tables = ["audit.public.orders", "public.orders", "sales.items", "archive.Items"]
    assert named_tables("select * from public.orders", tables) == ["public.orders"]
    assert named_tables("select * from audit.`public.orders`", tables) == ["audit.public.orders"]
    assert named_tables("select * from orders", tables) == ["public.orders"]
    with pytest.raises(DefiniteError, match="several tables are called items") as caught:
        named_tables("select * from items", tables)
    assert caught.value.hint == "write the whole name: sales.items or archive.Items"
