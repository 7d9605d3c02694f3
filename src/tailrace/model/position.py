"""SourcePosition: a point in a source's history, as all code outside the source sees it.

    ordinal    an LSN of Postgres, a binlog file and offset of MySQL, an SCN of Oracle: as one number that orders
    detail     a GTID set, the SCNs of several redo threads: bytes that only the source reads

Everything outside `source/` compares ordinals and passes the rest on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class SourcePosition:
    """Ordered by `ordinal` alone. The source formats and parses it for people."""

    ordinal: int
    """Unsigned, 64 bits. 0 lies before everything."""
    time_us: int = field(default=0, compare=False)
    """When the source committed there: microseconds since 1970-01-01 UTC; 0 if unknown."""
    detail: bytes = field(default=b"", compare=False)

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {"ordinal": self.ordinal, "time_us": self.time_us, "detail": self.detail.hex()}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SourcePosition:
        """ValueError, KeyError or TypeError for anything that `to_fields` did not make."""
        return cls(int(fields["ordinal"]), int(fields["time_us"]), bytes.fromhex(fields["detail"]))


START = SourcePosition(0)
