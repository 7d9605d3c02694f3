"""Which tables a configuration names: Debezium's expressions as patterns of ours, such as `public.*`.

The patterns match exactly the tables that the expressions match, or the expression is refused. A pattern of ours
minds the case of letters and Debezium does not, so each comes twice: as it is written, which is what messages show,
and with both cases of every letter.

One limit: lists of schemas take the schema to end at the first dot of `schema.table`, and schemas with a dot in their
name for part of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tailrace.configuration._expressions import ANY, ANYTHING, SOMETHING, ExpressionError, Sequence, sequences

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Schemas:
    """Schemas that a list names. None at all means: any."""

    names: tuple[Sequence, ...] = ()

    def tables(self) -> list[str]:
        """Patterns for all tables of theirs."""
        return _patterns((*name, ".", ANYTHING) for name in self.names)

    def narrowed(self, expression: str, tables: Iterable[Sequence]) -> list[Sequence]:
        """Those of the `tables` of an expression that lie in these schemas."""
        if not self.names:
            return list(tables)
        found: list[Sequence] = []
        for each in tables:
            schema, rest = each[: each.index(".")], each[each.index(".") :]
            if schema == (ANYTHING,):
                found += [(*name, *rest) for name in self.names]
            elif ANY in schema or ANYTHING in schema:
                hint = "write the schema's name in table.include.list, or leave schema.include.list out"
                raise ExpressionError(f"'{expression}' cannot be combined with schema.include.list", hint)
            elif any(fnmatchcase("".join(schema), pattern) for pattern in _patterns(self.names)):
                found.append(each)
        return found


ANY_SCHEMA = Schemas()


def schema_names(expression: str) -> list[Sequence]:
    """What Debezium matches against a schema's name alone."""
    found = [_filled(each) for each in sequences(expression)]
    for each in found:
        _require_exact(expression, each)
    return found


def chosen(expression: str, warn: Warn, schemas: Schemas = ANY_SCHEMA) -> list[str]:
    """Patterns for tables of which each must be there; only for those in `schemas`, where some are given."""
    tables = [_one_reading(expression, each, warn) for each in sequences(expression)]
    return _patterns(schemas.narrowed(expression, tables))


def matched(expression: str) -> list[str]:
    """Patterns for all tables that an expression can mean. Some of them may match none."""
    found = [_filled(each) for each in sequences(expression)]
    return _patterns(reading for each in found for reading, _ in _readings(expression, each))


def _one_reading(expression: str, sequence: Sequence, warn: Warn) -> Sequence:
    """The one way to read a sequence, or the one in which the first dot that is not escaped ends the schema."""
    readings = _readings(expression, _filled(sequence))
    if len(readings) == 1:
        return readings[0][0]
    by_dot = [reading for reading, is_dot in readings if is_dot]
    if not by_dot:
        hint = r"say where the schema ends: .*\..*order.* for tables, .*order.*\..* for schemas"
        raise ExpressionError(f"'{expression}' can be for schemas and for tables", hint)
    warn(rf"'{expression}' is taken as if its first dot were escaped, \., and ended the schema's name")
    return by_dot[0]


def _readings(expression: str, sequence: Sequence) -> list[tuple[Sequence, bool]]:
    """Every `schema.table` has a dot. Where the expression has none, one of its wildcards must match it; the flag
    says whether that one is for a single character."""
    _require_exact(expression, sequence)
    if "." in sequence:
        return [(sequence, False)]
    found = []
    for at, token in enumerate(sequence):
        if token in (ANY, ANYTHING):
            dot = (".",) if token == ANY else (ANYTHING, ".", ANYTHING)
            found.append(((*sequence[:at], *dot, *sequence[at + 1 :]), token == ANY))
    if not found:
        raise ExpressionError(f"'{expression}' names no table", r"write the schema too: public\.orders")
    for reading, _ in found:
        _require_exact(expression, reading, is_reading=True)
    return found


def _filled(sequence: Sequence) -> Sequence:
    """`.+` as `.*` where the whole schema or the whole table is meant, which are never empty."""
    found = list(sequence)
    letters = [token for token in sequence if len(token) > 1 or token == "."]
    if letters in ([".", SOMETHING], [SOMETHING]) and found[-1] == SOMETHING:
        is_whole = len(found) == 1 or found[-2] == "."
        found[-1] = ANYTHING if is_whole else SOMETHING
    if letters in ([SOMETHING, "."], [SOMETHING, ".", ANYTHING]) and found[:2] == [SOMETHING, "."]:
        found[0] = ANYTHING
    return tuple(found)


def _require_exact(expression: str, sequence: Sequence, *, is_reading: bool = False) -> None:
    """A single character must have one that stands for itself on both sides: a pattern is also held against the quoted
    form of a name, and must not take a quote for the character."""
    if SOMETHING in sequence:
        raise ExpressionError(f"'{expression}' has a .+ that is only part of a name", "write .* or name the tables")
    for at, token in enumerate(sequence):
        around = (*sequence[max(at - 1, 0) : at], *sequence[at + 1 : at + 2])
        is_alone = len(around) < 2 or any(len(each) > 1 or each == "." for each in around)
        if token == ANY and is_alone and (is_reading or "." in sequence):
            raise ExpressionError(
                f"'{expression}' has a dot for any one character that stands alone", r"write \. for a dot, or .*"
            )


def _patterns(found: Iterable[Sequence]) -> list[str]:
    """As they are written first: those are what a person knows."""
    all_found = list(found)
    exact = ["".join(_text(token) for token in each) for each in all_found]
    in_any_case = ["".join(_text_in_any_case(token) for token in each) for each in all_found]
    return list(dict.fromkeys([*exact, *in_any_case]))


def _text(token: str) -> str:
    if token in (ANY, ANYTHING):
        return "?" if token == ANY else "*"
    return f"[{token}]" if token in "*?[" else token


def _text_in_any_case(token: str) -> str:
    if len(token) == 1 and token.isascii() and token.isalpha():
        return f"[{token.lower()}{token.upper()}]"
    return _text(token)
