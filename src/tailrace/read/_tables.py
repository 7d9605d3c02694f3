"""The tables of one cut, each opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from tailrace.changes.logged_table import touched_shape
from tailrace.changes.shape import require_same
from tailrace.changes.tail import Tail, read_tail
from tailrace.errors import DefiniteError
from tailrace.lake.door import LakeTable
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.change import row_schema
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.following import steps
from tailrace.model.position import SourcePosition
from tailrace.model.rows.exact import EXACT_TYPE, exact_of, lake_column, ours
from tailrace.model.table import Column, TableId
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.read._engine import Frame, ReadEngine
from tailrace.read._layers import layers
from tailrace.read.vouched import Reading, is_same, refusal
from tailrace.source.kinds import codec_of


class CutTables(Mapping[str, Frame]):
    """Tables of an engine by `namespace.name`. One thread."""

    def __init__(
        self,
        engine: ReadEngine[Frame],
        home: LakeHome,
        reader: LogReader | None,
        base: PublishedCut,
        seq: int,
        *,
        is_vouched: bool,
    ) -> None:
        """`is_vouched`: only what looks at the source have vouched for is shown. Otherwise the caller looks. Without
        a `reader` of the log, `seq` is that of the base."""
        record = home.source()
        assert record is not None
        self._engine, self._home, self._reader, self._base, self._seq = engine, home, reader, base, seq
        self._is_vouched = is_vouched
        self._codec = codec_of(record.kind)
        self._format = format_named(record.format)
        self._records = {str(table): (table, each) for table, each in home.tables.load().items()}
        self._opened: dict[str, Frame] = {}
        self._followed_to: dict[str, list[Column]] = {}
        """Columns of tables with changes laid over."""

    @property
    def known(self) -> list[TableId]:
        """Every table that the lake knows of, also those that this cut cannot show."""
        return [table for table, _ in self._records.values()]

    @property
    def copies(self) -> dict[str, int]:
        """Which copy of each table is shown: cuts of one commit that differ in it may differ in their rows."""
        return self._base.copies

    def __iter__(self) -> Iterator[str]:
        return iter(self._base.tables)

    def __len__(self) -> int:
        return len(self._base.tables)

    def __getitem__(self, name: str) -> Frame:
        """A definite error, with the reason, for a table that this cut cannot show. KeyError for an unknown one."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def columns(self, name: str) -> list[Column]:
        """A table's columns here, with what the lake knows of the source's. Errors as for the table itself."""
        self[name]
        if name in self._followed_to:
            return self._followed_to[name]
        table, _ = self._records[name]
        return self._format.table(self._home.place_of(table)).columns(self._base.tables[name].version)

    def _open(self, name: str) -> Frame:
        if name not in self._records:
            raise KeyError(name)
        table, record = self._records[name]
        if name not in self._base.tables:
            raise self._missing(name, record)
        named = self._base.tables[name]
        stored = self._format.table(self._home.place_of(table))
        relation = self._require(stored, name, named) or (record.relation if record.copy == named.copy else None)
        reading = self._reading(name, record)
        is_later = self._base.seq < self._seq
        present = stored.columns(named.version) if is_later or reading is not None else []
        if is_later and reading is not None and (void := reading.void()) is not None:
            raise self._refusal(reading, void)
        tail = self._tail(table, record, named, present, relation)
        if reading is not None:
            self._require_shape(reading, stored, present, tail, relation)
        frame = self._engine.open(stored, named.version, keep=self._base.seq < self._seq)
        if tail is None:
            return frame
        is_odd = ours(present) is not None or exact_of(tail.states) is not None
        exact = lake_column(tail.schema.names) if is_odd else None
        self._followed_to[name] = [*tail.schema.columns, *([exact] if exact else [])]
        start = self._followed(frame, present, tail, exact)
        name_of_exact = exact.name if exact else None
        over = layers(tail.states, tail.schema, lambda keys: self._engine.rows_of(start, keys), name_of_exact)
        return self._engine.laid_over(start, over)

    def _reading(self, name: str, record: TableRecord) -> Reading | None:
        """None where nothing can be wrong. What a cut has is right, but for columns that may have been renamed just
        before it: a table takes its new shape at the next cut."""
        if not self._is_vouched:
            return None
        if self._reader is not None and self._base.seq < self._seq:
            return Reading(name, record, self._base, self._reader.position_of(self._seq).ordinal)
        reading = Reading(name, record, self._base, self._base.position.ordinal)
        return reading if reading.reshaped() is not None else None

    def _refusal(self, reading: Reading, ended: Ended) -> DefiniteError:
        return refusal(reading, ended, self._home.cuts, lambda each: self._codec.format(SourcePosition(each)))

    def _require_shape(
        self, reading: Reading, stored: LakeTable, present: list[Column], tail: Tail | None, relation: int | None
    ) -> None:
        """A definite error unless the table is known to have had just these columns at the commit."""
        at = list(tail.schema.columns) if tail is not None else present
        move = reading.reshaped()
        if move is None:
            if tail is not None and steps(present, tail.schema):
                raise self._refusal(reading, Ended(reading.named.copy, self._base.position.ordinal))
            return
        try:
            after = stored.columns(move.version or 0)
        except DefiniteError:
            # Deleted, as no cut has it any more.
            raise self._refusal(reading, move) from None
        is_moved = is_same(at, after) and not (reading.is_before(move) and is_same(at, present))
        if not is_moved and not (is_same(at, present) and self._is_next_alike(reading.name, relation, present)):
            raise self._refusal(reading, move)

    def _is_next_alike(self, name: str, relation: int | None, columns: list[Column]) -> bool:
        """Whether the table's next change, at the commit or after it, still came with these columns."""
        if self._reader is None or relation is None:
            return False
        seq = self._reader.next_of(relation, self._seq)
        if seq is None:
            return False
        shape = touched_shape(self._reader, self._records[name][0], (seq - 1, seq), self._codec.decode, relation)
        return shape is not None and all(is_same(each.schema.columns, columns) for each in shape.versions)

    def _tail(
        self, table: TableId, record: TableRecord, named: CutTable, present: list[Column], relation: int | None
    ) -> Tail | None:
        """What is to be laid over the version that the cut names."""
        if self._reader is None:
            return None
        between = self._base.seq, self._seq
        shape = touched_shape(self._reader, table, between, self._codec.decode, relation)
        if shape is None:
            return None
        tail = read_tail(self._reader, shape, between, present, self._engine.tail_bytes_max)
        if tail is not None and record.copy == named.copy:
            require_same(tail.shape, record.definition, self._codec.why_copy)
        return tail

    def _followed(self, frame: Frame, present: list[Column], tail: Tail, exact: Column | None) -> Frame:
        """The base in the tail's shape, with the column `exact`. `ResyncError` where it cannot follow."""
        needed = steps(present, tail.schema)
        shape = row_schema(tail.schema)
        if exact is not None:
            shape = shape.append(pa.field(exact.name, EXACT_TYPE))
        if tail.truncated:
            return self._engine.of_arrow(shape.empty_table())
        if not needed and (exact is None) == (ours(present) is None):
            return frame
        names = [column.name for column in present if column.name not in needed.drop]
        kept = {needed.rename.get(name, name): name for name in names}
        return self._engine.shaped(frame, {name: kept.get(name) for name in shape.names}, shape)

    def _require(self, stored: LakeTable, name: str, named: CutTable) -> int | None:
        """A definite error unless the lake has the very version that the cut names. Where the lake no longer knows its
        stamp, its number must do. Returns the source's number for the table that it is of, if the stamp says it."""
        found = stored.version(named.version)
        if found is None or (found.stamp is not None and not found.stamp.is_of(named)):
            message = f"the version of table {name} that this cut names is gone from the lake"
            raise DefiniteError(message, "read a later cut; tailrace sync makes one", name)
        return found.stamp.relation if found.stamp is not None else None

    def _missing(self, name: str, record: TableRecord) -> DefiniteError:
        """Why the cut does not have the table, and how to read what there is of it."""
        at = self._base.position
        having = [cut for cut in self._home.cuts.all() if name in cut.tables]
        before = [self._codec.format(cut.position) for cut in having if cut.position <= at]
        after = [self._codec.format(cut.position) for cut in having if cut.position > at]
        if after:
            hints = [f"ask for {before[-1]} or earlier"] if before else []
            hint = ", or ".join([*hints, f"ask for {after[0]} or later"])
            return DefiniteError(f"the lake does not have table {name} as of {self._codec.format(at)}", hint, name)
        reason = f": {record.reason}" if record.reason else ""
        if record.state is TableState.LIVE:
            reason = ", but it could not be published up to this cut; its connector tries again and says why"
        hints = [record.hint] if record.hint else []
        hints += [f"its last good state: --as-of {before[-1]}"] if before else []
        return DefiniteError(f"table {name} is {record.state}{reason}", "; ".join(hints) or None, name)
