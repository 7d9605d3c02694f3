"""Words that other systems know in such statements and that mean nothing here, each with the reason.

They are no part of the grammar: whatever follows such a word, the word itself is what a person should hear about.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lark import Token

_ONLY_POSTGRES = "only Postgres can be read", "CREATE SOURCES name FROM POSTGRES …"
_ONLY_SOURCES = "only sources can be made, altered, dropped and shown", "rows are asked for with tailrace query"


@dataclass(frozen=True)
class _Refusal:
    """One word, where a certain other word could stand."""

    words: tuple[str, ...]
    where: str
    """A terminal that the grammar accepts there."""
    reason: str
    hint: str


_REFUSALS = (
    _Refusal(
        ("UNMATERIALIZED",),
        "SOURCES",
        "every table of a source is copied into the lake",
        "to leave a table out, do not name it in TABLES (…)",
    ),
    _Refusal(
        ("UNMATERIALIZED",),
        "COMMA",
        "every table of a source is copied into the lake",
        "to leave a table out, do not name it in TABLES (…)",
    ),
    _Refusal(("TEMPORARY", "TEMP"), "SOURCES", "a source lasts until it is dropped", "CREATE SOURCES …"),
    _Refusal(("OR",), "SOURCES", "a source is never replaced", "ALTER SOURCE changes one, DROP SOURCE ends it"),
    _Refusal(
        ("FORMAT", "ENVELOPE", "INCLUDE", "KEY", "VALUE"),
        "PUBLICATION",
        "rows come from Postgres with their types and keys, there is nothing to declare",
        "leave it out",
    ),
    _Refusal(
        ("TEXT", "EXCLUDE", "COLUMNS"),
        "PUBLICATION",
        "a table is copied with all its columns, each with its own type",
        "leave it out",
    ),
    _Refusal(
        ("DETAILS", "TIMELINE", "TIMESTAMP"),
        "PUBLICATION",
        "positions and times are the source's own, they are not declared",
        "leave it out",
    ),
    _Refusal(
        ("EXPOSE", "PROGRESS"),
        "PUBLICATION",
        "how far a source is, is not a table",
        "SHOW SOURCES, or GET /connectors/NAME/status",
    ),
    _Refusal(("IN",), "FROM", "there are no clusters to choose from", "leave out IN CLUSTER …"),
    _Refusal(
        ("RENAME",),
        "ADD",
        "a source keeps its name: its lake and its slot are found by it",
        "drop it and create one with another name",
    ),
    _Refusal(("OWNER",), "ADD", "sources have no owners", "who may call the server is decided by its token"),
    _Refusal(("WHERE", "FROM", "IN"), "LIKE", "SHOW SOURCES can be narrowed by name only", "SHOW SOURCES LIKE 'shop%'"),
    _Refusal(("KAFKA", "MYSQL", "SQL", "KINESIS", "FILE", "S3", "PUBNUB", "AVRO"), "POSTGRES", *_ONLY_POSTGRES),
    _Refusal(("LOAD", "WEBHOOK", "ORACLE", "MONGODB", "MARIADB", "SQLSERVER"), "POSTGRES", *_ONLY_POSTGRES),
    _Refusal(
        ("SECRET",),
        "SOURCES",
        "secrets are not stored, they are pointed at",
        "PASSWORD SECRET '${env:NAME}' or '${file:PATH}'",
    ),
    _Refusal(
        ("CONNECTION",),
        "SOURCES",
        "an address is a part of its source",
        "CREATE SOURCES name FROM POSTGRES HOST '…' USER … DATABASE …",
    ),
    _Refusal(
        ("VIEW", "VIEWS", "TABLE", "TABLES", "SINK", "INDEX", "CLUSTER", "DATABASE", "SCHEMA", "ROLE", "TYPE"),
        "SOURCES",
        *_ONLY_SOURCES,
    ),
    _Refusal(
        ("VIEW", "VIEWS", "TABLE", "TABLES", "SINK", "INDEX", "CLUSTER", "DATABASE", "SCHEMA", "ROLE", "TYPE"),
        "SOURCE",
        *_ONLY_SOURCES,
    ),
    _Refusal(
        ("SELECT", "INSERT", "UPDATE", "DELETE", "COPY", "EXPLAIN", "TAIL", "SUBSCRIBE", "TRUNCATE"),
        "SHOW",
        *_ONLY_SOURCES,
    ),
    _Refusal(("BEGIN", "COMMIT", "ROLLBACK", "START", "ABORT"), "SHOW", "every statement stands alone", "leave it out"),
)


def reason(found: Token, accepted: Collection[str]) -> tuple[str, str] | None:
    """Why a word that the grammar does not have here is refused, and what to do; None for one that is just wrong."""
    word = found.upper()
    for refusal in _REFUSALS:
        if word in refusal.words and refusal.where in accepted:
            return f"{word}: {refusal.reason}", refusal.hint
    return None


COLUMNS = (
    "columns cannot be declared: names and types are read from Postgres, and followed when they change",
    "leave out what is in parentheses after the table",
)
NAMED_CONNECTION = (
    "an address is written as text: connections have no names here",
    "HOST 'host=db.example.com dbname=shop user=ann'",
)
