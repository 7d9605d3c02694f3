"""No secret of a statement is in what is said about it, however wrong the statement is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.server.sql.language.masking import masked
from tailrace.server.sql.language.parsing import keywords, parse
from tailrace.server.sql.language.problems import SqlError

PIECES = st.sampled_from([*sorted(keywords()), *"();,.=*'\"\\-/$ \n\t\0", "--", "/*", "*/", "E'", "''", "a", "1", "é"])


def error_of(text: str) -> SqlError | None:
    try:
        parse(text)
    except SqlError as error:
        return error
    return None


def told(error: SqlError | None) -> str:
    """All that is said about it."""
    return "" if error is None else f"{error!r} {error} {error.message} {error.hint} {error.excerpt} {error.expected}"


@pytest.mark.parametrize(
    "text",
    [
        "create sources from postgres password 'CANARY' oops",
        "create sources from postgres password\n-- it's secret\n/* ' */ 'CANARY' oops",
        "create sources from postgres password E'CANARY\\' oops",
        "create sources from postgres password secret 'CANARY'",
        "create sources from postgres host 'host=h password=CANARY dbname=d' oops",
        "create sources from postgres host 'host=h password=''CANARY x'' dbname=d' oops",
        "create sources from postgres host 'postgresql://ann:CANARY@h/d' oops",
        """create sources from postgres with ("database.password" = 'CANARY', database.password = 'CANARY2')""",
        "create sources from postgres with (database.password = 'CANARY', x = 'y' z)",
        "create sources from postgres password 'CANARY",
        "create sources from postgres oops 'CANARY://'",
        "create sources from postgres password CANARY nonsense",
        "create sources from postgres password nonsense CANARY",
        "create sources from postgres password 12CANARY",
        "create sources from postgres password p@CANARY, host db",
        "create sources from postgres password = CANARY",
        "create sources from postgres passwort CANARY",
        'create sources from postgres password "CANARY" oops',
        "create sources from postgres password 'it's CANARY' oops",
        "create sources from postgres user \"ann\npassword 'CANARY' oops",
        "create sources from postgres lake 'it's'\npassword 'CANARY' oops",
        "create sources from postgres host postgresql://ann:CANARY@db/shop",
        "create sources from postgres host db -- password CANARY\noops",
        "create sources from postgres host db oops /* password CANARY */",
        "create sources from postgres with (x.secret.key = 'CANARY', 5)",
        "create sources from postgres with (x.y = 'CANARY', 5)",
        "create sources from postgres with (x.y = CANARY oops)",
        "create sources from postgres with (x.password = CANARY oops)",
        "alter source s set (api.token CANARY)",
        "show sources 'CANARY'",
    ],
)
def test_an_error_never_shows_a_password(text: str) -> None:
    error = error_of(text)
    assert error is not None
    assert "CANARY" not in told(error)


AROUND = st.text(st.characters(exclude_characters="'\"\n", exclude_categories=("Cs",)), max_size=8)
WORDS = ["password", "PASSWORD =", "passwd:", "database.password =", "secret", '"api.key" =', "with (x.token ="]


@given(
    st.sampled_from(WORDS), AROUND, AROUND, st.sampled_from([" {} oops", " '{}' ~", " E'{}' ~", ' "{}" ~', "\n{}\n~"])
)
@example("password", ".", "", " {} oops")
@example("password", "://", "", " {} oops")
@example("secret", "a, b) ; ", "", " {} oops")
@example("password", "\\", "", " E'{}' ~")
def test_no_secret_is_shown_whatever_is_in_it_and_however_it_is_written(
    word: str, before: str, after: str, written: str
) -> None:
    secret = f"{before}CANARY{after}"
    said = told(error_of(f"create sources from postgres {word}{written.format(secret)}"))
    assert "canary" not in said.lower()


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_what_is_masked_keeps_its_lines_and_no_more_is_said_than_there_was(text: str) -> None:
    shown = masked(text)
    assert len(shown) == len(text)
    assert all(new in (old, "*") for old, new in zip(text, shown, strict=True))
    assert shown.count("\n") == text.count("\n")


def test_a_statement_never_shows_a_password_when_it_is_logged() -> None:
    text = "create sources from postgres password 'CANARY' with (database.password = 'CANARY')"
    assert "CANARY" not in repr(parse(text))
