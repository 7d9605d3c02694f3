"""Debezium's regular expressions for tables, read as far as a pattern of ours can say the same.

An expression is matched by Java against a whole `schema.table`, in any case of ASCII letters. We read literal text,
`.`, `.*`, `.+`, alternatives, groups and `?`. Alternatives are multiplied out: each is a sequence of characters and
of two wildcards. What else Java knows is refused by name, never approximated.
"""

from __future__ import annotations

import re
from itertools import product

from tailrace.errors import DefiniteError

ANY, ANYTHING, SOMETHING = "any character", "anything", "at least one character"
"""Wildcards in a sequence; everything else in it is one character that stands for itself."""

Sequence = tuple[str, ...]

ALTERNATIVES_MAX = 500
GROUPS_MAX = 50
"""How deep groups may lie in each other."""
_ITEM = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_SPECIAL = '[](){}*+?|^$\\"'


class ExpressionError(DefiniteError):
    """An expression that no pattern of ours can say."""


def split_list(text: str) -> list[str]:
    """The items of a comma-separated list. A comma after a backslash belongs to its item."""
    return [item.strip() for item in _ITEM.findall(text) if item.strip()]


def sequences(expression: str) -> list[Sequence]:
    """Every alternative, in the order in which they are written."""
    reader = _Reader(expression)
    found = reader.alternatives()
    if reader.rest:
        raise reader.refusal()
    return list(dict.fromkeys(found))


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._depth = 0
        # The whole name is matched anyway.
        self.rest = expression.removeprefix("^")
        if re.search(r"(?<!\\)(?:\\\\)*\$$", self.rest):
            self.rest = self.rest[:-1]

    def alternatives(self) -> list[Sequence]:
        found = self._sequences()
        while self._take("|"):
            found += self._sequences()
        return found

    def refusal(self) -> ExpressionError:
        return ExpressionError(
            f"'{self._expression}' cannot be told exactly in patterns of ours, because of '{self.rest[:10]}'",
            r"write names, public\.orders, with .* and alternatives, public\.(orders|items_.*)",
        )

    def _sequences(self) -> list[Sequence]:
        found: list[Sequence] = [()]
        while self.rest and self.rest[0] not in "|)":
            factor = self._factor()
            if len(found) * len(factor) > ALTERNATIVES_MAX:
                raise ExpressionError(
                    f"'{self._expression}' has more than {ALTERNATIVES_MAX} alternatives", "use .* or fewer of them"
                )
            found = [left + right for left, right in product(found, factor)]
        return found

    def _factor(self) -> list[Sequence]:
        atom = self._atom()
        if self._take("?"):
            if self.rest[:1] in ("?", "+"):
                raise self.refusal()
            return [*atom, ()]
        if self.rest[:1] in ("*", "+", "{"):
            raise self.refusal()
        return atom

    def _atom(self) -> list[Sequence]:
        if self._take("."):
            return [(self._wildcard(),)]
        if self._take("(?:") or (self.rest[:2] != "(?" and self._take("(")):
            self._depth += 1
            if self._depth > GROUPS_MAX:
                raise ExpressionError(f"an expression has groups nested deeper than {GROUPS_MAX}", "use fewer of them")
            found = self.alternatives()
            if not self._take(")"):
                raise self.refusal()
            self._depth -= 1
            return found
        escaped = re.match(r"\\([^A-Za-z0-9\"])", self.rest)
        if escaped is not None:
            self.rest = self.rest[2:]
            return [(escaped[1],)]
        if self.rest[0] in _SPECIAL:
            raise self.refusal()
        character, self.rest = self.rest[0], self.rest[1:]
        return [(character,)]

    def _wildcard(self) -> str:
        for text, wildcard in (("*", ANYTHING), ("+", SOMETHING)):
            if self._take(text):
                if self.rest[:1] in ("?", "+"):
                    raise self.refusal()
                return wildcard
        return ANY

    def _take(self, text: str) -> bool:
        if not self.rest.startswith(text):
            return False
        self.rest = self.rest[len(text) :]
        return True
