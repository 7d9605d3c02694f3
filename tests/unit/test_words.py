"""What a particular database is called, and all that belongs to it, is said in its own folder alone.

Import contracts see imports. Knowledge also leaks as text: a property's name, an option, a clause of SQL.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tailrace"
ROOMS = ("configuration", "cli", "server/sql", "connector")
STATE = "postgresql://user@host/database"
"""Where a server may keep its own state: no source."""
WORDS = re.compile(
    r"postgres|psycopg|libpq|pgoutput|\b(?:slots?|publications?|wal|lsn)\b|io\.debezium\.connector\.", re.IGNORECASE
)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_no_word_of_a_particular_database(room: str) -> None:
    files = [path for path in sorted((PACKAGE / room).rglob("*")) if path.suffix in (".py", ".lark", ".sql")]
    assert files
    said = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORDS.search(line.replace(STATE, ""))
    ]
    assert said == []
