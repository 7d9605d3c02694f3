"""One property of a configuration: what it means, and what becomes of it here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType


class Verdict(StrEnum):
    """What becomes of a property that is given."""

    SUPPORTED = "supported"
    """It does here what it does in Debezium, or what its documentation says."""
    IGNORED = "ignored"
    """Accepted with a warning: it means nothing here."""
    REFUSED = "refused"
    """The configuration is not accepted: we would do something else than what it asks for."""


class Type(StrEnum):
    """The types of values, as Kafka Connect names them."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    STRING = "STRING"
    LIST = "LIST"
    PASSWORD = "PASSWORD"
    CLASS = "CLASS"


class Importance(StrEnum):
    """How likely a person has to set it, as Kafka Connect names it."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Property:
    """One key, or one family of keys (`transforms.*`), and its verdict."""

    name: str
    verdict: Verdict
    documentation: str
    type: Type = Type.STRING
    default: str | None = None
    """The value that holds when none is given; None where nothing holds then."""
    importance: Importance = Importance.LOW
    group: str = ""
    reason: str = ""
    """Why it is ignored or refused, and what to do instead; may be printed after the key."""
    values: tuple[str, ...] = ()
    """Of a supported one: all that may be given. Empty: whatever the type allows."""
    harmless: tuple[str, ...] = ()
    """Of one that is not supported: values that ask for what happens anyway. They are accepted without a word."""
    refused_values: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Values of a supported or ignored one that are refused, each with the reason."""
    minimum: int | None = None
    """The least number that may be given."""
    required: bool = False

    @property
    def is_family(self) -> bool:
        return "*" in self.name

    def covers(self, key: str) -> bool:
        """Whether `key` is this one, or one of this family."""
        return key == self.name or (self.is_family and _expression(self.name).fullmatch(key) is not None)

    def is_harmless(self, value: str) -> bool:
        """Whether the value asks for nothing but what happens anyway."""
        return value.strip().lower() in ("", *self.harmless)

    @property
    def meaning(self) -> str:
        """What it does, or why it does nothing here, in sentences for a document."""
        if self.verdict is not Verdict.SUPPORTED:
            harmless = ", ".join(f"`{value}`" for value in self.harmless)
            silent = f" No warning for {harmless}." if harmless and self.verdict is Verdict.IGNORED else ""
            return f"{self.documentation} {self.reason[:1].upper()}{self.reason[1:]}.{silent}"
        unsaid = [f"`{value}`" for value in self.values if f"`{value}`" not in self.documentation]
        word = "Or" if len(unsaid) < len(self.values) else "One of"
        known = f" {word} {', '.join(unsaid)}." if unsaid else ""
        refusals = "".join(f" Refused: `{value}`, {reason}." for value, reason in self.refused_values.items())
        secret = " A secret." if self.type is Type.PASSWORD else ""
        return f"{self.documentation}{known}{refusals}{secret}"


@cache
def _expression(family: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, family.split("*"))))


def supported(name: str, documentation: str, type: Type = Type.STRING, **more: object) -> Property:
    return Property(name, Verdict.SUPPORTED, documentation, type, **more)  # type: ignore[arg-type]


def ignored(name: str, documentation: str, reason: str, type: Type = Type.STRING, **more: object) -> Property:
    return Property(name, Verdict.IGNORED, documentation, type, reason=reason, **more)  # type: ignore[arg-type]


def refused(name: str, documentation: str, reason: str, type: Type = Type.STRING, **more: object) -> Property:
    return Property(name, Verdict.REFUSED, documentation, type, reason=reason, **more)  # type: ignore[arg-type]


def renamed(old: str, new: str) -> Property:
    """A name that Debezium has given up."""
    return refused(old, f"Now `{new}`.", f"it is called {new}")


def grouped(group: str, properties: tuple[Property, ...]) -> tuple[Property, ...]:
    """The same, under a heading of the documentation."""
    return tuple(replace(each, group=group) for each in properties)
