"""Sources in memory, over one database that is a list of tables. Configurations are read as a server reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tailrace.configuration.reading import Configuration, read, unredacted
from tailrace.model.table import TableId
from tailrace.server.sql.sources import (
    NameTakenError,
    NoSuchSourceError,
    SourceConfig,
    SourceStatus,
    SourceTableStatus,
    StaleVersionError,
)


class MemorySources:
    """One thread."""

    def __init__(self, tables: Sequence[TableId] = ()) -> None:
        self.database = tables
        self.stored: dict[str, SourceConfig] = {}
        self.cascades: list[str] = []
        self.edits_by_others = 0
        """So many times more, another request comes first."""

    def statuses(self) -> list[SourceStatus]:
        return [
            SourceStatus(
                name, "RUNNING", None, [SourceTableStatus(str(table), "live") for table in self.followed(name)]
            )
            for name in sorted(self.stored)
        ]

    def followed(self, name: str) -> list[TableId]:
        """As a connector would choose them."""
        settings = self.configuration(name, self.stored[name].properties).settings
        return [
            table
            for table in self.database
            if (not settings.tables or any(table.matches(each) for each in settings.tables))
            and not any(table.matches(each) for each in settings.exclude)
        ]

    def configuration(self, name: str, properties: Mapping[str, str]) -> Configuration:
        return read({"lake.path": str(Path("lakes") / name)} | dict(properties))

    def config(self, name: str) -> SourceConfig | None:
        return self.stored.get(name)

    def create(self, name: str, properties: Mapping[str, str]) -> Sequence[str]:
        if name in self.stored:
            raise NameTakenError(name)
        found = self.configuration(name, properties)
        self.stored[name] = SourceConfig(dict(properties), 1)
        return found.warnings

    def alter(self, name: str, properties: Mapping[str, str], version: int) -> Sequence[str]:
        if name not in self.stored:
            raise NoSuchSourceError(name)
        if self.edits_by_others:
            self.edits_by_others -= 1
            was = self.stored[name]
            edited = dict(was.properties) | {"lake.retain": f"{self.edits_by_others + 1}d"}
            self.stored[name] = SourceConfig(edited, was.version + 1)
        if self.stored[name].version != version:
            raise StaleVersionError(name)
        properties = unredacted(properties, self.stored[name].properties)
        found = self.configuration(name, properties)
        self.stored[name] = SourceConfig(dict(properties), version + 1)
        return found.warnings

    def drop(self, name: str, *, cascade: bool) -> Sequence[str]:
        if name not in self.stored:
            raise NoSuchSourceError(name)
        del self.stored[name]
        self.cascades += [name] if cascade else []
        return [f"dropped the slot of {name}"] if cascade else []
