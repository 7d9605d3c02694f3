"""Cut: all tables as of one commit of the source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.model.position import SourcePosition

_TABLES, _PUBLISHED = ',"tables":{', '},"published":'
"""What stands before and after the tables in a line of `to_json`."""


@dataclass(frozen=True)
class CutTable:
    """One table in a cut."""

    version: int
    """The lake's version of it."""
    copy: int
    """Which copy of the table the version belongs to: to readers, a table that was copied again is another."""
    seq: int
    """The transaction in the version's stamp, 0 for a snapshot's. A lake may reuse a version's number: the
    version that is meant has this copy and this transaction in its stamp."""


@dataclass(frozen=True)
class PublishedCut:
    """A commit at which every table that is named has a version of its own in the lake."""

    seq: int
    """The last transaction of the log it contains; 0 before the first."""
    position: SourcePosition
    """That transaction's commit, or the snapshot's position."""
    tables: Mapping[str, CutTable]
    """By `namespace.name`. A table that is in error or being copied is not there."""
    published_us: int = 0
    """When it was recorded, by the connector's clock. How long it is kept counts from here."""

    @property
    def copies(self) -> dict[str, int]:
        """Which copy of each table it shows."""
        return {name: table.copy for name, table in self.tables.items()}

    def to_json(self) -> str:
        tables = {name: [table.version, table.copy, table.seq] for name, table in self.tables.items()}
        fields = {
            "seq": self.seq,
            "position": self.position.to_fields(),
            "tables": tables,
            "published": self.published_us,
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> PublishedCut:
        """ValueError, KeyError or TypeError for a line that `to_json` did not write."""
        fields = json.loads(line)
        tables = {name: CutTable(*numbers) for name, numbers in fields["tables"].items()}
        position = SourcePosition.from_fields(fields["position"])
        return cls(fields["seq"], position, tables, fields.get("published", position.time_us))


@dataclass(frozen=True)
class CutOutline:
    """A published cut without its tables: a lake may keep thousands of cuts of a thousand tables each."""

    seq: int
    position: SourcePosition
    published_us: int

    @classmethod
    def from_json(cls, line: str) -> CutOutline:
        """Of a line of `PublishedCut.to_json`, whose tables are not read. ValueError, KeyError or TypeError for another
        line."""
        begin, end = line.find(_TABLES), line.rfind(_PUBLISHED)
        if not 0 < begin < end:
            whole = PublishedCut.from_json(line)
            return cls(whole.seq, whole.position, whole.published_us)
        # A quote in a table's name is escaped, so neither text is part of one.
        fields = json.loads(line[:begin] + line[end + 1 :])
        return cls(fields["seq"], SourcePosition.from_fields(fields["position"]), fields["published"])
