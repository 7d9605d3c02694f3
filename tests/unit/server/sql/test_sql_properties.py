"""Statements and properties say the same; lists of tables after any edits are what a set would be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.sql.memory_sources import MemorySources

from tailrace.model.table import TableId
from tailrace.model.table_pattern import split_list
from tailrace.server.sql import tables as table_lists
from tailrace.server.sql.execution import execute
from tailrace.server.sql.language.parsing import parse
from tailrace.server.sql.language.printing import printed
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import CreateSources, TableName
from tailrace.server.sql.properties import new_source, statement_of
from tailrace.source.kinds import words_of

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text != "********"
)
LISTS = st.sampled_from(["", r"public\.orders", "public.orders", r"public\.(a|b)", r"a\.b,c\..*", r"a\.b\,c"])
KEYS = [
    "database.port",
    "database.dbname",
    "database.user",
    "database.password",
    "slot.name",
    "snapshot.mode",
    "Odd.key",
]
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(KEYS, TEXTS),
        "database.hostname": TEXTS | st.sampled_from(["db", "::1", "a:5432", "a,b", "x=y"]),
        "database.password": TEXTS | st.just("${env:PW}"),
        "table.include.list": LISTS.filter(bool),
        "table.exclude.list": LISTS,
    },
)


@given(PROPERTIES)
def test_the_statement_that_is_shown_makes_the_same_source(properties: dict[str, str]) -> None:
    (statement,) = parse(printed(statement_of("s", properties)))
    assert isinstance(statement, CreateSources)
    made = new_source(statement).properties
    given = {"name": "s", "connector.class": "tailrace.postgresql", **properties}
    if given.get("table.include.list") == "public.orders":
        given["table.include.list"] = r"public\.orders"
    assert made == given


def part(text: str) -> dict[str, str]:
    return {key.removeprefix("database."): value for key, value in words_of("postgres").address(text).items()}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("db.example.com", {"hostname": "db.example.com"}),
        ("db:5433", {"hostname": "db", "port": "5433"}),
        ("::1", {"hostname": "::1"}),
        ("[::1]:5433", {"hostname": "::1", "port": "5433"}),
        ("/run/postgresql", {"hostname": "/run/postgresql"}),
        (
            "host=kanto user=ash password=teamrocket dbname=pokemon",
            {"hostname": "kanto", "user": "ash", "password": "teamrocket", "dbname": "pokemon"},
        ),
        (r"user = 'a b' password='it\'s \\ ' dbname=x\ y", {"user": "a b", "password": r"it's \ ", "dbname": "x y"}),
        ("host=a sslmode=require port=1", {"hostname": "a", "sslmode": "require", "port": "1"}),
        (
            "postgresql://ann:p%40s:s@db:5433/shop?sslmode=require",
            {
                "user": "ann",
                "password": "p@s:s",
                "hostname": "db",
                "port": "5433",
                "dbname": "shop",
                "sslmode": "require",
            },
        ),
        ("postgresql:///d?host=/run", {"hostname": "/run", "dbname": "d"}),
        ("host=a host=b", {"hostname": "b"}),
        ("postgres://[::1]/shop", {"hostname": "::1", "dbname": "shop"}),
        (
            "postgresql://ann:${env:PW}@db/shop",
            {"user": "ann", "password": "${env:PW}", "hostname": "db", "dbname": "shop"},
        ),
    ],
)
def test_an_address_is_taken_apart(text: str, parts: dict[str, str]) -> None:
    assert part(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "host=a connect_timeout=3",
        "host=a 'b'",
        "host='a",
        "service=x",
        "postgresql://a,b/d",
        "postgresql://a/d?target_session_attrs=any",
        "mysql://a/d",
        "a,b",
    ],
)
def test_an_address_that_says_more_is_kept_whole(text: str) -> None:
    assert words_of("postgres").address(text) == {"database.dsn": text}


NAMES = st.text(st.characters(exclude_characters='\0"', exclude_categories=["Cs"]), min_size=1)


@given(NAMES.filter(lambda name: "." not in name), NAMES)
def test_a_name_and_its_expression_are_one(namespace: str, name: str) -> None:
    table = TableName(namespace, name)
    item = table_lists.expression(table)
    assert table_lists.table_of(item) == table
    assert table_lists.table_of(table_lists.expression(TableName(namespace, None))) == TableName(namespace, None)
    if item == item.strip():
        assert split_list(f"{item},x") == [item, "x"]
        assert table_lists.matches(item, table)


@pytest.mark.parametrize(
    "item", ["", "orders", ".*", "a.b.c", r"a\..b", r"a\.(b|c)", r"a\.b.*", r".*\.b", r"\.b", r"a\.", "a[b]"]
)
def test_an_expression_that_says_more_than_a_name_is_none(item: str) -> None:
    assert table_lists.table_of(item) is None


DATABASE = [TableId(namespace, name) for namespace in ("public", "sales") for name in ("a", "b", "c")]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["add", "drop"]),
        st.sampled_from([*map(str, DATABASE), "public.*", "sales.*"]),
    ),
    max_size=8,
)
FIRST = st.one_of(st.just([]), st.lists(st.sampled_from([*map(str, DATABASE), "public.*"]), unique=True))


def meant(name: str) -> set[TableId]:
    namespace, _, table = name.partition(".")
    return {each for each in DATABASE if each.namespace == namespace and table in ("*", each.name)}


@given(FIRST, EDITS)
def test_after_any_edits_a_source_follows_what_a_set_would_hold(first: list[str], edits: list[tuple[str, str]]) -> None:
    sources = MemorySources(DATABASE)
    tables = f"tables ({', '.join(first)})" if first else ""
    list(execute(f"create source s from postgres host h database d user u {tables}", sources))
    expected = set().union(*map(meant, first)) if first else set(DATABASE)
    for verb, name in edits:
        problem = _problem(sources, f"alter source s {verb} table {name}")
        changed = expected | meant(name) if verb == "add" else expected - meant(name)
        if problem is None:
            expected = changed
        else:
            is_vain = not (meant(name) - expected) if verb == "add" else not (meant(name) & expected)
            # All tables but those of a namespace, and but for one: no two lists can say that.
            assert is_vain or not changed or problem.endswith(", and more"), problem
        assert set(sources.followed("s")) == expected


def _problem(sources: MemorySources, text: str) -> str | None:
    try:
        list(execute(text, sources))
    except SqlError as error:
        return error.problem
    return None
