"""Any interleaving of transactions, flushes, rolls, retention, failures and crashes, against a list."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.log.crashing_disk import CrashingDisk, PowerCutError, fails_at
from tests.unit.log.memory_log import interpret
from tests.unit.log.records import IDENTITY, Record, batch, commit, in_memory, keepalive, point, schema

from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import segment_path, segment_positions
from tailrace.log.files.segment import SegmentReader
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.verify import verify
from tailrace.log.write.writer import LogBlockedError, LogOptions, LogWriter
from tailrace.model.kind import Kind

OPTIONS = LogOptions(segment_bytes_max=6000, write_ahead_bytes=700)
SEEDS = st.integers(0, 1 << 32)
CHANGES = [Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE, Kind.LOB_WRITE, Kind.XML_WRITE, Kind.MESSAGE]


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = in_memory()
        self.path = Path(self.folder.name) / "log"
        self.disk = CrashingDisk()
        self.records: list[Record] = []
        self.confirmed = 0
        self.next_xid = 1
        self.acknowledged: dict[str, int] = {}
        self.pinned: dict[str, int] = {}
        self.patch = pytest.MonkeyPatch()
        frames = {f"{module}.FRAME_BYTES_MAX": 1500 for module in ("playback.play", "write.recovery")}
        small = frames | {"files.record.FRAME_BYTES_MAX": 400, "index.transactions.PORTION_ROWS": 3}
        for constant, size in small.items():
            self.patch.setattr(f"tailrace.log.{constant}", size)

    @initialize()
    def open(self) -> None:
        self.writer = LogWriter.open(self.path, IDENTITY, OPTIONS, self.disk)

    def teardown(self) -> None:
        self.patch.undo()
        self.folder.cleanup()

    # What the source does

    @rule(seed=SEEDS, count=st.integers(1, 40), call=st.none() | st.integers(0, 6))
    def append(self, seed: int, count: int, call: int | None) -> None:
        """Records are taken, also when the disk has no room for them just now."""
        if call is not None:
            self.disk.fault = fails_at(call)
        self.writer.append(batch(self._invent_some(seed, count)))
        self.disk.fault = lambda operation: None

    @rule(seed=SEEDS, count=st.integers(1, 40), call=st.integers(0, 6))
    def cut_the_power_while_appending(self, seed: int, count: int, call: int) -> None:
        self.disk.fault = fails_at(call, PowerCutError())
        with suppress(PowerCutError):
            self.writer.append(batch(self._invent_some(seed, count)))
        self.disk.fault = lambda operation: None
        self.writer.close()
        self.disk.crash(_chooser(seed))
        self._recover()

    @rule(seed=SEEDS, count=st.integers(1, 20))
    def append_what_no_source_may_send(self, seed: int, count: int) -> None:
        """None of it is taken, neither now nor after a restart."""
        known, next_xid = len(self.records), self.next_xid
        fresh = self._invent_some(seed, count)
        with pytest.raises(ValueError, match="which has not begun"):
            self.writer.append(batch([*fresh, Record(Kind.INSERT, 1 << 40, relation=1, payload=b"x" * 900)]))
        del self.records[known:]
        self.next_xid = next_xid

    def _invent_some(self, seed: int, count: int) -> list[Record]:
        fresh = []
        chance = random.Random(seed)
        active = dict.fromkeys(interpret(self.records).active)
        for _ in range(count):
            record = self._invent(chance, list(active))
            if record.kind is Kind.BEGIN:
                active[record.xid] = None
            elif record.kind in (Kind.COMMIT, Kind.ROLLBACK):
                active.pop(record.xid, None)
            fresh.append(record)
            self.records.append(record)
        return fresh

    def _invent(self, chance: random.Random, active: list[int]) -> Record:
        """A record that a source might send next."""
        number = len(self.records)
        ordinal, relation, sub_xid = number + 1, chance.randint(1, 3), chance.choice([0, 0, 1, 2])
        what = chance.choices(["begin", "outside", "change", "control", "commit"], [2, 1, 6, 2, 2])[0]
        if what == "begin" or (what != "outside" and not active):
            if active and chance.random() < 0.2:
                return Record(Kind.BEGIN, chance.choice(active), ordinal=ordinal)
            self.next_xid += 1
            return Record(Kind.BEGIN, self.next_xid, ordinal=ordinal)
        if what == "outside":
            shape = schema(relation, *"abc"[: chance.randint(1, 3)]).payload
            xid = chance.choice([0, 0, *active])
            as_schema = Record(Kind.SCHEMA, xid, relation=relation, payload=shape, ordinal=ordinal)
            return chance.choice([as_schema, keepalive(ordinal, self._invent_detail(chance))])
        xid = chance.choice(active)
        if what == "commit":
            return commit(xid, ordinal, chance.randint(-(1 << 62), 1 << 62), self._invent_detail(chance))
        if what == "control":
            kinds = [Kind.ROLLBACK, Kind.ROLLBACK_SUB, Kind.UNDO, Kind.PREPARE]
            kind = chance.choices(kinds, [1, 1, 4, 1])[0]
            return Record(kind, xid, sub_xid, relation, ordinal=ordinal)
        payload = b"%d" % number * chance.choice([1, 10, 60])
        return Record(chance.choice(CHANGES), xid, sub_xid, relation, payload, ordinal)

    def _invent_detail(self, chance: random.Random) -> bytes:
        return chance.randbytes(chance.choice([0, 0, 1, 7, 8, 9, 300]))

    @rule()
    def abandon_active(self) -> None:
        # Their ordinal is the log's, not a number of ours, so they are read back by xid below.
        active = list(interpret(self.records).active)
        for xid in active:
            self.records.append(Record(Kind.ROLLBACK, xid, ordinal=len(self.records) + 1))
        if active:
            self.writer.append(batch(self.records[-len(active) :]))
        assert self.writer.active == {}

    # What the writer does

    @rule()
    def flush(self) -> None:
        self.writer.flush()
        self.confirmed = len(self.records)
        self._check_all()

    @rule()
    def roll(self) -> None:
        self.writer.roll()
        self.confirmed = len(self.records)

    @rule(call=st.integers(0, 30))
    def flush_on_a_full_disk(self, call: int) -> None:
        self.disk.fault = fails_at(call)
        try:
            self.writer.flush()
        except LogBlockedError:
            assert self.writer.blocked
            self.disk.fault = lambda operation: None
            self.writer.flush()
        self.disk.fault = lambda operation: None
        assert self.writer.blocked is None
        self.confirmed = len(self.records)

    @rule(seed=SEEDS)
    def restart_or_cut_the_power(self, seed: int) -> None:
        self.writer.close()
        if seed % 4:
            self.disk.crash(_chooser(seed))
        self._recover()

    @rule(seed=SEEDS, call=st.integers(0, 30), what=st.sampled_from(["flush", "flush", "roll", "retain"]))
    def cut_the_power_during(self, seed: int, call: int, what: str) -> None:
        self.disk.fault = fails_at(call, PowerCutError())
        try:
            getattr(self.writer, what)()
            self.confirmed = self.confirmed if what == "retain" else len(self.records)
        except PowerCutError:
            pass
        self.disk.fault = lambda operation: None
        self.writer.close()
        self.disk.crash(_chooser(seed))
        self._recover()

    def _recover(self) -> None:
        """Open again. What was confirmed is there, and of the rest a whole number of records from the front."""
        self.writer = LogWriter.open(self.path, IDENTITY, OPTIONS, self.disk)
        numbers = [number for segment in self._raw() for number in segment]
        everything_deleted = segment_positions(self.path)[0] > 0 and not numbers
        kept = self.confirmed if everything_deleted else numbers[-1] + 1 if numbers else 0
        assert self.confirmed <= kept <= len(self.records)
        del self.records[kept:]
        self.confirmed = kept
        meaning = interpret(self.records)
        assert self.writer.active.keys() == meaning.active.keys()
        assert self.writer.prepared.keys() == {xid for xid, each in meaning.active.items() if each.prepared}
        assert self.writer.head.seq == len(meaning.finished)
        self._check_all()

    # What consumers do

    @rule(name=st.sampled_from("ab"), share=st.floats(0, 1))
    def acknowledge(self, name: str, share: float) -> None:
        seq = int(self.writer.head.seq * share)
        Consumers(self.path, self.disk).acknowledge(name, seq)
        self.acknowledged[name] = max(seq, self.acknowledged.get(name, 0))
        assert LogReader(self.path).consumers() == self.acknowledged

    @rule(share=st.floats(0, 1))
    def pin(self, share: float) -> None:
        after = max(self._oldest_needed_seq() - 1, int(self.writer.head.seq * share))
        Consumers(self.path, self.disk).pin("read", after)
        self.pinned["read"] = after

    @rule()
    def unpin(self) -> None:
        Consumers(self.path, self.disk).unpin("read")
        self.pinned.clear()

    def _oldest_needed_seq(self) -> int:
        return min([*self.acknowledged.values(), *self.pinned.values()], default=0) + 1

    @rule()
    def retain(self) -> None:
        """Deletes all that is not needed, and nothing else."""
        before = segment_positions(self.path)
        self.writer.retain()
        # A segment that is large enough is sealed as well, which adds an empty one.
        after = [position for position in segment_positions(self.path) if position <= before[-1]]
        assert after == before[len(before) - len(after) :]
        if not self.acknowledged:
            assert after == before
            return
        meaning, durable = interpret(self.records), interpret(self.records[: self.confirmed])
        wanted = [t.first for t in durable.finished[self._oldest_needed_seq() - 1 :]]
        wanted += [t.first for m in (meaning, durable) for t in m.active.values()]
        needed = min([first for first in wanted if first < self.confirmed], default=self.confirmed)
        raw = self._raw()
        if before != after:
            assert not raw[0] or raw[0][0] <= needed
        if len(raw) > 1 and raw[0]:
            assert raw[0][-1] >= needed

    # What must hold

    def _raw(self) -> list[list[int]]:
        """The numbers of the records in each segment, read by Arrow alone."""
        segments = []
        for position in segment_positions(self.path):
            with SegmentReader(segment_path(self.path, position)) as segment:
                carried = segment.header()[0].carried
            segments.append([_number(record) for record in _records(segment_path(self.path, position))[carried:]])
        numbers = [number for segment in segments for number in segment]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True
        return segments

    @invariant()
    @precondition(lambda self: hasattr(self, "writer"))
    def the_head_counts_finished_transactions(self) -> None:
        meaning = interpret(self.records[: self.confirmed])
        assert self.writer.head.seq == len(meaning.finished)
        assert point(self.writer.last_commit) == meaning.last_commit
        assert point(self.writer.received) == meaning.received

    @rule()
    def verify(self) -> None:
        assert verify(self.path).problems == []

    @rule(low=st.floats(0, 1), high=st.floats(0, 1), relations=st.none() | st.sets(st.integers(1, 3)))
    def read_some(self, low: float, high: float, relations: set[int] | None) -> None:
        reader = LogReader(self.path, portion_rows=3)
        oldest, newest = reader.oldest_seq - 1, reader.head.seq
        after = oldest + int((newest - oldest) * low)
        upto = after + int((newest - after) * high)
        self._check(reader, after, upto, 5000, relations)

    def _check_all(self) -> None:
        reader = LogReader(self.path, portion_rows=3)
        meaning = interpret(self.records[: self.confirmed])
        assert reader.head.seq == len(meaning.finished)
        assert reader.oldest_seq == self._first_whole()
        for bytes_max in (1, 3000):
            self._check(reader, reader.oldest_seq - 1, reader.head.seq, bytes_max, None)
        self._check_index(reader, reader.oldest_seq - 1, reader.head.seq)
        newest = {version.relation: version.schema.to_json() for version in reader.schemas()}
        assert newest.keys() == meaning.in_force.keys()

    def _check(self, reader: LogReader, after: int, upto: int, bytes_max: int, relations: set[int] | None) -> None:
        """Each transaction's changes are there exactly once and in order, and no other changes are."""
        finished = interpret(self.records[: self.confirmed]).finished
        found: dict[int, list[tuple[int, bytes]]] = {}
        for part in reader.ranges(after, upto, bytes_max, relations):
            for rows in read(self.path, part, after, upto, relations):
                for row in rows.to_pylist():
                    assert row["xid"] == finished[row["seq"] - 1].xid
                    found.setdefault(row["seq"], []).append((row["ordinal"] - 1, row["payload"]))
        expected = {
            seq: [
                (c.number, c.payload) for c in finished[seq - 1].effective if not relations or c.relation in relations
            ]
            for seq in range(after + 1, upto + 1)
            if relations is None or relations
        }
        assert found == {seq: changes for seq, changes in expected.items() if changes}

    def _first_whole(self) -> int:
        numbers = [number for segment in self._raw() for number in segment]
        finished = interpret(self.records[: self.confirmed]).finished
        start = numbers[0] if numbers else self.confirmed
        return max((seq for seq, t in enumerate(finished, 1) if t.first < start), default=0) + 1

    def _check_index(self, reader: LogReader, after: int, upto: int) -> None:
        finished = interpret(self.records[: self.confirmed]).finished
        for row in reader.transactions(after, upto).to_pylist():
            transaction = finished[row["seq"] - 1]
            assert row["xid"] == transaction.xid
            assert row["changes"] == len(transaction.changes)
            assert row["relations"] == sorted({c.relation for c in transaction.changes})
            assert row["aborted"] == sorted(transaction.aborted)
            assert (row["commit_ordinal"], row["commit_time_us"], row["detail"]) == transaction.committed
            assert point(reader.position_of(row["seq"])) == transaction.committed


def _records(segment: Path) -> list[dict[str, Any]]:
    """All that a segment holds, read by Arrow alone."""
    with pa.ipc.open_stream(segment) as stream:
        found: list[dict[str, Any]] = stream.read_all().to_pylist()
        return found


def _number(record: dict[str, Any]) -> int:
    return int(record["ordinal"]) - 1


def _chooser(seed: int) -> Callable[[int], int]:
    """Picks a number below n, the first and the last more often than chance would."""
    chance = random.Random(seed)
    return lambda n: chance.choice([0, n - 1, chance.randrange(n), chance.randrange(n)])


def effort(examples: int, steps: int) -> settings:
    """How long to search."""
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
