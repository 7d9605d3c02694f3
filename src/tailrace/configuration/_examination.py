"""A configuration looked at key by key: what each is, whether its value can be read, what is wrong with it.

Nothing that is said here has a value in it that was looked up: messages show what was given, and nothing of a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.configuration._expressions import split_list
from tailrace.configuration.properties import MASK, Property, Type, Verdict, nearest, property_of
from tailrace.configuration.quantities import parse_duration, parse_size
from tailrace.configuration.secrets import SecretError, resolved, shown
from tailrace.errors import DefiniteError

INT_MAX = (1 << 31) - 1


@dataclass
class Examination:
    """What is known of one configuration. Of a value that cannot be read only the problem is kept."""

    properties: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict, repr=False)
    """Of supported keys, with secrets."""
    problems: dict[str, list[str]] = field(default_factory=dict)
    warnings: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Examination:
        examination = cls(properties)
        for key, given in properties.items():
            examination._examine(key, given)
        return examination

    def refuse(self, key: str, problem: str) -> None:
        self.problems.setdefault(key, []).append(problem)

    def warn(self, key: str, warning: str) -> None:
        self.warnings.setdefault(key, []).append(warning)

    def is_looked_up(self, key: str) -> bool:
        """Whether the value is not what is written, but what that refers to: no part of it may be shown."""
        return self.values.get(key, "").strip() != self.properties.get(key, "").strip()

    def text(self, key: str) -> str | None:
        return self.values.get(key)

    def number(self, key: str) -> int | None:
        text = self.values.get(key)
        return None if text is None else int(text)

    def items(self, key: str) -> list[str]:
        return split_list(self.values.get(key, ""))

    def seconds(self, key: str, default: float) -> float:
        """Of a time such as `7d`."""
        text = self.values.get(key)
        try:
            return default if text is None else parse_duration(key, text)
        except DefiniteError:
            self.refuse(key, f"{self._shown(key)} is not a time: write a number and a unit, 7d, 12h, 30min or 90s")
            return default

    def bytes(self, key: str, bytes_min: int) -> int | None:
        """Of a size such as `512MB`."""
        text = self.values.get(key)
        try:
            return None if text is None else parse_size(key, text, bytes_min)
        except DefiniteError:
            least = f"{bytes_min >> 20}MB"
            self.refuse(key, f"{self._shown(key)} is not a size of {least} or more: write a number and a unit, 512MB")
            return None

    def _examine(self, key: str, given: str) -> None:
        found = property_of(key, self.properties)
        if found is None:
            close = nearest(key)
            self.refuse(key, "unknown" + (f": did you mean {close}?" if close else ""))
        elif found.verdict is Verdict.SUPPORTED:
            self._read(found, key, given)
        elif not self._is_harmless(found, key, given):
            tell = self.refuse if found.verdict is Verdict.REFUSED else self.warn
            tell(key, found.reason)

    def _is_harmless(self, found: Property, key: str, given: str) -> bool:
        if found.verdict is Verdict.IGNORED:
            # What is ignored need not be looked up.
            return found.is_harmless(given)
        try:
            return found.is_harmless(resolved(given))
        except SecretError:
            return False

    def _read(self, found: Property, key: str, given: str) -> None:
        try:
            value = resolved(given)
        except SecretError as error:
            self.refuse(key, error.message)
            return
        if not value.strip():
            return
        if found.type is not Type.PASSWORD:
            value = value.strip()
        elif given == MASK:
            self.refuse(key, "is the mask of a secret: give the secret, or a reference such as ${env:NAME}")
            return
        problem = self._problem(found, key, value)
        if problem is None:
            self.values[key] = _folded(found, value)
        else:
            self.refuse(key, problem)

    def _problem(self, found: Property, key: str, value: str) -> str | None:
        """Why the value cannot be one of this property's."""
        if "\0" in value:
            return "has a null character in it"
        if not _is_text(value):
            return "is not text in UTF-8"
        if found.type is Type.INT:
            return self._number_problem(found, key, value)
        for each in split_list(value) if found.type is Type.LIST else [value]:
            refusal = found.refused_values.get(each.lower())
            if refusal is not None:
                return refusal
            if found.values and _folded(found, each) not in found.values:
                return f"{self._shown(key)} is not known; known are {', '.join(found.values)}"
        return None

    def _number_problem(self, found: Property, key: str, value: str) -> str | None:
        if not (value.isascii() and value.removeprefix("-").isdigit()):
            return f"{self._shown(key)} is not a whole number"
        if found.minimum is not None and int(value) < found.minimum:
            return f"{self._shown(key)} is too small: it must be {found.minimum} or more"
        return f"{self._shown(key)} is too large" if int(value) > INT_MAX else None

    def _shown(self, key: str) -> str:
        given = shown(key, self.properties[key], self.properties)
        return "what is given" if given == MASK else repr(given)


def _is_text(value: str) -> bool:
    """The environment may have bytes that are no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folded(found: Property, value: str) -> str:
    """Debezium takes names of modes in any case."""
    return value.lower() if found.values and found.type is not Type.CLASS else value
