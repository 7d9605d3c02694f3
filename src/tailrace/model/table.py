"""Tables as they travel: who they are, which shape they have, how a row is recognised."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from tailrace.model.table_pattern import TablePattern, exact_pattern

_PART = r"""(?:"((?:[^"]|"")+)"|([^."]+))"""


@dataclass(frozen=True, order=True)
class TableId:
    """A table of the source. Text form: `namespace.name`, a part with a dot or a quote in quotes. Another table has
    another text."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return _text(self.namespace, self.name)

    @classmethod
    def parse(cls, text: str) -> TableId:
        """The table of this text form. ValueError for what is none."""
        found = re.fullmatch(rf"{_PART}\.{_PART}", text)
        if found is None:
            raise ValueError(f"{text!r} is not a table: it looks like public.orders")
        quoted_namespace, namespace, quoted_name, name = found.groups()
        return cls(namespace or quoted_namespace.replace('""', '"'), name or quoted_name.replace('""', '"'))

    @property
    def argument(self) -> str:
        """A pattern that names this table alone, as a person can paste it into a command."""
        return shlex.quote(exact_pattern(str(self)))

    def matches(self, pattern: str) -> bool:
        """Whether a person's pattern (`public.*`, `orders`) names it; see `model.table_pattern`."""
        return TablePattern.of(pattern).matches(self.namespace, self.name, str(self))


@lru_cache(1 << 14)
def _text(namespace: str, name: str) -> str:
    """Kept, because tables are known by it in files, and looked for there all the time."""
    return f"{_part(namespace)}.{_part(name)}"


def _part(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"' if "." in name or '"' in name else name


@dataclass(frozen=True)
class Column:
    """One column: its lake type, and the source's own type for people and for error texts."""

    name: str
    type: str
    """Lake type in Spark SQL's words: `boolean smallint int bigint float double decimal(p,s) string
    binary date timestamp timestamp_ntz`."""
    source_type: str
    """As the source writes it: `numeric(12,2)`, `order_status`, `text[]`."""
    number: int = field(default=0, compare=False)
    """The source's own number for the column, which a rename keeps and a new column never gets; 0 if it has none."""
    source_name: str = field(default="", compare=False)
    """What the source calls it, where that is not its name here (`model.rows.column_names`)."""

    @property
    def in_source(self) -> str:
        """What the source calls it."""
        return self.source_name or self.name

    @property
    def identity(self) -> int | str:
        """What tells the column from every other one that the table ever had."""
        return self.number or self.name


@dataclass(frozen=True)
class TableSchema:
    """One version of a table's shape. Equal schemas decode equal bytes equally."""

    table: TableId
    relation: int
    """The source's own number for the table; log records carry it."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns that identify a row in every change the source sends. Empty for a table without a key: every update and
    delete then carries the whole old row, or the source sends inserts and truncates alone."""
    definition: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """What the source knew of the table when it told this shape. Only the source reads it. JSON."""
    made_by: int = field(default=0, compare=False, repr=False)
    """Of a part: the transaction that filled it and may have made it, too; 0 if another one made it. What else that
    one did to all of the part's rows is not in the log."""
    part_of: int = field(default=0, compare=False, repr=False)
    """The table under whose number this one's changes are sent; 0 if under its own."""

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def key_identities(self) -> frozenset[int | str]:
        return frozenset(column.identity for column in self.columns if column.name in self.key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def to_json(self) -> bytes:
        fields = asdict(self)
        if not self.made_by:
            del fields["made_by"]
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, payload: bytes) -> TableSchema:
        fields = json.loads(payload)
        return cls(
            table=TableId(**fields["table"]),
            relation=fields["relation"],
            columns=tuple(Column(**column) for column in fields["columns"]),
            key=tuple(fields["key"]),
            definition=fields["definition"],
            made_by=fields.get("made_by", 0),
            part_of=fields.get("part_of", 0),
        )
