"""A configuration as Kafka Connect has it, text by text, read into what runs a connector.

All problems are found at once. A connector gets a configuration without problems or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace.configuration._assembly import assembled, settings_of
from tailrace.configuration._examination import NO_LISTS, Examination
from tailrace.configuration.files import normalised
from tailrace.configuration.problems import ConfigurationError
from tailrace.configuration.properties import Property, all_properties, property_of
from tailrace.configuration.secrets import redacted, require_given_again, shown, unredacted
from tailrace.errors import DefiniteError
from tailrace.model.lake_address import LakeAddress
from tailrace.settings import ConnectorSettings

__all__ = [
    "Configuration",
    "ConfigurationError",
    "PropertyCheck",
    "check",
    "normalised",
    "read",
    "read_settings",
    "redacted",
    "require_given_again",
    "unredacted",
]


KEYS_MAX = 500
"""More than twice as many as are known."""


@dataclass(frozen=True)
class Configuration:
    """What runs one connector."""

    name: str
    kind: str
    """Which kind of source, as `source.kinds` has it."""
    dsn: str = field(repr=False)
    """With the password: never logged."""
    settings: ConnectorSettings = field(repr=False)
    """Settings of Spark's may have secrets in them."""
    source_options: Mapping[str, Any] = field(repr=False)
    """Keyword arguments for `tailrace.source.kinds.source_of`."""
    warnings: tuple[str, ...]
    """Keys that mean nothing here, each with the reason."""
    server: str = field(repr=False)
    """What the source is called in offsets: `topic.prefix`, or the connector's name."""


@dataclass(frozen=True)
class PropertyCheck:
    """One key of a configuration, looked at; for those who show a form."""

    name: str
    property: Property | None
    """None for a key that we do not know."""
    value: str | None
    """As it may be shown: what is given, or else the default."""
    is_given: bool
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    recommended_values: tuple[str, ...]


def read(
    properties: Mapping[str, str], lakes: Path | None = None, lists: Mapping[str, Sequence[str]] = NO_LISTS
) -> Configuration:
    """The configuration with its secrets looked up; ConfigurationError with every problem where there is one.

    `lakes` is the folder for the lakes of connectors that name none: `lakes/NAME`. `lists` are items of lists, by
    key, as the command line has them: tables are patterns there, in place of Debezium's expressions.
    """
    _require_few(properties)
    examination = Examination.of(properties, lists)
    parts = assembled(examination, lakes)
    if parts is None or examination.problems:
        raise ConfigurationError(examination.problems)
    warnings = [f"{key}: {each}" for key, several in examination.warnings.items() for each in several]
    return Configuration(
        name=parts.name,
        kind=parts.kind,
        dsn=parts.dsn,
        settings=parts.settings,
        source_options=parts.source_options,
        warnings=tuple(warnings),
        server=examination.text("topic.prefix") or parts.name,
    )


def read_settings(
    properties: Mapping[str, str], lake: LakeAddress, lists: Mapping[str, Sequence[str]] = NO_LISTS
) -> ConnectorSettings:
    """What of a configuration is not about a source; ConfigurationError with every problem where there is one."""
    examination = Examination.of(properties, lists)
    settings = settings_of(examination, lake)
    if examination.problems:
        raise ConfigurationError(examination.problems)
    return settings


def check(properties: Mapping[str, str]) -> list[PropertyCheck]:
    """Every key that there is, and every other one that is given. That a lake is named is not asked for."""
    _require_few(properties)
    examination = Examination.of(properties)
    assembled(examination, lakes=Path())
    names = [each.name for each in all_properties(properties) if not each.is_family]
    names += [key for key in properties if key not in names]
    return [_checked(examination, name) for name in names]


def _require_few(properties: Mapping[str, str]) -> None:
    """An unknown key is compared with every known one."""
    if len(properties) > KEYS_MAX:
        raise DefiniteError(f"a configuration has at most {KEYS_MAX} keys, not {len(properties)}", "leave some out")


def _checked(examination: Examination, name: str) -> PropertyCheck:
    properties = examination.properties
    known = property_of(name, properties)
    given = properties.get(name)
    default = None if known is None else known.default
    return PropertyCheck(
        name=name,
        property=known,
        value=default if given is None else shown(name, given, properties),
        is_given=given is not None,
        errors=tuple(examination.problems.get(name, ())),
        warnings=tuple(examination.warnings.get(name, ())),
        recommended_values=() if known is None else known.values or known.harmless,
    )
