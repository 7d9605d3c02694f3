"""A configuration looked at key by key: what each is, whether its value can be read, what is wrong with it.

Nothing that is said here has a value in it that was looked up: messages show what was given, and nothing of a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from tailrace.configuration.properties import MASK, Property, Type, Verdict, nearest, property_of
from tailrace.configuration.secrets import SecretError, resolved, shown
from tailrace.configuration.tables import matched
from tailrace.configuration.values import parse_duration, parse_size
from tailrace.model.table_pattern import ExpressionError, split_list

Read = TypeVar("Read")
_UNSEEN = "what it refers to has an expression that cannot be told exactly"
NO_LISTS: Mapping[str, Sequence[str]] = MappingProxyType({})
INT_MAX = (1 << 31) - 1


@dataclass
class Examination:
    """What is known of one configuration. Of a value that cannot be read only the problem is kept."""

    properties: Mapping[str, str]
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Items of lists, by key, beside those that the properties have."""
    values: dict[str, str] = field(default_factory=dict, repr=False)
    """Of supported keys, with secrets."""
    problems: dict[str, list[str]] = field(default_factory=dict)
    warnings: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str], lists: Mapping[str, Sequence[str]] = NO_LISTS) -> Examination:
        examination = cls(properties, lists)
        for key, given in properties.items():
            examination._examine(key, given)
        return examination

    def refuse(self, key: str, problem: str) -> None:
        self.problems.setdefault(key, []).append(problem)

    def warn(self, key: str, warning: str) -> None:
        self.warnings.setdefault(key, []).append(warning)

    def require(self, key: str, problem: str) -> None:
        """Unless the key has a problem already, which is why its value is missing."""
        if key not in self.problems:
            self.refuse(key, problem)

    def has_problem(self, key: str) -> bool:
        return key in self.problems

    def is_looked_up(self, key: str) -> bool:
        """Whether the value is not what is written, but what that refers to: no part of it may be shown."""
        return self.values.get(key, "").strip() != self.properties.get(key, "").strip()

    def text(self, key: str) -> str | None:
        return self.values.get(key)

    def is_on(self, key: str) -> bool:
        return self.values.get(key) == "true"

    def number(self, key: str) -> int | None:
        text = self.values.get(key)
        return None if text is None else int(text)

    def items(self, key: str) -> list[str]:
        return [*self.lists.get(key, ()), *self._written_items(key)]

    def read_each(self, key: str, read: Callable[[str], list[Read]]) -> list[Read]:
        """What all expressions of a list come to. Each that cannot be read is a problem of its own."""
        readings: dict[Read, None] = {}
        for item in self._written_items(key):
            try:
                readings |= dict.fromkeys(read(item))
            except ExpressionError as error:
                problem = _UNSEEN if self.is_looked_up(key) else error.message
                self.refuse(key, f"{problem}: {error.hint}")
        return list(readings)

    def table_patterns(self, key: str) -> list[str]:
        return [*self.lists.get(key, ()), *self.read_each(key, matched)]

    def seconds(self, key: str, default: float) -> float:
        """Of a time such as `7d`."""
        text = self.values.get(key)
        seconds = default if text is None else parse_duration(text)
        if seconds is None:
            self.refuse(key, f"{self.shown(key)} is not a time: write a number and a unit, 7d, 12h, 30min or 90s")
        return default if seconds is None else seconds

    def bytes(self, key: str, bytes_min: int) -> int | None:
        """Of a size such as `512MB`."""
        text = self.values.get(key)
        size = None if text is None else parse_size(text)
        if text is not None and (size is None or size < bytes_min):
            least = f"{bytes_min >> 20}MB"
            self.refuse(key, f"{self.shown(key)} is not a size of {least} or more: write a number and a unit, 512MB")
            return None
        return size

    def _written_items(self, key: str) -> list[str]:
        return split_list(self.values.get(key, ""))

    def _examine(self, key: str, given: str) -> None:
        known = property_of(key, self.properties)
        if known is None:
            close = nearest(key, self.properties)
            self.refuse(key, "unknown" + (f": did you mean {close}?" if close else ""))
        elif known.verdict is Verdict.SUPPORTED:
            self._read(known, key, given)
        elif not self._is_harmless(known, key, given):
            tell = self.refuse if known.verdict is Verdict.REFUSED else self.warn
            tell(key, known.reason)

    def _is_harmless(self, known: Property, key: str, given: str) -> bool:
        if known.verdict is Verdict.IGNORED:
            # What is ignored need not be looked up.
            return known.is_harmless(given)
        try:
            return known.is_harmless(resolved(given))
        except SecretError:
            return False

    def _read(self, known: Property, key: str, given: str) -> None:
        try:
            value = resolved(given)
        except SecretError as error:
            self.refuse(key, error.message)
            return
        if not value.strip():
            return
        if known.type is not Type.PASSWORD:
            value = value.strip()
        elif given == MASK:
            self.refuse(key, "is the mask of a secret: give the secret, or a reference such as ${env:NAME}")
            return
        problem = self._problem(known, key, value)
        if problem is None:
            self.values[key] = _folded(known, value)
        else:
            self.refuse(key, problem)

    def _problem(self, known: Property, key: str, value: str) -> str | None:
        """Why the value cannot be one of this property's."""
        if "\0" in value:
            return "has a null character in it"
        if not _is_text(value):
            return "is not text in UTF-8"
        if known.type is Type.INT:
            return self._number_problem(known, key, value)
        for each in split_list(value) if known.type is Type.LIST else [value]:
            refusal = known.refused_values.get(each.lower())
            if refusal is not None:
                return refusal
            if known.values and _folded(known, each) not in known.values:
                return f"{self.shown(key)} is not known; known are {', '.join(known.values)}"
        return None

    def _number_problem(self, known: Property, key: str, value: str) -> str | None:
        if not (value.isascii() and value.removeprefix("-").isdigit()):
            return f"{self.shown(key)} is not a whole number"
        if known.minimum is not None and int(value) < known.minimum:
            return f"{self.shown(key)} is too small: it must be {known.minimum} or more"
        return f"{self.shown(key)} is too large" if int(value) > INT_MAX else None

    def shown(self, key: str) -> str:
        """What is given, as far as a message may show it."""
        given = shown(key, self.properties[key], self.properties)
        return "what is given" if given == MASK else repr(given)


def _is_text(value: str) -> bool:
    """The environment may have bytes that are no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folded(known: Property, value: str) -> str:
    """Debezium takes names of modes in any case."""
    return value.lower() if known.values and known.type is not Type.CLASS else value
