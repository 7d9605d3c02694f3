"""Cut: all tables as of one commit of the source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.model.lsn import Lsn


@dataclass(frozen=True)
class PublishedCut:
    """A commit at which every table has a version of its own in the lake."""

    seq: int
    """The last transaction of the log it contains; 0 before the first."""
    lsn: Lsn
    """That transaction's commit record, or the snapshot's position."""
    time_us: int
    versions: Mapping[str, int]
    """Lake version of each table, by `namespace.name`."""

    def to_json(self) -> str:
        fields = {"seq": self.seq, "lsn": str(self.lsn), "time_us": self.time_us, "versions": dict(self.versions)}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> PublishedCut:
        fields = json.loads(line)
        return cls(fields["seq"], Lsn.parse(fields["lsn"]), fields["time_us"], fields["versions"])
