"""Text into statements: several, separated by `;`.

Any text becomes statements or a `SqlError` that says where, what was expected and what was found, in time that grows
with the text's length and no faster. Nothing is done before all of the text has been understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tailrace.server.sql.language import _refusals
from tailrace.server.sql.language._building import Builder
from tailrace.server.sql.language._dialect import grammar, other_names
from tailrace.server.sql.language.masking import is_masked
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import Statement, TextPlace

_END = "$END"
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_FOUND_CHARACTERS_MAX = 40
TEXT_CHARACTERS_MAX = 256 << 10
"""Thousands of tables. Longer texts are refused unread."""
STATEMENTS_MAX = 200
_SAID = {
    "NAME": "a name",
    "TEXT": "a text in quotes",
    "NUMBER": "a number",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "DOT": ".",
    "EQUAL": "=",
    "STAR": "*",
    "SEMICOLON": ";",
    _END: "the end",
}
_NOT_SAID = {"QUOTED", "ESCAPED_TEXT", "SUBSOURCE", "MATERIALIZED"}
"""What is another way to write what is said already, or has no effect."""


def parse(text: str) -> list[Statement]:
    """All statements of a text, in their order."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SqlError(TextPlace(), f"a text has {TEXT_CHARACTERS_MAX:,} characters at most", "send it in parts")
    unusable = _UNUSABLE.search(text)
    if unusable is not None:
        number = ord(unusable.group())
        raise SqlError(_place(text, unusable.start()), f"U+{number:04X} cannot be in a statement").in_text(text)
    try:
        statements: list[Statement] = _grammar().parse(text)  # type: ignore[assignment]
        if len(statements) > STATEMENTS_MAX:
            raise SqlError(
                TextPlace(),
                f"a text has {STATEMENTS_MAX} statements at most, not {len(statements)}",
                "send it in parts",
            )
        return statements
    except UnexpectedInput as error:
        raise _error_of(text, error).in_text(text) from None
    except SqlError as error:
        raise error.in_text(text) from None


def is_unfinished(text: str) -> bool:
    """Whether more lines could make statements of it: a quote or a comment is open, or the last statement has no `;`
    yet. For a prompt."""
    if not text.strip():
        return False
    try:
        parse(text)
    except SqlError as error:
        return error.place == _place(text, len(text.rstrip())) or error.problem.endswith(_OPEN)
    return not re.sub(r"--[^\n]*", "", text).rstrip().endswith(";")


@cache
def _grammar() -> Lark:
    return Lark(grammar(), parser="lalr", transformer=Builder(), maybe_placeholders=True)


def _place(text: str, offset: int) -> TextPlace:
    return TextPlace(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def keywords() -> frozenset[str]:
    """Every word that has a meaning somewhere."""
    return frozenset(each.name for each in _grammar().terminals if each.pattern.value.startswith(f"{each.name}("))


_OPEN = "is not closed"


def _error_of(text: str, error: UnexpectedInput) -> SqlError:
    if isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        return SqlError(_place(text, offset), _character(text, offset))
    assert isinstance(error, UnexpectedToken)
    token: Token = error.token
    accepted: Collection[str] = error.interactive_parser.accepts()  # type: ignore[no-untyped-call]
    place = _place(text, len(text.rstrip()) if token.type == _END else token.start_pos or 0)
    if token.upper() == "E" and text.startswith("'", token.end_pos):
        return SqlError(place, f"this text {_OPEN}")
    refused = _refused(error, token, accepted)
    if refused is not None:
        return SqlError(place, *refused)
    expected = _expected(accepted)
    return SqlError(place, f"expected {' or '.join(expected)}, found {_describe(text, token)}", expected=expected)


def _character(text: str, offset: int) -> str:
    """What is wrong where no word begins."""
    character = text[offset]
    if character == "'":
        return f"this text {_OPEN}"
    if character == '"':
        return "a name cannot be empty" if text[offset : offset + 2] == '""' else f"this name {_OPEN}"
    if text.startswith("/*", offset):
        return f"this comment {_OPEN}"
    if is_masked(text, offset):
        return "this has no meaning here, unless it is written in quotes"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return f"{shown} has no meaning here"


def _refused(error: UnexpectedToken, token: Token, accepted: Collection[str]) -> tuple[str, str] | None:
    before = [each.type for each in error.interactive_parser.parser_state.value_stack if isinstance(each, Token)]
    is_after_table = "AS" in accepted or ("MATERIALIZED" in accepted and "SOURCES" not in accepted)
    if token.type == "LPAR" and is_after_table:
        return _refusals.COLUMNS
    if token.type in ("NAME", "QUOTED") and before[-1:] == ["CONNECTION"]:
        return _refusals.NAMED_CONNECTION
    return _refusals.reason(token, accepted)


def _expected(accepted: Collection[str]) -> tuple[str, ...]:
    """Words in their order, then signs, then the end."""
    said = {_SAID.get(each, each) for each in accepted if each not in _NOT_SAID | other_names()}
    return tuple(sorted(said, key=lambda each: (each == "the end", not each[0].isalpha(), each.islower(), each)))


def _describe(text: str, token: Token) -> str:
    if token.type == _END:
        return "the end"
    if token.type in ("TEXT", "ESCAPED_TEXT"):
        return "a text in quotes"
    if is_masked(text, token.start_pos or 0):
        return "what may be a secret"
    shown = "".join(each if each.isprintable() else "�" for each in token[:_FOUND_CHARACTERS_MAX])
    return shown + ("…" if len(token) > _FOUND_CHARACTERS_MAX else "")
