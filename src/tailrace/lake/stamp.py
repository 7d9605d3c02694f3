"""Stamp: how far a lake table has got, carried by the very commit that got it there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tailrace.model.cut import CutTable
from tailrace.model.position import SourcePosition


@dataclass(frozen=True)
class Stamp:
    """A table's position in the source's history.

    A snapshot knows only its source position, and the source says which transactions it shows. From the first
    batch on, `seq` is the last transaction of the log that the table contains.
    """

    position: SourcePosition
    relation: int
    """The source's number for the table: one of the same name with another number is another table."""
    copy: int
    """Which copy of the table this belongs to."""
    seq: int | None = None
    growth: Any = None
    """How far a copy by windows has got; None where the table has all its rows. JSON."""

    def is_of(self, named: CutTable) -> bool:
        """Whether the version with this stamp is the one that a cut named: numbers of versions are given again."""
        return (self.copy, self.seq or 0) == (named.copy, named.seq)

    def to_json(self) -> str:
        fields: dict[str, Any] = {
            "position": self.position.to_fields(),
            "relation": self.relation,
            "copy": self.copy,
            "seq": self.seq,
        }
        if self.growth is not None:
            fields["growth"] = self.growth
        return json.dumps({"tailrace": fields})

    @classmethod
    def from_json(cls, text: str | None) -> Stamp | None:
        """None when the commit is another writer's: an optimise, a manual change."""
        try:
            fields = json.loads(text or "")["tailrace"]
            position = SourcePosition.from_fields(fields["position"])
            return cls(position, fields["relation"], fields["copy"], fields["seq"], fields.get("growth"))
        except (ValueError, KeyError, TypeError):
            return None
