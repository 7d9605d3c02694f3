"""The shapes of tables as the log has them: every schema that a source announced, and from where on it is valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tailrace.log.files.layout import index_path, segment_path, segment_positions
from tailrace.log.index.index import END_OF_MARKS, Mark, are_ended, parse_marks, read_from
from tailrace.log.index.transactions import index_damage
from tailrace.model.kind import Kind
from tailrace.model.rows.column_names import distinct
from tailrace.model.table import TableSchema


@dataclass(frozen=True)
class SchemaVersion:
    """A table's shape from a position on: for transaction `xid` at once, for all others when that has committed."""

    position: int
    relation: int
    xid: int
    """0 for a shape that was in force where a segment starts."""
    schema: TableSchema
    since: int = 0
    """The position from which on it is valid for all transactions."""

    @classmethod
    def of(cls, mark: Mark) -> SchemaVersion:
        # Older logs have the source's names, and some of those may differ only in case.
        schema = distinct(TableSchema.from_json(mark.payload))
        return cls(mark.position, mark.relation, mark.xid, schema, mark.since)


class SchemaVersions:
    """The shapes in all segments of a log. What was read once is not read again. One thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._segments: dict[int, tuple[int, list[Mark]]] = {}
        """For each segment its marks, and where its file continues after them."""

    def of(self, relation: int | None = None) -> list[SchemaVersion]:
        """Every shape of all tables, or of one, by position; repetitions are left out."""
        in_force: dict[int, bytes] = {}
        versions = []
        marks = (mark for mark in self._marks() if relation is None or mark.relation == relation)
        for mark in sorted(marks, key=lambda mark: (mark.since, mark.position)):
            if mark.xid or in_force.get(mark.relation) != mark.payload:
                versions.append(SchemaVersion.of(mark))
            in_force[mark.relation] = mark.payload
        return sorted(versions, key=lambda version: version.position)

    def parts(self, relation: int) -> list[SchemaVersion]:
        """Every table whose changes came under the number of this one, as it was announced; some more than once."""
        ending = b'"part_of":%d}' % relation
        return [SchemaVersion.of(mark) for mark in self._marks() if mark.payload.endswith(ending)]

    def _marks(self) -> Iterator[Mark]:
        """Those of schemas. In a sealed segment all must be whole."""
        positions = segment_positions(self._path)
        self._segments = {position: self._segments.get(position, (0, [])) for position in positions}
        for position, (offset, marks) in list(self._segments.items()):
            read = list(parse_marks(read_from(index_path(self._path, position, ".marks"), offset)))
            fresh = [mark for mark, _ in read if mark.kind != END_OF_MARKS]
            if position != positions[-1] and not are_ended(marks + [mark for mark, _ in read]):
                if segment_path(self._path, position).exists():
                    raise index_damage(self._path, position, ".marks", offset + (read[-1][1] if read else 0))
                del self._segments[position]  # Retention has removed it meanwhile.
                continue
            # The end mark is read again each time: a roll that did not succeed may have left one that is taken back.
            length = read[len(fresh) - 1][1] if fresh else 0
            self._segments[position] = (offset + length, marks + fresh)
        return (mark for _, marks in self._segments.values() for mark in marks if mark.kind == Kind.SCHEMA)
