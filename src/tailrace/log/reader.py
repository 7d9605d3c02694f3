"""The reader: what is durable in a log, seen from any process.

It takes no lock and never waits for the writer, nor does the writer wait for it. It sees finished transactions only,
and only durable ones, because the index it reads is written after the segments are synced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log import weights
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import load_manifest, log_number, segment_path
from tailrace.log.files.record import Array
from tailrace.log.files.segment import SegmentGoneError
from tailrace.log.index.details import detail_column, split_details
from tailrace.log.index.head import Head, HeadFile
from tailrace.log.index.transactions import PORTION_ROWS, T, TransactionIndex, steady, transaction_table
from tailrace.log.ledger.ledger import Base
from tailrace.log.playback.play import with_undos
from tailrace.log.playback.ranges import ByteRange, no_longer, plan
from tailrace.log.schema_versions import SchemaVersion, SchemaVersions
from tailrace.model.position import SourcePosition


class LogReader:
    """A log as of the last `refresh`. Cheap to make; one thread."""

    def __init__(self, path: Path, portion_rows: int = PORTION_ROWS) -> None:
        """DefiniteError when there is no log at `path`. Rows of the index are read a portion at a time."""
        manifest = load_manifest(path)
        self.path = path
        self.identity: Mapping[str, str] = manifest.identity
        self.id = manifest.id
        """Changes when the log is wiped."""
        self._portion_rows = portion_rows
        self._shapes = SchemaVersions(path)
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
        return transaction_table(rows, lists)

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
        return weights.relations_in(self.portions(after, upto))

    def next_of(self, relation: int, seq: int) -> int | None:
        """The first transaction from `seq` on that touched a table."""
        return weights.first_of(relation, self.portions(seq - 1, self.head.seq))

    def weights(self, starts: Mapping[int, int], upto: int) -> dict[int, int]:
        """About how much of the log is each table's, by its number: of transactions after that of its start."""
        return weights.weigh_tables(starts, self.portions(min(starts.values(), default=upto), upto))

    def bytes_between(self, after: int, upto: int) -> int:
        """About how much these transactions weigh in the log."""
        return weights.weigh(self.portions(after, upto))

    def last_within(self, after: int, bytes_max: int) -> int:
        """The last transaction such that those after `after` up to it weigh about `bytes_max`; at least one more
        than `after`, if there is one."""
        fitting = weights.last_within(bytes_max, self.portions(after, self.head.seq))
        return max(fitting, min(after + 1, self.head.seq))

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
        return with_undos(self.path, self._look(lambda index: plan(index, rows, bytes_max, relations)), rows)

    def schemas(self, relation: int | None = None) -> list[SchemaVersion]:
        """Every shape that the log knows for its tables, or for one, by position; repetitions are left out."""
        return self._shapes.of(relation)

    def parts(self, relation: int) -> list[SchemaVersion]:
        """Every table whose changes came under the number of this one, as it was announced; some more than once."""
        return self._shapes.parts(relation)

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
            portion = min(upto, after + self._portion_rows)
            yield self._read(after, portion)
            after = portion

    def _require_seen(self, upto: int) -> None:
        if upto > self.head.seq:
            raise ValueError(f"transaction {upto} comes after the head, {self.head.seq}")

    def _look(self, look: Callable[[TransactionIndex], T]) -> T:
        self._index, found = steady(self._index, look)
        return found
