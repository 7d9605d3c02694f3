"""Words that other systems know in such statements and that mean nothing here, each with the reason.

They are no part of the grammar: whatever follows such a word, the word itself is what a person should hear about.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lark import Token

from tailrace.server.sql.language._dialect import examples

_KIND = "a kind of source"
_ONLY_SOURCES = "only sources can be made, altered, dropped and shown", "rows are asked for with tailrace query"


@dataclass(frozen=True)
class _RefusedWord:
    """One word, where a certain other word could stand."""

    words: tuple[str, ...]
    where: tuple[str, ...]
    """The grammar accepts one of these terminals there; `_KIND` stands for what follows FROM."""
    reason: str
    hint: str


_LEAVE_OUT = "leave it out"
_OTHER_THINGS = ("VIEW", "VIEWS", "TABLE", "TABLES", "SINK", "INDEX", "CLUSTER", "DATABASE", "SCHEMA", "ROLE", "TYPE")
_OTHER_SOURCES = (
    *("KAFKA", "MYSQL", "MARIADB", "SQL", "SQLSERVER", "ORACLE", "MONGODB", "KINESIS", "S3", "FILE", "PUBNUB"),
    *("AVRO", "LOAD", "WEBHOOK"),
)

_REFUSALS = (
    _RefusedWord(
        ("UNMATERIALIZED",),
        ("SOURCES", "COMMA"),
        "every table of a source is copied into the lake",
        "to leave a table out, do not name it in TABLES (…)",
    ),
    _RefusedWord(("TEMPORARY", "TEMP"), ("SOURCES",), "a source lasts until it is dropped", "CREATE SOURCES …"),
    _RefusedWord(("OR",), ("SOURCES",), "a source is never replaced", "ALTER SOURCE changes one, DROP SOURCE ends it"),
    _RefusedWord(
        ("FORMAT", "ENVELOPE", "INCLUDE", "KEY", "VALUE"),
        ("LAKE",),
        "rows come from the source with their types and keys, there is nothing to declare",
        _LEAVE_OUT,
    ),
    _RefusedWord(
        ("TEXT", "EXCLUDE", "COLUMNS"),
        ("LAKE",),
        "a table is copied with all its columns, each with its own type",
        _LEAVE_OUT,
    ),
    _RefusedWord(
        ("DETAILS", "TIMELINE", "TIMESTAMP"),
        ("LAKE",),
        "positions and times are the source's own, they are not declared",
        _LEAVE_OUT,
    ),
    _RefusedWord(
        ("EXPOSE", "PROGRESS"),
        ("LAKE",),
        "how far a source is, is not a table",
        "SHOW SOURCES, or GET /connectors/NAME/status",
    ),
    _RefusedWord(("IN",), ("FROM",), "there are no clusters to choose from", "leave out IN CLUSTER …"),
    _RefusedWord(
        ("RENAME",),
        ("ADD",),
        "a source keeps its name: its lake and what it has in its database are found by it",
        "drop it and create one with another name",
    ),
    _RefusedWord(("OWNER",), ("ADD",), "sources have no owners", "who may call the server is decided by its token"),
    _RefusedWord(
        ("WHERE", "FROM", "IN"), ("LIKE",), "SHOW SOURCES can be narrowed by name only", "SHOW SOURCES LIKE 'shop%'"
    ),
    _RefusedWord(_OTHER_SOURCES, (_KIND,), "only {names} can be read", "CREATE SOURCES name FROM {KIND} …"),
    _RefusedWord(
        ("SECRET",),
        ("SOURCES",),
        "secrets are not stored, they are pointed at",
        "PASSWORD SECRET '${env:NAME}' or '${file:PATH}'",
    ),
    _RefusedWord(
        ("CONNECTION",),
        ("SOURCES",),
        "an address is a part of its source",
        "CREATE SOURCES name FROM {KIND} HOST '…' USER … DATABASE …",
    ),
    _RefusedWord(_OTHER_THINGS, ("SOURCES", "SOURCE"), *_ONLY_SOURCES),
    _RefusedWord(
        ("SELECT", "INSERT", "UPDATE", "DELETE", "COPY", "EXPLAIN", "TAIL", "SUBSCRIBE", "TRUNCATE"),
        ("SHOW",),
        *_ONLY_SOURCES,
    ),
    _RefusedWord(
        ("BEGIN", "COMMIT", "ROLLBACK", "START", "ABORT"), ("SHOW",), "every statement stands alone", _LEAVE_OUT
    ),
)


def reason(token: Token, accepted: Collection[str]) -> tuple[str, str] | None:
    """Why a word that the grammar does not have here is refused, and what to do; None for one that is just wrong."""
    word = token.upper()
    names, kind = examples()
    places = {*accepted, _KIND} if kind in accepted else set(accepted)
    for refusal in _REFUSALS:
        if word in refusal.words and not places.isdisjoint(refusal.where):
            reason = refusal.reason.replace("{names}", names)
            return f"{word}: {reason}", refusal.hint.replace("{KIND}", kind)
    return None


COLUMNS = (
    "columns cannot be declared: names and types are read from the source, and followed when they change",
    "leave out what is in parentheses after the table",
)
NAMED_CONNECTION = (
    "an address is written as text: connections have no names here",
    "HOST 'host=db.example.com dbname=shop user=ann'",
)
