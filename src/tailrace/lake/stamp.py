"""Stamp: how far a lake table has got, carried by the very commit that got it there."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tailrace.model.lsn import Lsn


@dataclass(frozen=True)
class Stamp:
    """A table's position in the source's history.

    A snapshot knows only its LSN: it shows the commits whose record lies before `lsn`. From the
    first batch on, `seq` is the last transaction of the log that the table contains.
    """

    lsn: Lsn
    relation: int
    """The source's number for the table: one of the same name with another number is another table."""
    seq: int | None = None

    def to_json(self) -> str:
        return json.dumps({"tailrace": {"lsn": str(self.lsn), "relation": self.relation, "seq": self.seq}})

    @classmethod
    def from_json(cls, text: str | None) -> Stamp | None:
        """None when the commit is somebody else's: an optimise, a manual change."""
        try:
            fields = json.loads(text or "")["tailrace"]
            return cls(Lsn.parse(fields["lsn"]), fields["relation"], fields["seq"])
        except (ValueError, KeyError, TypeError):
            return None
