"""What a statement is carried out on: sources by name. The server has them; a test may have them in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tailrace.errors import DefiniteError


@dataclass(frozen=True)
class SourceTableStatus:
    """One table of a source at one moment."""

    table: str
    state: str
    problem: str | None = None


@dataclass(frozen=True)
class SourceStatus:
    """One source at one moment."""

    name: str
    state: str
    problem: str | None = None
    tables: Sequence[SourceTableStatus] = ()
    """None as long as the source has not been looked at."""


@dataclass(frozen=True)
class SourceConfig:
    """The properties of a source as they are stored, secrets and all, and which version of them this is."""

    properties: Mapping[str, str] = field(repr=False)
    version: int


class StaleVersionError(DefiniteError):
    """The properties were changed by another request since they were read. Nothing was done."""


class NameTakenError(DefiniteError):
    """There is a source of this name. Nothing was done."""


class NoSuchSourceError(DefiniteError):
    """There is no source of this name, or no longer."""


class Sources(Protocol):
    """All sources of one server. What a method did is durable when it returns; what it refuses is not done at all."""

    def statuses(self) -> Sequence[SourceStatus]:
        """Every source, by name."""
        ...

    def config(self, name: str) -> SourceConfig | None:
        """None where there is no such source."""
        ...

    def create(self, name: str, properties: Mapping[str, str]) -> Sequence[str]:
        """Make a source, which begins at once. What there is to say about it. `NameTakenError`, or a
        `ConfigurationError` with every problem."""
        ...

    def alter(self, name: str, properties: Mapping[str, str], version: int) -> Sequence[str]:
        """Other properties, with which the source begins again; secrets that are given as they are shown stay what they
        were. `StaleVersionError` if `version` is not the stored one, `NoSuchSourceError`, or a `ConfigurationError`."""
        ...

    def drop(self, name: str, *, cascade: bool) -> Sequence[str]:
        """End a source and forget it; with `cascade`, also what it holds in its database: what was dropped there.
        `NoSuchSourceError` where there is none."""
        ...
