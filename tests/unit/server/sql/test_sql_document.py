"""docs/sql.md: every clause is there, every refusal is one, the error is real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace.server.sql.language.parsing import keywords, parse
from tailrace.server.sql.language.problems import SqlError

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_every_word_of_the_language_is_on_the_page() -> None:
    missing = [word for word in keywords() if not re.search(rf"\b{word}\b", PAGE)]
    assert sorted(missing) == ["POSTGRESQL", "RESTRICT", "SUBSOURCE"]


def test_the_error_that_the_page_shows_is_real() -> None:
    shown = re.search(r"^error: (.*)\n(.*\n.*\^)$", PAGE, re.MULTILINE)
    assert shown is not None
    with pytest.raises(SqlError) as caught:
        parse("CREATE SOURCES shop\n  FROM postgrs HOST 'db.example.com'")
    assert (caught.value.message, caught.value.excerpt) == shown.groups()


@pytest.mark.parametrize(
    "written",
    [
        "CREATE SOURCES FROM POSTGRES TABLES (orders AS o)",
        "CREATE SOURCES FROM POSTGRES TABLES (orders (id int))",
        *(f"CREATE {words} SOURCES s FROM POSTGRES" for words in ("UNMATERIALIZED", "TEMPORARY", "OR REPLACE")),
        *(
            f"CREATE SOURCES s FROM POSTGRES {words} x"
            for words in ("FORMAT", "ENVELOPE", "INCLUDE", "TEXT COLUMNS", "EXCLUDE COLUMNS", "EXPOSE PROGRESS")
        ),
        "CREATE SOURCES s FROM POSTGRES CONNECTION name",
        "CREATE CONNECTION",
        "CREATE SECRET",
        "CREATE VIEW",
        "CREATE SOURCES s IN CLUSTER c FROM POSTGRES",
        "CREATE SOURCES s FROM KAFKA",
        "CREATE SOURCES s FROM MYSQL",
        "ALTER SOURCE s RENAME TO t",
        "ALTER SOURCE s OWNER TO t",
        "SHOW SOURCES WHERE x",
        "SELECT 1",
        "BEGIN",
    ],
)
def test_what_the_page_says_is_refused_is_refused_with_a_reason(written: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(written)
    assert caught.value.hint is not None
    assert not caught.value.expected
