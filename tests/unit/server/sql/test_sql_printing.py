"""Statements into text and back."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.server.sql.language.parsing import keywords, parse
from tailrace.server.sql.language.printing import printed
from tailrace.server.sql.language.statements import (
    AddTables,
    AlterSource,
    ClauseValue,
    CreateSources,
    DropSource,
    DropTables,
    Option,
    ResetOptions,
    Secret,
    SetOptions,
    ShowCreateSource,
    ShowSources,
    SourceName,
    Statement,
    TableName,
)
from tailrace.source.kinds import words_of

CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS)
NAMES = st.one_of(st.text(CHARACTERS, min_size=1), st.sampled_from(sorted(keywords())).map(str.lower))
REFERENCES = st.text(st.characters(exclude_characters="\0{}", exclude_categories=["Cs"]), min_size=1)
SECRETS = st.builds(lambda kind, path: Secret(f"${{{kind}:{path}}}"), st.sampled_from(["env", "file"]), REFERENCES)
VALUES = st.one_of(TEXTS, SECRETS)
TABLES = st.one_of(st.builds(TableName, st.none() | NAMES, NAMES), st.builds(TableName, NAMES, st.none()))
TABLE_LISTS = st.lists(TABLES, min_size=1, unique=True).map(tuple)
OPTIONS = st.lists(st.builds(Option, NAMES, VALUES), min_size=1, unique_by=lambda option: option.key).map(tuple)
IN_ORDER = [*words_of("postgres").clauses, "lake"]
CLAUSES = st.dictionaries(st.sampled_from(IN_ORDER), VALUES).map(
    lambda values: tuple(ClauseValue(clause, values[clause]) for clause in IN_ORDER if clause in values)
)
ALTERATIONS = st.one_of(
    st.builds(AddTables, TABLE_LISTS, st.booleans()),
    st.builds(DropTables, TABLE_LISTS, st.booleans()),
    st.builds(SetOptions, OPTIONS),
    st.builds(ResetOptions, st.lists(NAMES, min_size=1, unique=True).map(tuple)),
)
STATEMENTS = st.one_of(
    st.builds(
        CreateSources,
        st.none() | NAMES,
        st.just("postgres"),
        CLAUSES,
        st.none() | TEXTS,
        st.just(()) | TABLE_LISTS,
        st.just(()) | OPTIONS,
        st.booleans(),
    ),
    st.builds(AlterSource, NAMES, ALTERATIONS, st.booleans()),
    st.builds(
        DropSource,
        st.lists(st.builds(SourceName, NAMES), min_size=1, unique=True).map(tuple),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(ShowSources, st.none() | TEXTS),
    st.builds(ShowCreateSource, NAMES),
)


def printed_all(statements: Iterable[Statement]) -> str:
    return "".join(f"{printed(statement)};\n" for statement in statements)


@given(st.lists(STATEMENTS, max_size=3))
def test_what_is_printed_means_the_same_when_it_is_read(statements: list[Statement]) -> None:
    text = printed_all(statements)
    assert parse(text) == statements
    assert printed_all(parse(text)) == text


def test_the_canonical_form_is_one_clause_a_line() -> None:
    (statement,) = parse(
        """create source If_new from postgresql tables (Orders, "Odd", shop.*) namespace shop port 5433
           password secret '${env:PW}' host db user 'O''Hara' with (snapshot.mode = never, "A.b" = 1)"""
    )
    assert printed(statement) == (
        "CREATE SOURCES if_new FROM POSTGRES\n"
        "  HOST 'db'\n"
        "  PORT '5433'\n"
        "  USER 'O''Hara'\n"
        "  PASSWORD SECRET '${env:PW}'\n"
        "  NAMESPACE 'shop'\n"
        """  TABLES (orders, "Odd", shop.*)\n"""
        """  WITH (snapshot.mode = 'never', "A.b" = '1')"""
    )


@pytest.mark.parametrize("word", sorted(keywords()))
def test_a_name_that_is_a_keyword_stays_a_name(word: str) -> None:
    name = word.lower()
    table = TableName(name, name)
    statements: list[Statement] = [
        CreateSources(name, "postgres", tables=(table,)),
        AlterSource(name, AddTables((TableName(None, name), table))),
        AlterSource(name, DropTables((table,))),
        DropSource((SourceName(name),)),
        ShowCreateSource(name),
    ]
    assert parse(printed_all(statements)) == statements
