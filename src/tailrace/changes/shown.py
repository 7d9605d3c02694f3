"""The changes of one transaction for a person: what was done where and, only if that is asked for, with which values.

A page at a time: of a transaction that is larger than memory, one frame of the log is in memory. A record is shown with
the shape that it was logged with, so nothing that a table became later hides what it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.shape import version_of
from tailrace.errors import TailraceError
from tailrace.log.playback.play import PLAYBACK, read
from tailrace.log.reader import LogReader
from tailrace.log.schema_versions import SchemaVersion
from tailrace.model.change import BEFORE, OP, UNCHANGED, Decode
from tailrace.model.kind import Kind
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE
from tailrace.model.table import TableSchema

SHOWN_KINDS = (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE, Kind.UNSENT)
_WITH_ROWS = (Kind.INSERT, Kind.UPDATE, Kind.DELETE)
RANGE_BYTES = 8 << 20
PAYLOAD_BYTES_MAX = 1 << 20
"""Values of a larger record are not shown."""
VALUE_CHARACTERS_MAX = 1000
COLUMNS_MAX = 200
PAGE_CHARACTERS_MAX = 1 << 20
"""Of all values together; those of further changes are not shown."""
TOO_LARGE = "its values are too large to be shown here"

Values = Mapping[str, str | None]


@dataclass(frozen=True)
class ShownChange:
    """One record, and what of its values is shown."""

    position: int
    kind: Kind
    relation: int
    bytes: int
    before: Values | None = None
    """The old row or its key, as far as the source sent it."""
    after: Values | None = None
    unchanged: tuple[str, ...] = ()
    """Columns that the source left out because they had not changed."""
    cut_short: tuple[str, ...] = ()
    """Columns whose value is longer than what is shown, or not shown at all."""
    problem: str | None = None
    """Why values that were asked for are not there."""


def page_of(reader: LogReader, seq: int, after: int, limit: int, relations: Collection[int] | None = None) -> pa.Table:
    """The first records of a transaction after a position that change something, at most this many, as `PLAYBACK`."""
    found: list[pa.RecordBatch] = []
    missing = limit
    for each in reader.ranges(seq - 1, seq, RANGE_BYTES, relations):
        if each.position_stop <= after + 1:
            continue
        for batch in read(reader.path, each, seq - 1, seq, relations, SHOWN_KINDS):
            chosen = batch.filter(pc.greater(batch.column("position"), after)).slice(0, missing)
            found.append(chosen)
            missing -= chosen.num_rows
            if missing <= 0:
                return pa.Table.from_batches(found, PLAYBACK)
    return pa.Table.from_batches(found, PLAYBACK)


def without_values(page: pa.Table) -> list[ShownChange]:
    sizes = pc.binary_length(page.column("payload")).to_pylist()
    columns = (page.column(name).to_pylist() for name in ("position", "kind", "relation"))
    return [
        ShownChange(position, Kind(kind), relation, size)
        for position, kind, relation, size in zip(*columns, sizes, strict=True)
    ]


def with_values(reader: LogReader, page: pa.Table, decode: Decode) -> list[ShownChange]:
    """The same, as far as there is room for their values."""
    shapes = {relation: reader.schemas(relation) for relation in pc.unique(page.column("relation")).to_pylist()}
    found, room = [], PAGE_CHARACTERS_MAX
    for number, change in enumerate(without_values(page)):
        if change.kind is Kind.UNSENT:
            payload = page.column("payload")[number].as_py()
            found.append(replace(change, problem=payload[:VALUE_CHARACTERS_MAX].decode("utf-8", "replace")))
        elif change.kind not in _WITH_ROWS:
            found.append(change)
        elif change.bytes > PAYLOAD_BYTES_MAX or room <= 0:
            found.append(replace(change, problem=TOO_LARGE))
        else:
            row = _Row(change)
            row.read(page.slice(number, 1), shapes[change.relation], decode)
            room -= row.characters
            found.append(row.change)
    return found


@dataclass
class _Row:
    """The values of one change, as they are made."""

    change: ShownChange
    characters: int = 0
    cut_short: set[str] = field(default_factory=set)

    def read(self, record: pa.Table, versions: list[SchemaVersion], decode: Decode) -> None:
        (which,) = version_of(versions, record.column("xid").to_numpy(), record.column("position").to_numpy())
        if which < 0:
            self.change = replace(self.change, problem="the log no longer has the shape that its table had")
            return
        schema = versions[which].schema
        try:
            batch = decode(record.combine_chunks().to_batches()[0], schema)
        except TailraceError as error:
            self.change = replace(self.change, problem=error.message)
            return
        self.change = self._filled(batch, schema)

    def _filled(self, batch: pa.RecordBatch, schema: TableSchema) -> ShownChange:
        unchanged = tuple(batch.column(UNCHANGED)[0].as_py() or ())
        old = batch.column(BEFORE)[0].as_py()
        is_gone = batch.column(OP)[0].as_py() == "d"
        after = None if is_gone else {n: batch.column(n)[0].as_py() for n in schema.names if n not in unchanged}
        exact_before = _exact(batch, EXACT_BEFORE)
        before = self._texts(_as_sent(old, exact_before, schema), exact_before)
        shown = self._texts(after, _exact(batch, EXACT))
        cut = tuple(sorted(self.cut_short))
        return replace(self.change, before=before, after=shown, unchanged=unchanged, cut_short=cut)

    def _texts(self, row: Mapping[str, Any] | None, exact: Mapping[str, str]) -> Values | None:
        if row is None:
            return None
        self.cut_short.update(list(row)[COLUMNS_MAX:])
        return {name: self._text(name, exact.get(name, row[name])) for name in list(row)[:COLUMNS_MAX]}

    def _text(self, name: str, value: Any) -> str | None:
        text = _text_of(value)
        if text is None:
            return None
        if len(text) > VALUE_CHARACTERS_MAX:
            self.cut_short.add(name)
        self.characters += min(len(text), VALUE_CHARACTERS_MAX)
        return text[:VALUE_CHARACTERS_MAX]


def _as_sent(old: Mapping[str, Any] | None, exact: Mapping[str, str], schema: TableSchema) -> Mapping[str, Any] | None:
    """Of a row of which nothing but its key is known, the key: the source mostly sends no more."""
    if old is None or not schema.key or exact:
        return old
    is_key = all(value is None for name, value in old.items() if name not in schema.key)
    return {name: old[name] for name in schema.key} if is_key else old


def _exact(batch: pa.RecordBatch, name: str) -> Mapping[str, str]:
    index = batch.schema.get_field_index(name)
    return {} if index < 0 else dict(batch.column(index)[0].as_py() or ())


def _text_of(value: Any) -> str | None:
    """As a person reads it. Numbers are texts, too: JSON has not all of them."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"\\x{value.hex()}"
        case list() | dict():
            return json.dumps(value, default=_text_of, ensure_ascii=False)
    return str(value)
