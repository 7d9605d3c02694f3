"""Any text becomes an order or a reason that names the field and the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connector.signals.orders import (
    ALL,
    TYPES,
    ChosenTable,
    ExecuteSnapshot,
    Log,
    Order,
    PauseSnapshot,
    Rejection,
    ResumeSnapshot,
    StopSnapshot,
    arrival_of,
    choose,
    judged,
    match,
    order_of,
    pattern_of,
)
from tailrace.model.signal import DATA_CHARACTERS_MAX, ID_CHARACTERS_MAX, Arrival, Signal
from tailrace.model.table import TableId

KEYS = ["data-collections", "type", "additional-conditions", "additional-condition", "surrogate-key", "message"]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["a.b", "BLOCKING", "("])
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, "data-collection", "filter"]) | st.text(), inner, max_size=4)
    ),
)


def execute(**data: Any) -> Order | Rejection:
    return order_of(Signal("1", "execute-snapshot", json.dumps({k.replace("_", "-"): v for k, v in data.items()})))


def test_an_order_has_all_that_debezium_can_say() -> None:
    order = execute(
        data_collections=["shop.orders", r"shop\.item.*"],
        type="Blocking",
        additional_conditions=[{"data-collection": "shop.orders", "filter": "total > 10"}],
        surrogate_key="number",
    )
    tables = ("shop.orders", r"shop\.item.*")
    assert order == ExecuteSnapshot(tables, "blocking", {"shop.orders": "total > 10"}, {ALL: "number"})
    older = execute(data_collections=["a.b"], additional_condition="x = 1", surrogate_key={"a.b": "n"})
    assert older == ExecuteSnapshot(("a.b",), "incremental", {ALL: "x = 1"}, {"a.b": "n"})


@pytest.mark.parametrize(
    ("type_", "order"),
    [("pause-snapshot", PauseSnapshot), ("resume-snapshot", ResumeSnapshot), ("stop-snapshot", StopSnapshot)],
)
def test_what_concerns_running_copies_is_for_all_unless_tables_are_named(type_: str, order: Any) -> None:
    for nothing in ("", "{}", ' {"type": "INCREMENTAL"} '):
        assert order_of(Signal("1", type_, nothing)) == order((), "incremental")
    assert order_of(Signal("1", type_, '{"data-collections": ["a.b"], "type": "blocking"}')) == order(
        ("a.b",), "blocking"
    )


def test_a_log_order_has_a_message() -> None:
    assert order_of(Signal("1", "log", '{"message": "hello {}"}')) == Log("hello {}")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("{", "data: invalid JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "data: input should be an object"),
        ("{}", "data-collections is required"),
        ('{"data-collections": []}', "data-collections: must not be empty"),
        ('{"data-collections": null}', "data-collections: input should be a valid array"),
        ('{"data-collections": "a.b"}', "data-collections: input should be a valid array"),
        ('{"data-collections": ["a.b", 7]}', "data-collections[1]: input should be a valid string"),
        ('{"data-collections": [" "]}', "data-collections[0]: must not be blank"),
        (
            '{"data-collections": ["*.orders"]}',
            "data-collections[0]: is neither a name nor a regular expression: nothing to repeat at position 0",
        ),
        ('{"data-collections": ["a.b"], "type": "fast"}', "type: input should be 'incremental' or 'blocking'"),
        ('{"data-collections": ["a.b"], "tpye": "blocking"}', "tpye: unknown key"),
        (
            '{"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b"}]}',
            "additional-conditions[0].filter is required",
        ),
        (
            '{"data-collections": ["a.b"], "additional-condition": "x", '
            '"additional-conditions": [{"data-collection": "a.b", "filter": "x"}]}',
            "additional-condition: is the older form of additional-conditions; give one of them",
        ),
        (
            '{"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b", "filter": "x"}, '
            '{"data-collection": "a.b", "filter": "y"}]}',
            "additional-conditions: a data-collection is named twice",
        ),
        ('{"data-collections": ["a.b"], "surrogate-key": 7}', "surrogate-key: input should be an object"),
        ("[" * 1000, "data: invalid JSON: recursion limit exceeded at line 1 column 202"),
        ("x" * (DATA_CHARACTERS_MAX + 1), "data: must have at most 65,536 characters"),
    ],
)
def test_what_makes_no_sense_is_rejected_with_its_field_and_the_rule(data: str, reason: str) -> None:
    assert order_of(Signal("1", "execute-snapshot", data)) == Rejection(reason)


@pytest.mark.parametrize("id_", ["", "x" * (ID_CHARACTERS_MAX + 1), "a\nb", " a", "\x1b[31m"])
def test_an_id_that_cannot_be_kept_or_shown_is_rejected_and_replaced(id_: str) -> None:
    assert str(order_of(Signal(id_, "log", '{"message": "m"}'))).startswith("Rejection(reason='id: must ")
    kept = judged(Arrival(Signal(id_, "log", '{"message": "m"}'), "table"))
    assert kept.signal.id != id_
    assert kept.signal.id.isalnum()
    assert kept.reason is not None


def test_an_unknown_type_is_rejected_with_those_that_are_known() -> None:
    found = order_of(Signal("1", "delete-everything"))
    assert found == Rejection(f"type: unknown 'delete-everything'; known are {', '.join(TYPES)}")


@given(
    type_=st.sampled_from(TYPES),
    data=JSON.map(json.dumps) | st.text() | st.dictionaries(st.sampled_from(KEYS), JSON).map(json.dumps),
)
def test_any_text_gives_an_order_or_a_reason_and_never_an_exception(type_: str, data: str) -> None:
    found = order_of(Signal("1", type_, data))
    assert isinstance(found, Order) or (found.reason and found.reason.isprintable())
    if isinstance(found, ExecuteSnapshot):
        choose(found, [TableId("a", "b"), TableId("c", "d.e")])


@given(
    line=JSON.map(json.dumps)
    | st.text()
    | st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"id": JSON, "data": JSON}).map(json.dumps)
)
def test_any_line_is_a_signal_or_is_rejected_with_a_part_of_its_text(line: str) -> None:
    found = judged(arrival_of(line, "file"))
    assert found.signal.id
    if found.reason is None:
        assert isinstance(order_of(found.signal), Order)
    else:
        assert len(found.signal.data) <= 201


def test_a_line_needs_no_id_and_its_data_may_be_json_in_a_string() -> None:
    plain = arrival_of('{"id": "7", "type": "log", "data": {"message": "m"}}', "file")
    assert plain == Arrival(Signal("7", "log", '{"message": "m"}'), "file")
    assert arrival_of(r'{"id": "7", "type": "log", "data": "{\"message\": \"m\"}"}', "file") == plain
    first, second = (arrival_of('{"type": "pause-snapshot"}', "file").signal for _ in range(2))
    assert first.data == ""
    assert first.id != second.id


def test_a_name_means_its_table_alone_and_anything_else_is_an_expression_for_whole_names() -> None:
    names = ("orders", "orders2", "items", "a.b", "a-b")
    tables = [*(TableId("shop", name) for name in names), TableId("shop_orders", "x")]
    for pattern, meant in {
        "shop.orders": ["orders"],
        "shop.orders.?": ["orders", "orders2"],
        r"shop\.(items|orders)": ["items", "orders"],
        "shop.a.b": ["a.b"],
        'shop."a.b"': ["a.b"],
    }.items():
        assert match([pattern], tables) == ([TableId("shop", name) for name in meant], []), pattern
    assert match(["orders", "shop.order", "Shop.Orders", "shop.items"], tables) == (
        [TableId("shop", "items")],
        ["orders", "shop.order", "Shop.Orders"],
    )


def test_each_table_has_the_condition_of_its_name_before_one_of_an_expression_before_the_one_for_all() -> None:
    a, b, c = (TableId("s", name) for name in "abc")
    conditions = {"s.[ab]": "either", "s.a": "a", "s.x": "none", ALL: "all", "s.[abc]": "later"}
    order = ExecuteSnapshot((r"s\..", "s.y"), "incremental", conditions, {"s.b": "n"})
    found = choose(order, [c, a, b])
    assert found.tables == (ChosenTable(a, "a"), ChosenTable(b, "either", "n"), ChosenTable(c, "later"))
    assert found.unmatched == ("s.y", "s.x")


@pytest.mark.parametrize("name", ["orders", "a.b", "a(b", "a[b", "x*", "back\\slash", 'quo"te', "order.*"])
def test_a_table_of_any_name_can_be_named_in_an_order_that_means_it_alone(name: str) -> None:
    table, others = TableId("public", name), [TableId("public", each) for each in ("orders_2", "ab", "aab", "order_x")]
    order = order_of(Signal("1", "execute-snapshot", json.dumps({"data-collections": [pattern_of(table)]})))
    assert isinstance(order, ExecuteSnapshot)
    choice = choose(order, [table, *others])
    assert [each.table for each in choice.tables] == [table]
    assert choice.unmatched == ()


def test_an_expression_that_could_take_minutes_to_match_is_refused() -> None:
    for slow in ("(.*.*)*!", "(a+)+b", "(a|a)*b"):
        found = order_of(Signal("1", "execute-snapshot", json.dumps({"data-collections": [slow]})))
        assert isinstance(found, Rejection), slow
        assert "does not take" in found.reason
