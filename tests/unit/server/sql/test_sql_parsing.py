"""Text into statements: every clause, every refusal with its place, and any text at all."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.server.sql.language.parsing import TEXT_CHARACTERS_MAX, is_unfinished, keywords, parse
from tailrace.server.sql.language.problems import SqlError
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
    TextPlace,
)


def only(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


def created(text: str) -> CreateSources:
    statement = only(text)
    assert isinstance(statement, CreateSources)
    return statement


def refused(text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        parse(text)
    return caught.value


def at_caret(error: SqlError) -> str:
    """What stands above the caret, up to the end of its line."""
    line, caret = error.excerpt.split("\n")
    return line[len(caret) - 1 :]


def test_the_statement_of_the_paper_is_understood_with_all_its_clauses() -> None:
    text = """
        CREATE MATERIALIZED SOURCES FROM POSTGRES
          HOST 'host=kanto user=ash dbname=pokemon'
          PUBLICATION 'red'
          NAMESPACE 'generation1'
          TABLES ('random.psychic' AS psychic, 'another_table' AS "another_table")
    """
    assert only(text) == CreateSources(
        name=None,
        kind="postgres",
        clauses=(
            ClauseValue("host", "host=kanto user=ash dbname=pokemon"),
            ClauseValue("publication", "red"),
        ),
        namespace="generation1",
        tables=(TableName("random", "psychic"), TableName(None, "another_table")),
    )


def test_one_table_and_a_name_make_a_source_of_one_table() -> None:
    text = "create source if not exists s from postgresql host 'h' publication p namespace n table 't'"
    assert only(text) == CreateSources(
        name="s",
        kind="postgres",
        clauses=(ClauseValue("host", "h"), ClauseValue("publication", "p")),
        namespace="n",
        tables=(TableName(None, "t"),),
        if_not_exists=True,
    )


def test_clauses_may_stand_in_any_order_and_mean_the_same() -> None:
    one = """create sources s from postgres host db port 5433 database shop user ann password secret '${env:PW}'
             ssl mode 'verify-full' publication p slot x lake '/lakes/s' tables (a.b) with (snapshot.mode = never)"""
    two = """create sources s from postgres with (snapshot.mode = 'never') tables (a.b) lake '/lakes/s' slot x
             publication p ssl mode "verify-full" password secret '${env:PW}' user ann database shop port '5433'
             host db"""
    assert only(one) == only(two)
    values = {each.clause: each.value for each in created(one).clauses}
    assert values["password"] == Secret("${env:PW}")
    assert values["port"] == "5433"
    assert created("create sources from postgres").clauses == ()


@pytest.mark.parametrize(
    ("clause", "tables"),
    [
        ("", ()),
        ("for all tables", ()),
        ("table a", (TableName(None, "a"),)),
        ("tables (a, b.c)", (TableName(None, "a"), TableName("b", "c"))),
        ("for tables (b.c)", (TableName("b", "c"),)),
        ("tables (b.*, c)", (TableName("b", None), TableName(None, "c"))),
        ("for schemas (b, 'C')", (TableName("b", None), TableName("C", None))),
        ("""tables ("A.b".c, 'x."Y.z"')""", (TableName("A.b", "c"), TableName("x", "Y.z"))),
        ("tables (a.b as b, c as c, d.e as d.e materialized)", tuple(TableName(*p) for p in ("ab", (None, "c"), "de"))),
    ],
)
def test_tables_can_be_named_in_many_ways(clause: str, tables: tuple[TableName, ...]) -> None:
    assert created(f"create sources s from postgres {clause}").tables == tables


def test_every_other_statement_is_understood() -> None:
    text = """
        show sources; SHOW SOURCES LIKE 'shop%';; show create source "Shop";
        drop source a; drop sources if exists a, b cascade; drop source a restrict;
        alter source s add table a, b.c; alter source if exists s add tables if not exists (a);
        alter source s add subsource a; alter source s drop table if exists a.*, b;
        alter source s set (a.b = 1, "C" = true, d = 'x', e = secret '${file:f:k}'); alter source s reset (a.b, c);
    """
    a, b, b_c = TableName(None, "a"), TableName(None, "b"), TableName("b", "c")
    options = Option("a.b", "1"), Option("C", "true"), Option("d", "x"), Option("e", Secret("${file:f:k}"))
    assert parse(text) == [
        ShowSources(),
        ShowSources("shop%"),
        ShowCreateSource("Shop"),
        DropSource((SourceName("a"),)),
        DropSource((SourceName("a"), SourceName("b")), if_exists=True, cascade=True),
        DropSource((SourceName("a"),)),
        AlterSource("s", AddTables((a, b_c))),
        AlterSource("s", AddTables((a,), if_not_exists=True), if_exists=True),
        AlterSource("s", AddTables((a,))),
        AlterSource("s", DropTables((TableName("a", None), b), if_exists=True)),
        AlterSource("s", SetOptions(options)),
        AlterSource("s", ResetOptions(("a.b", "c"))),
    ]


@pytest.mark.parametrize("text", ["", "  \n", ";;", "-- nothing", "/* no; thing * */;", "-- show sources\n"])
def test_a_text_may_hold_no_statement(text: str) -> None:
    assert parse(text) == []


def test_comments_and_separators_in_quotes_are_text() -> None:
    assert parse("drop source /* ' */ \"a;--\" -- it's\n; show sources like '/*;--'") == [
        DropSource((SourceName("a;--"),)),
        ShowSources("/*;--"),
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'it''s'", "it's"),
        (r"'a\n'", r"a\n"),
        (r"E'a\n\tb\\ \' '' \q'", "a\n\tb\\ ' ' q"),
        (r"e'\x41\101\u00e9\U0001F600\uD83D\uDE00\xc3\xa9'", "AAé😀😀é"),
        ("'first\nsecond'", "first\nsecond"),
    ],
)
def test_texts_are_written_as_in_postgres(written: str, meant: str) -> None:
    assert only(f"show sources like {written}") == ShowSources(meant)


@pytest.mark.parametrize(("written", "meant"), [("Shop", "shop"), ('"Sh""op"', 'Sh"op'), ("ÄB", "Äb"), ("a$1", "a$1")])
def test_names_are_folded_as_in_postgres(written: str, meant: str) -> None:
    assert only(f"show create source {written}") == ShowCreateSource(meant)


def test_a_keyword_is_a_name_where_only_a_name_can_stand() -> None:
    assert only("drop source source") == DropSource((SourceName("source"),))
    for word in keywords() - {"IF"}:
        assert only(f"show create source {word}") == ShowCreateSource(word.lower())
    assert created("create sources s from postgres tables (tables.table)").tables == (TableName("tables", "table"),)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("create source s frm postgres", (1, 17), ("FROM",)),
        ("create\n\tsource s\n  from postgrs", (3, 8), ("POSTGRES",)),
        ("create", (1, 7), ("SOURCE", "SOURCES")),
        ("show sources; drop  \n", (1, 19), ("SOURCE", "SOURCES")),
        ("alter source s add table a,,", (1, 28), ("a name", "a text in quotes")),
        ("alter source s set (a 1)", (1, 23), (".", "=")),
        ("drop source a.b", (1, 14), ("CASCADE", "RESTRICT", ",", ";", "the end")),
        ("show sources like like", (1, 19), ("a text in quotes",)),
    ],
)
def test_an_error_says_where_and_what_was_expected(
    text: str, place: tuple[int, int], expected: tuple[str, ...]
) -> None:
    error = refused(text)
    assert (error.place, error.expected) == (TextPlace(*place), expected)
    assert error.message.startswith(f"line {place[0]}, column {place[1]}: expected {expected[0]}")


@pytest.mark.parametrize(
    ("text", "caret", "problem"),
    [
        ("create sources from postgres tables (a AS b)", "AS b)", "AS: a table has the same name"),
        ("alter source s add table x.a as y.a", "as y.a", "AS: a table has the same name"),
        (
            "create sources from postgres tables (a (id int not null))",
            "(id int not null))",
            "columns cannot be declared",
        ),
        ("create source s from postgres table a (id numeric(1,2))", "(id numeric(1,2))", "columns cannot be declared"),
        ("create source s from postgres tables (a as a (id int))", "(id int))", "columns cannot be declared"),
        ("create sources from postgres tables (d.n.t)", "d.n.t)", "a table has a namespace and a name"),
        ("create sources from postgres tables ('d.n.t')", "'*****')", "this text names no table"),
        ("create sources from postgres tables ('')", "'')", "this text names no table"),
        (
            "create unmaterialized sources from postgres",
            "unmaterialized sources from postgres",
            "UNMATERIALIZED: every",
        ),
        ("create sources from postgres tables (a unmaterialized)", "unmaterialized)", "UNMATERIALIZED: every table"),
        ("create sources from kafka broker 'x'", "kafka broker '*'", "KAFKA: only Postgres can be read"),
        ("create source s in cluster c from postgres", "in cluster c from postgres", "IN: there are no clusters"),
        ("create source s from postgres connection pg (publication 'p')", "pg (publication '*')", "an address is"),
        ("create source s from postgres host h format avro", "format avro", "FORMAT: rows come from the source"),
        ("create source s from postgres host h envelope none", "envelope none", "ENVELOPE: rows come from the source"),
        (
            "create source s from postgres host h text columns (a)",
            "text columns (a)",
            "TEXT: a table is copied with all",
        ),
        (
            "create source s from postgres host h expose progress as p",
            "expose progress as p",
            "EXPOSE: how far a source",
        ),
        ("create temporary source s from postgres", "temporary source s from postgres", "TEMPORARY: a source lasts"),
        ("create or replace source s", "or replace source s", "OR: a source is never replaced"),
        ("create secret s as 'x'", "secret * ** '*'", "SECRET: secrets are not stored"),
        ("create connection c to postgres (host 'x')", "connection c to postgres (host '*')", "CONNECTION: an address"),
        ("create views from source s", "views from source s", "VIEWS: only sources"),
        ("drop table t", "table t", "TABLE: only sources"),
        ("select 1", "select 1", "SELECT: only sources"),
        ("begin; show sources", "begin; show sources", "BEGIN: every statement stands alone"),
        ("alter source s rename to t", "rename to t", "RENAME: a source keeps its name"),
        ("alter source s owner to t", "owner to t", "OWNER: sources have no owners"),
        ("show sources where x", "where x", "WHERE: SHOW SOURCES can be narrowed by name only"),
        ("create sources from postgres host a connection 'b'", "connection '*'", "HOST is given twice"),
        ("create sources from postgres tables (a) for all tables", "for all tables", "TABLES is given twice"),
        ("create sources from postgres tables (a, b, a)", "a)", "this table is named twice"),
        ("alter source s set (a = 1, b = 2, a = 3)", "a = *)", "a is given twice"),
        ("create sources from postgres user ann host secret 'x'", "'*'", "a secret is not written down"),
        (r"show sources like E'\ud800'", "E'******'", "U+D800 is not a character"),
        (r"show sources like E'\xff'", "E'****'", "the bytes of this text are not UTF-8"),
        (r"show sources like E'\000'", "E'****'", "a text cannot have the character 0"),
        ("show sources like 'x", "'*", "this text is not closed"),
        (r"show sources like e'x\'", "e'**'", "this text is not closed"),
        ('drop source "x', '"*', "this name is not closed"),
        ('drop source ""', '""', "a name cannot be empty"),
        ("show sources /* x", "/***", "this comment is not closed"),
        ("show sources ~", "~", "~ has no meaning here"),
        ("show\N{NO-BREAK SPACE}sources", "\N{REPLACEMENT CHARACTER}sources", "U+00A0 has no meaning here"),
        ("show sources \0", "\N{REPLACEMENT CHARACTER}", "U+0000 cannot be in a statement"),
        ("show sources like '\ud800'", "*'", "U+D800 cannot be in a statement"),
    ],
)
def test_what_is_refused_is_named_with_its_place_and_the_reason(text: str, caret: str, problem: str) -> None:
    error = refused(text)
    assert error.problem.startswith(problem)
    assert at_caret(error) == caret


def test_a_refusal_says_what_to_do_instead() -> None:
    assert refused("create secret s as 'x'").hint == "PASSWORD SECRET '${env:NAME}' or '${file:PATH}'"
    assert refused("create sources from postgres tables (a as b)").hint == "leave out AS …"


def test_the_caret_is_below_its_word_in_a_line_of_any_length() -> None:
    text = "create sources s from postgres tables (" + ", ".join(f"table_{i}" for i in range(1000)) + ", %) user ann"
    error = refused(text)
    assert at_caret(error) == "%) user ann"
    assert max(map(len, error.excerpt.split("\n"))) <= 100
    assert error.place == TextPlace(1, text.index("%") + 1)


PIECES = st.sampled_from(
    [*sorted(keywords()), *"();,.=*'\"\\-/$ \n\t\0", "--", "/*", "*/", "E'", "''", "a", "1", "é", "${env:A}"]
)


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join)))
@example("e'")
@example("create sources from postgres with (")
def test_any_text_is_statements_or_an_error_with_a_place(text: str) -> None:
    is_unfinished(text)
    error = _error_of(text)
    if error is not None:
        lines = text.split("\n")
        assert 1 <= error.place.line <= len(lines)
        assert 1 <= error.place.column <= len(lines[error.place.line - 1]) + 1
        assert len(error.excerpt.split("\n")) == 2
        assert "\n" not in error.message
        f"{error.message}{error.excerpt}".encode()


def _error_of(text: str) -> SqlError | None:
    try:
        parse(text)
    except SqlError as error:
        return error
    return None


HOSTILE = {
    "tables": ("alter source s add table a", ", a{}", ""),
    "names in a name": ("drop source a", ".a", ""),
    "parentheses": ("create sources from postgres tables ", "(", ""),
    "open quotes": ("'", "''", ""),
    "open comments": ("/* ", "/*", ""),
    "stars in a comment": ("/*", "* ", ""),
    "separators": ("", ";", ""),
    "passwords": ("x ", "password ", "'"),
    "addresses": ("x '", "://a:", ""),
    "lines": ("", "\n", "x"),
    "escapes": ("show sources like e'", "\\", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_length_of_a_text_and_no_faster(name: str) -> None:
    def seconds(count: int) -> float:
        start, part, end = HOSTILE[name]
        text = start + "".join(part.format(i) for i in range(count)) + end
        began = process_time()
        _error_of(text)
        return process_time() - began

    seconds(10)
    # Eight times as much in less than forty times the time: a square would be sixty-four.
    assert seconds(8000) < 40 * max(seconds(1000), 0.002)


def test_a_text_that_is_too_long_is_not_read() -> None:
    assert parse(" " * TEXT_CHARACTERS_MAX) == []
    assert "characters at most" in refused(" " * (TEXT_CHARACTERS_MAX + 1)).message


@pytest.mark.parametrize(
    "text", ["show", "show sources", "show sources like 'a;", 'drop source "a;', "show /* ;", "show -- ;"]
)
def test_a_prompt_waits_for_the_rest_of_a_statement(text: str) -> None:
    assert is_unfinished(text)


@pytest.mark.parametrize("text", ["", "\n", "show sources;", "show sources; -- done", "show nothing;", "shw", "drop ~"])
def test_a_prompt_does_not_wait_for_what_cannot_come(text: str) -> None:
    assert not is_unfinished(text)
