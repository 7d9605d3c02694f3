"""The reader: what is durable in a log, seen from any process.

It takes no lock and never waits for the writer, nor does the writer wait for it. It sees finished transactions only,
and only durable ones, because the index it reads is written after the segments are synced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log.consumers import Consumers
from tailrace.log.index.details import detail_column, split_details
from tailrace.log.index.head import Head, HeadFile
from tailrace.log.index.index import END_OF_MARKS, Mark, are_ended, list_owners, parse_marks, read_from
from tailrace.log.index.transactions import PORTION_ROWS, T, TransactionIndex, index_damage, steady
from tailrace.log.layout import index_path, load_manifest, log_number, segment_path, segment_positions
from tailrace.log.playback import pending_before
from tailrace.log.ranges import ByteRange, no_longer, plan
from tailrace.log.record import Array
from tailrace.log.segment import SegmentGoneError
from tailrace.log.write.ledger import Base
from tailrace.model.column_names import distinct
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
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
        # Older logs have the source's names, of which some may differ only in case.
        schema = distinct(TableSchema.from_json(mark.payload))
        return cls(mark.position, mark.relation, mark.xid, schema, mark.since)


class LogReader:
    """A log as of the last `refresh`. Cheap to make; one thread."""

    def __init__(self, path: Path) -> None:
        """DefiniteError when there is no log at `path`."""
        manifest = load_manifest(path)
        self.path = path
        self.identity: Mapping[str, str] = manifest.identity
        self.id = manifest.id
        """Another one when the log was wiped."""
        self._marks: dict[int, tuple[int, list[Mark]]] = {}
        self._seen: HeadFile | None = None
        self._index = TransactionIndex(path)
        self.head = Head(0, 0, 0, 0)
        self.refresh()

    def refresh(self) -> Head:
        """See what has become durable since."""
        found = HeadFile.load(self.path)
        if found is not None and found == self._seen:
            return self.head
        if found is None or found.log != log_number(self.id):
            self._require_same_log()
            found = None
        if found is None or self._seen is None or found.segment != self._seen.segment:
            self._index = TransactionIndex(self.path)
        visible = self._look(lambda index: self._visible(found, index)) if self._index.positions else self.head
        if visible.position >= self.head.position:
            self._seen, self.head = found, visible
        return self.head

    @property
    def oldest_seq(self) -> int:
        """The first transaction that is still wholly in the log; one more than the newest when there is none."""
        return self._look(lambda index: index.oldest_seq() if index.positions else 1)

    def transactions(self, after: int, upto: int) -> pa.Table:
        """Finished transactions with after < seq <= upto, in commit order.

        `changes` and `bytes` count what was logged, before aborted sub-transactions and undone changes are taken off.
        """
        self._require_seen(upto)
        rows, lists = self._look(lambda index: index.read(after, upto, with_details=True))
        lists, details = split_details(rows, lists)
        relations, aborted = _split(rows, lists)
        columns = {
            name: pa.array(np.ascontiguousarray(rows[name]))
            for name in (
                "seq",
                "xid",
                "commit_ordinal",
                "end_ordinal",
                "commit_time_us",
                "first_position",
                "commit_position",
            )
        }
        columns |= {name: pa.array(np.ascontiguousarray(rows[name])) for name in ("changes", "bytes")}
        columns["relations"] = relations.cast(pa.list_(pa.uint32()))
        columns["streamed"] = pa.array(rows["streamed"] != 0)
        columns["aborted"] = aborted
        columns["detail"] = detail_column(rows, details)
        return pa.table(columns)

    def position_of(self, seq: int) -> SourcePosition:
        """Where transaction `seq` committed, as its source gave it; the start of everything for 0.

        DefiniteError when the log no longer has it. It has the newest one always, and one before the oldest.
        """
        self._require_seen(seq)
        return self._look(lambda index: self._position_of(index, seq))

    def _position_of(self, index: TransactionIndex, seq: int) -> SourcePosition:
        base = index.header(index.positions[0]).base if index.positions else Base()
        if seq == base.seq:
            return base.last_commit
        if seq < base.seq:
            message = f"the log in {self.path} no longer knows transaction {seq}: its oldest is {base.seq + 1}"
            raise DefiniteError(message, "what was acknowledged is deleted; take a new snapshot")
        rows, words = index.read(seq - 1, seq, with_details=True)
        (detail,) = detail_column(rows, split_details(rows, words)[1]).to_pylist()
        return SourcePosition(int(rows["commit_ordinal"][0]), int(rows["commit_time_us"][0]), detail)

    def seq_at(self, ordinal: int) -> int:
        """The newest transaction that committed at or before `ordinal`; one before the oldest when none did."""
        return self._newest_at("commit_ordinal", ordinal)

    def seq_at_time(self, time_us: int) -> int:
        """The newest transaction such that it and all before it committed at or before this time."""
        return self._newest_at("time_max_us", time_us)

    def relations(self, after: int, upto: int) -> set[int]:
        """The tables that these transactions touched."""
        found: set[int] = set()
        for rows, lists in self.portions(after, upto):
            found.update(np.unique(lists[~list_owners(rows)[1]]).tolist())
        return found

    def next_of(self, relation: int, seq: int) -> int | None:
        """The first transaction from `seq` on that touched a table."""
        for rows, lists in self.portions(seq - 1, self.head.seq):
            owners, is_aborted = list_owners(rows)
            found = owners[~is_aborted][lists[~is_aborted] == relation]
            if len(found):
                return int(rows["seq"][found[0]])
        return None

    def weights(self, starts: Mapping[int, int], upto: int) -> dict[int, int]:
        """About how much of the log is each table's, by its number: of transactions after that of its start. Tables
        that they do not touch are left out. A transaction that touches several is shared out evenly."""
        found: dict[int, float] = {}
        wanted = np.array(sorted(starts), np.uint64)
        after = np.array([starts[int(each)] for each in wanted], np.int64)
        for rows, lists in self.portions(min(starts.values(), default=upto), upto):
            owners, is_aborted = list_owners(rows)
            owner, relation = owners[~is_aborted], lists[~is_aborted]
            place = np.minimum(wanted.searchsorted(relation), len(wanted) - 1)
            chosen = (wanted[place] == relation) & (rows["seq"][owner] > after[place])
            shares = (rows["bytes"] / np.maximum(1, rows["relations"]))[owner[chosen]]
            totals = np.bincount(place[chosen], weights=shares, minlength=len(wanted))
            counts = np.bincount(place[chosen], minlength=len(wanted))
            for number in np.flatnonzero(counts).tolist():
                found[int(wanted[number])] = found.get(int(wanted[number]), 0.0) + float(totals[number])
        return {relation: int(weight) for relation, weight in found.items()}

    def bytes_between(self, after: int, upto: int) -> int:
        """About how much these transactions weigh in the log."""
        return sum(int(rows["bytes"].sum()) for rows, _ in self.portions(after, upto))

    def last_within(self, after: int, bytes_max: int) -> int:
        """The last transaction such that those after `after` up to it weigh about `bytes_max`; at least one more
        than `after`, if there is one."""
        room, upto = bytes_max, min(after + 1, self.head.seq)
        for rows, _ in self.portions(after, self.head.seq):
            weights = np.cumsum(rows["bytes"])
            fitting = int(np.searchsorted(weights, room, side="right"))
            upto = max(upto, int(rows["seq"][0]) - 1 + fitting)
            if fitting < len(rows):
                break
            room -= int(weights[-1])
        return upto

    def ranges(
        self, after: int, upto: int, bytes_max: int, relations: Collection[int] | None = None
    ) -> list[ByteRange]:
        """Ranges of about equal size that together hold every record of these transactions and, if given, tables.

        DefiniteError when one of the transactions is not wholly here any more.
        """
        if after < upto and after + 1 < self.oldest_seq:
            raise no_longer(self.path, after + 1)
        ranges: list[ByteRange] = []
        for rows, _ in self.portions(after, upto):
            ranges += self._planned(rows, bytes_max, relations)
        return ranges

    def _planned(self, rows: Array, bytes_max: int, relations: Collection[int] | None) -> list[ByteRange]:
        ranges = self._look(lambda index: plan(index, rows, bytes_max, relations))
        return self._with_undos(ranges, rows) if (rows["undos"] > 0).any() else ranges

    def schemas(self, relation: int | None = None) -> list[SchemaVersion]:
        """Every shape that the log knows for its tables, or for one, by position; repetitions are left out."""
        in_force: dict[int, bytes] = {}
        found = []
        marks = (mark for mark in self._all_marks(Kind.SCHEMA) if relation is None or mark.relation == relation)
        for mark in sorted(marks, key=lambda mark: (mark.since, mark.position)):
            if mark.xid or in_force.get(mark.relation) != mark.payload:
                found.append(SchemaVersion.of(mark))
            in_force[mark.relation] = mark.payload
        return sorted(found, key=lambda version: version.position)

    def parts(self, relation: int) -> list[SchemaVersion]:
        """Every table whose changes came under the number of this one, as it was announced; some more than once."""
        ending = b'"part_of":%d}' % relation
        return [SchemaVersion.of(mark) for mark in self._all_marks(Kind.SCHEMA) if mark.payload.endswith(ending)]

    def acknowledge(self, name: str, seq: int) -> None:
        """Consumer `name` needs nothing up to `seq` any more; durable when this returns.

        ValueError for a transaction that has not been seen: it could not have been used.
        """
        self._require_seen(seq)
        self._require_same_log()
        Consumers(self.path).acknowledge(name, seq)

    def pin(self, name: str, after: int) -> None:
        """Keep every transaction after `after` until `unpin`; durable when this returns.

        DefiniteError when one of them is gone already.
        """
        Consumers(self.path).pin(name, after)
        self._index = TransactionIndex(self.path)
        if after + 1 < self.oldest_seq:
            self.unpin(name)
            raise no_longer(self.path, after + 1)

    def unpin(self, name: str) -> None:
        Consumers(self.path).unpin(name)

    def consumers(self) -> dict[str, int]:
        """What each consumer has acknowledged."""
        return Consumers(self.path).acknowledged()

    def _require_same_log(self) -> None:
        if load_manifest(self.path).id != self.id:
            raise DefiniteError(f"the log in {self.path} was wiped and begun again", "open it again")

    def _visible(self, found: HeadFile | None, index: TransactionIndex) -> Head:
        """The head, or as far as the index can be seen when a power cut has torn either."""
        seq = self.head.seq if found is None else found.head.seq
        try:
            started = index.header(index.positions[-1]).base.seq
            if found is not None and (seq in (0, started) or len(index.row(seq))):
                return found.head
        except SegmentGoneError:
            raise
        except DefiniteError:
            pass
        newest = index.newest()
        base = index.header(index.positions[-1]).base
        last = segment_path(self.path, index.positions[-1])
        if not last.exists():
            # Sealed and deleted while we looked: its index seems to end early because it is gone.
            raise SegmentGoneError(last)
        if newest == base.seq:
            return Head(newest, base.received.ordinal, base.position, 0)
        row = index.row(newest)
        return Head(newest, int(row["end_ordinal"][0]), int(row["commit_position"][0]) + 1, 0)

    def _newest_at(self, column: str, value: int) -> int:
        return self._look(lambda index: index.newest_at(column, value, self.head.seq) if index.positions else 0)

    def _read(self, after: int, upto: int) -> tuple[Array, Array]:
        self._require_seen(upto)
        return self._look(lambda index: index.read(after, upto))

    def portions(self, after: int, upto: int) -> Iterator[tuple[Array, Array]]:
        """Rows of the index with their lists, without details, bit by bit. DefiniteError when one is not there."""
        self._require_seen(upto)
        while after < upto:
            portion = min(upto, after + PORTION_ROWS)
            yield self._read(after, portion)
            after = portion

    def _require_seen(self, upto: int) -> None:
        if upto > self.head.seq:
            raise ValueError(f"transaction {upto} comes after the head, {self.head.seq}")

    def _look(self, look: Callable[[TransactionIndex], T]) -> T:
        self._index, found = steady(self._index, look)
        return found

    def _with_undos(self, ranges: list[ByteRange], rows: Array) -> list[ByteRange]:
        """The ranges with what is undone from after their ends. Reads the keys, from the last range to the first, of
        those that a transaction with undone changes crosses."""
        undoing = rows[rows["undos"] > 0]
        after, upto = int(rows["seq"][0]) - 1, int(rows["seq"][-1])
        done: list[ByteRange] = []
        pending: dict[tuple[int, int, int], int] = {}
        for byte_range in reversed(ranges):
            known = replace(byte_range, undos=tuple((*key, count) for key, count in pending.items()))
            done.append(known)
            start = byte_range.position
            crosses = (undoing["first_position"] < start) & (undoing["commit_position"] >= start)
            pending = pending_before(self.path, known, after, upto) if crosses.any() else {}
        return done[::-1]

    def _all_marks(self, kind: Kind) -> list[Mark]:
        """Marks of all segments; only what is new is read from the disk. In a sealed segment all must be whole."""
        positions = segment_positions(self.path)
        self._marks = {position: self._marks.get(position, (0, [])) for position in positions}
        for position, (offset, marks) in list(self._marks.items()):
            found = list(parse_marks(read_from(index_path(self.path, position, ".marks"), offset)))
            fresh = [mark for mark, _ in found if mark.kind != END_OF_MARKS]
            if position != positions[-1] and not are_ended(marks + [mark for mark, _ in found]):
                if segment_path(self.path, position).exists():
                    raise index_damage(self.path, position, ".marks", offset + (found[-1][1] if found else 0))
                del self._marks[position]  # Retention has removed it meanwhile.
                continue
            # The end mark is read again each time: a roll that did not succeed may have left one that is taken back.
            length = found[len(fresh) - 1][1] if fresh else 0
            self._marks[position] = (offset + length, marks + fresh)
        return [mark for _, marks in self._marks.values() for mark in marks if mark.kind == kind]


def _split(rows: Array, lists: Array) -> tuple[pa.ListArray, pa.ListArray]:
    """The relations and the aborted sub-transactions of each row."""
    _, is_aborted = list_owners(rows)
    parts = []
    for name, values in (("relations", lists[~is_aborted]), ("aborted", lists[is_aborted])):
        offsets = np.append(0, np.cumsum(rows[name])).astype(np.int32)
        parts.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)))
    return parts[0], parts[1]
