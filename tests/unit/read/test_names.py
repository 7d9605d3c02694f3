"""Table names of the source in the SQL of Spark and of DuckDB."""

from __future__ import annotations

import pytest

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.read.names import Dialect, NamedQuery, TableNames

ORDERS, CUSTOMERS, OLD_ORDERS = TableId("public", "orders"), TableId("public", "customers"), TableId("audit", "orders")
TABLES = [ORDERS, CUSTOMERS, OLD_ORDERS]


def read(query: str, *tables: TableId, dialect: Dialect = Dialect.SPARK) -> NamedQuery:
    found = TableNames(tables, dialect).read(query)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from public.orders", "select * from `public.orders` as `orders`"),
        ("select * from public.orders o where o.id = 1", "select * from `public.orders` o where o.id = 1"),
        ("select orders.id from public.orders", "select orders.id from `public.orders` as `orders`"),
        ("select * from `public`.`orders`", "select * from `public.orders` as `orders`"),
        ("select * from `public.orders`", "select * from `public.orders`"),
        ("select * from PUBLIC.Orders", "select * from `public.orders` as `Orders`"),
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
        ("select * from spark_catalog.public.orders", "select * from spark_catalog.public.orders"),
        ("select x.public.orders.id from x", "select x.public.orders.id from x"),
        ("describe public.orders", "describe `public.orders`"),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_a_qualified_name_becomes_the_view_of_that_name_and_nothing_else_changes(
    query: str, expected: str, dialect: Dialect
) -> None:
    if dialect is Dialect.DUCKDB:
        query, expected = query.replace("`", '"'), expected.replace("`", '"')
    assert read(query, *TABLES, dialect=dialect).text == expected


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("query", ["this is ( not sql", "explain select * from orders"])
def test_what_is_not_understood_here_is_left_to_the_engine_without_a_word(
    query: str, dialect: Dialect, capfd: pytest.CaptureFixture[str]
) -> None:
    assert TableNames(TABLES, dialect).read(query) is None
    assert capfd.readouterr().err == ""


def test_a_name_alone_stands_for_a_table_only_where_no_other_has_it_in_any_case() -> None:
    others = [TableId("sales", "lines"), TableId("archive", "Lines"), TableId("public", "a.b")]
    names = TableNames([*TABLES, *others], Dialect.SPARK)
    assert names.views(CUSTOMERS) == ["public.customers", "customers"]
    assert names.views(ORDERS) == ["public.orders"]
    assert [names.views(table) for table in others] == [["sales.lines"], ["archive.Lines"], ['public."a.b"']]


def test_a_query_names_the_tables_it_means_by_full_or_short_name_in_any_case() -> None:
    tables = [ORDERS, TableId("sales", "orders"), TableId("public", "Lines"), TableId("public", "quiet")]
    assert read("select * from PUBLIC.Orders o join lines l using (id)", *tables).tables == [
        TableId("public", "orders"),
        TableId("public", "Lines"),
    ]
    assert read("with q as (select 1) select * from q", *tables).tables == []
    assert read("with orders as (select 1) select * from orders", *tables).tables == []


def test_a_short_name_of_several_tables_is_an_error_that_lists_them() -> None:
    tables = [TableId("sales", "orders"), TableId("archive", "Orders")]
    with pytest.raises(DefiniteError, match="several tables are called ORDERS") as caught:
        read("select * from ORDERS", *tables)
    assert str(caught.value.hint) == "write one of `archive`.`Orders`, `sales`.`orders`"
    with pytest.raises(DefiniteError, match="several tables are called ORDERS") as caught:
        read("from ORDERS", *tables, dialect=Dialect.DUCKDB)
    assert str(caught.value.hint) == 'write one of "archive"."Orders", "sales"."orders"'
    assert read("select * from sales.orders", *tables).tables == [tables[0]]


def test_a_table_whose_name_is_another_s_full_name_never_answers_for_it() -> None:
    odd = TableId("audit", "public.orders")
    assert read("select * from public.orders", odd, ORDERS).tables == [ORDERS]
    assert read("select * from `public.orders`", odd, ORDERS).tables == [ORDERS]
    assert read("select * from public.orders", odd).tables == []
    assert read("select * from `public.orders`", odd).tables == []
    found = read("select * from audit.`public.orders` where audit.`public.orders`.id = 1", odd, ORDERS)
    assert found.text == 'select * from `audit."public.orders"` as `public.orders` where `public.orders`.id = 1'
    assert found.tables == [odd]
    assert str(TableId("a.b", "c")) != str(TableId("a", "b.c"))


def test_of_full_names_that_differ_only_in_case_the_one_that_is_written_is_meant() -> None:
    upper = TableId("public", "Orders")
    assert read("select * from public.orders", ORDERS, upper).tables == [ORDERS]
    assert read("select * from public.`Orders`", ORDERS, upper).tables == [upper]
    with pytest.raises(DefiniteError, match=r"several tables are called PUBLIC\.ORDERS"):
        read("select * from `PUBLIC`.`ORDERS`", ORDERS, upper)


def test_quotes_and_backticks_in_names_stay_what_they_are() -> None:
    tick, quoted = TableId("public", "it`s"), TableId("public", 'say "x"')
    found = read('select * from public.`it``s` join public.`say "x"` using (id)', tick, quoted)
    assert found.tables == [tick, quoted]
    assert found.text == ('select * from `public.it``s` as `it``s` join `public."say ""x"""` as `say "x"` using (id)')
    found = read('select * from public."it`s" join public."say ""x""" using (id)', tick, quoted, dialect=Dialect.DUCKDB)
    assert found.tables == [tick, quoted]
    assert found.text == (
        'select * from "public.it`s" as "it`s" join "public.""say """"x""""""" as "say ""x""" using (id)'
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('public."Orders"', '"public.Orders.1" as "Orders"'),
        ("public.orders", '"public.orders.2" as "orders"'),
        ("PUBLIC.ORDERS", '"public.orders.2" as "ORDERS"'),
        ('"public.Orders"', '"public.Orders.1" as "public.Orders"'),
    ],
)
def test_tables_whose_names_differ_in_case_are_meant_as_in_the_source(written: str, meant: str) -> None:
    twins = [ORDERS, TableId("public", "Orders")]
    found = read(f"select * from {written}", *twins, dialect=Dialect.DUCKDB)
    assert found.text == f"select * from {meant}"
    assert len({view.lower() for table in twins for view in TableNames(twins, Dialect.DUCKDB).views(table)}) == 2
    with pytest.raises(DefiniteError, match="several tables are called orders"):
        read("select * from orders", *twins, dialect=Dialect.DUCKDB)
