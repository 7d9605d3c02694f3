"""What a lake table says of its origin: how far it has got, in a stamp that is part of the very commit that got it
there, and which column of the source each of its columns copies, in their comments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from tailrace.model.cut import CutTable
from tailrace.model.position import SourcePosition
from tailrace.model.rows.exact import is_ours, lake_column
from tailrace.model.table import Column

_EXACT = "values that their columns cannot hold, as the source writes them (kept by tailrace)"
_COMMENT = re.compile(r"(.*) \(column (\d+)\)", re.DOTALL)


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


def column_comment(column: Column) -> str:
    """What a lake column says of its origin: the source's type and the source's number for it. So a change of shape is
    noticed even if it happened before the table's first change was logged."""
    return _EXACT if is_ours(column) else f"{column.source_type} (column {column.number})"


def commented_column(name: str, lake_type: str, text: str) -> Column:
    """A lake column with what its comment says of its origin."""
    if text == _EXACT:
        return replace(lake_column(()), name=name)
    match = _COMMENT.fullmatch(text)
    source_type, number = (match.group(1), int(match.group(2))) if match else ("", 0)
    return Column(name, lake_type, source_type, number)
