"""The ledger: which transactions are active, which have finished, and what is known of each.

Pure: batches of records in, index rows out. The writer feeds it what is appended; recovery and rebuilding feed it
what the segments hold, and get the same rows, because a row depends on the records and their positions alone.

The heap holds one `Active` for each unfinished transaction, never its changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import Array, Columns, offsets
from tailrace.log.index.details import add_details
from tailrace.log.index.index import TRANSACTION, Derived, Mark
from tailrace.log.ledger.row_lists import RowLists
from tailrace.log.ledger.runs import Runs, group
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import START, SourcePosition

UNKNOWN_POSITION = -1
"""First position of a transaction that began in a segment which is no longer there."""

_KEEPALIVE = np.uint8(Kind.KEEPALIVE)
_MARKS = np.isin(np.arange(256), [Kind.SCHEMA, Kind.SHAPE, Kind.PREPARE])
"""Each record of these kinds is looked at."""
_KNOWN = np.isin(np.arange(256), list(Kind))
_COMMIT = np.dtype([("commit_ordinal", ">u8"), ("end_ordinal", ">u8"), ("time_us", ">i8")])
"""The fixed part of a `Commit`, as it is on disk."""


@dataclass(frozen=True)
class Base:
    """How far a log had got at some position: all that the ledger needs to continue from there,
    besides the transactions that were active, the oldest of which began at `floor`."""

    position: int = 0
    seq: int = 0
    received: SourcePosition = START
    """Up to where the source has sent everything, with the detail of the commit or keepalive that says so."""
    last_commit: SourcePosition = START
    """Where transaction `seq` committed."""
    time_max_us: int = 0
    floor: int = 0

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        positions = {"received": self.received.to_fields(), "last_commit": self.last_commit.to_fields()}
        return {**vars(self), **positions}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Base:
        """ValueError, KeyError or TypeError for anything that `to_fields` did not make."""
        positions = {name: SourcePosition.from_fields(fields[name]) for name in ("received", "last_commit")}
        return cls(**{**fields, **positions})


@dataclass
class Active:
    """An unfinished transaction."""

    first_position: int
    outside: int
    """How many records outside transactions precede it, to tell later whether others' lie within it."""
    records: int = 0
    changes: int = 0
    bytes: int = 0
    undos: int = 0
    relations: set[int] = field(default_factory=set)
    aborted: list[Array] = field(default_factory=list)
    schemas: list[Mark] = field(default_factory=list)
    prepared: int | None = None
    """The ordinal of its PREPARE."""

    def add(self, mark: Mark) -> None:
        match mark.kind:
            case Kind.PREPARE:
                self.prepared = mark.ordinal
            case Kind.SHAPE:
                self._complete(mark)
            case _:
                self._add_schema(mark)

    def _add_schema(self, mark: Mark) -> None:
        """Keep a new shape; a repetition of the newest one, as after a roll, adds nothing."""
        newest = next((m for m in reversed(self.schemas) if m.relation == mark.relation), None)
        if newest is None or newest.payload != mark.payload:
            self.schemas.append(mark)

    def _complete(self, mark: Mark) -> None:
        what = (mark.relation, mark.ordinal)
        self.schemas = [
            replace(each, payload=mark.payload) if (each.relation, each.ordinal) == what else each
            for each in self.schemas
        ]


class Ledger:
    """State after the last record seen.

    `strict` refuses records of transactions that never began; recovery is not strict, because there
    the beginning may lie in an older segment.
    """

    def __init__(self, base: Base, strict: bool) -> None:
        self._base = base
        self._strict = strict
        self._outside = 0
        self.active: dict[int, Active] = {}
        self.in_force: dict[int, Mark] = {}

    @property
    def base(self) -> Base:
        """Where a segment that starts here would start."""
        floor = min((a.first_position for a in self.active.values()), default=self._base.position)
        return replace(self._base, floor=floor)

    def become_strict(self) -> None:
        self._strict = True

    def observe(self, batch: pa.RecordBatch) -> Derived:
        """Take in the next records. ValueError for what no source may send, and then nothing is taken in."""
        columns = Columns.of(batch)
        if self._strict and not _KNOWN[columns.kind].all():
            raise ValueError(f"record of unknown kind {int(columns.kind[~_KNOWN[columns.kind]][0])}")
        runs = group(columns)
        self._refuse_orphans(runs)
        committed = np.flatnonzero(runs.outcome == Kind.COMMIT)
        committed = committed[np.argsort(runs.last_row[committed])]
        rows = self._rows(columns, runs, committed)
        self._check_order(rows)
        marks = self._marks(columns)
        outside = self._outside + _count_outside(columns.xid)
        rows["streamed"] = _is_shared(runs, outside)[committed]
        derived = self._settle(_Batch(columns, runs, committed, rows, outside), marks)
        self._advance(columns, rows, runs.last_row[committed], outside)
        return derived

    def carried(self) -> list[Mark]:
        """The schemas a new segment starts with: those in force, and those of active transactions."""
        newest = {(xid, mark.relation): mark for xid, a in self.active.items() for mark in a.schemas}
        return [replace(m, xid=0) for m in self.in_force.values()] + list(newest.values())

    def _refuse_orphans(self, runs: Runs) -> None:
        known = np.fromiter(self.active, dtype=np.uint64, count=len(self.active))
        orphan = ~runs.has_begin & ~runs.quiet & ~(runs.leading & np.isin(runs.xid, known))
        if self._strict and orphan.any():
            xid = int(runs.xid[np.flatnonzero(orphan)[0]])
            raise ValueError(f"record of transaction {xid}, which has not begun")

    def _rows(self, columns: Columns, runs: Runs, committed: Array) -> Array:
        """Index rows as if each committed run were its whole transaction; `_settle` corrects the others."""
        rows = np.zeros(len(committed), dtype=TRANSACTION)
        commits = _commit_payloads(columns, runs.last_row[committed])
        rows["seq"] = self._base.seq + 1 + np.arange(len(committed))
        rows["xid"] = runs.xid[committed]
        rows["commit_ordinal"], rows["end_ordinal"] = commits["commit_ordinal"], commits["end_ordinal"]
        rows["commit_time_us"] = commits["time_us"]
        times = np.append(self._base.time_max_us, commits["time_us"].astype(np.int64))
        rows["time_max_us"] = np.maximum.accumulate(times)[1:]
        rows["first_position"] = self._base.position + runs.first_row[committed]
        rows["commit_position"] = self._base.position + runs.last_row[committed]
        for name in ("changes", "bytes", "undos"):
            rows[name] = getattr(runs.counts, name)[committed]
        return rows

    def _check_order(self, rows: Array) -> None:
        ordinals = np.append(np.uint64(self._base.last_commit.ordinal), rows["commit_ordinal"])
        if self._strict and (ordinals[1:] < ordinals[:-1]).any():
            at = int(np.flatnonzero(ordinals[1:] < ordinals[:-1])[0])
            raise ValueError(f"commit at {ordinals[at + 1]} after the commit at {ordinals[at]}")

    def _marks(self, columns: Columns) -> dict[int, Mark]:
        """Records that are looked at one by one, by row."""
        found = np.flatnonzero(_MARKS[columns.kind]).tolist()
        return {
            row: Mark(
                position=self._base.position + row,
                kind=int(columns.kind[row]),
                relation=int(columns.relation[row]),
                xid=int(columns.xid[row]),
                ordinal=int(columns.ordinal[row]),
                payload=columns.payload[row].as_py(),
            )
            for row in found
        }

    def _settle(self, batch: _Batch, marks: dict[int, Mark]) -> Derived:
        """Open, continue and finish transactions; the marks that are valid from now on, with the rows."""
        of_run: dict[int, list[Mark]] = {}
        run_of_row = batch.runs.of_row(len(batch.columns.xid)) if marks else ()
        for row, mark in marks.items():
            of_run.setdefault(int(run_of_row[row]), []).append(mark)
        lists = RowLists(batch.runs, batch.row_of_run)
        row_of = batch.row_of_run
        valid = [replace(mark, since=mark.position) for mark in of_run.pop(-1, [])]
        for run in self._unsettled(batch.runs):
            active = self._continue(batch, run, of_run.pop(run, []))
            if row_of[run] >= 0:
                _correct(batch, int(row_of[run]), active)
                lists.add(int(row_of[run]), active.relations, active.aborted)
                valid += batch.committed_marks(int(row_of[run]), active.schemas)
        for run, found in of_run.items():
            if row_of[run] >= 0:
                whole = Active(0, 0)
                for mark in found:
                    whole.add(mark)
                valid += batch.committed_marks(int(row_of[run]), whole.schemas)
        valid.sort(key=lambda mark: mark.since)
        self.in_force.update((mark.relation, mark) for mark in valid if mark.kind == Kind.SCHEMA)
        return Derived(*_with_details(batch, *lists.fill(batch.rows)), marks=valid)

    def _unsettled(self, runs: Runs) -> Iterator[int]:
        """Runs that are not a whole transaction on their own."""
        known = np.fromiter(self.active, dtype=np.uint64, count=len(self.active))
        whole = runs.has_begin & (runs.outcome != 0) & ~np.isin(runs.xid, known)
        # A run that is left open and begun again within the batch is replaced by the later runs of its transaction.
        later = np.append(False, (runs.xid[1:] == runs.xid[:-1]) & ~whole[:-1])[: len(runs)]
        yield from np.flatnonzero(~whole | later).tolist()

    def _continue(self, batch: _Batch, run: int, marks: list[Mark]) -> Active:
        """The transaction of a run, with the run added; active from now on unless the run ends it."""
        runs, xid = batch.runs, int(batch.runs.xid[run])
        first = int(runs.first_row[run])
        active = self.active.pop(xid, None)
        if runs.has_begin[run]:
            active = Active(self._base.position + first, int(batch.outside[first]))
        elif active is None:
            active = Active(UNKNOWN_POSITION, 0)
        active.records += int(runs.counts.records[run])
        active.changes += int(runs.counts.changes[run])
        active.bytes += int(runs.counts.bytes[run])
        active.undos += int(runs.counts.undos[run])
        active.relations.update(runs.relations.of(run).tolist())
        aborted = runs.aborted.of(run)
        if len(aborted):
            active.aborted.append(aborted)
        for mark in marks:
            active.add(mark)
        if runs.outcome[run] == 0 and not (runs.quiet[run] and active.records == runs.counts.records[run]):
            self.active[xid] = active
        return active

    def _advance(self, columns: Columns, rows: Array, commit_rows: Array, outside: Array) -> None:
        base = self._base
        commit = None
        if len(rows):
            commit = Commit.from_bytes(columns.payload[int(commit_rows[-1])].as_py())
        self._outside = int(outside[-1]) if len(outside) else self._outside
        self._base = replace(
            base,
            position=base.position + len(columns.xid),
            seq=base.seq + len(rows),
            received=_received(base.received, columns, int(commit_rows[-1]) if commit else 0, commit),
            last_commit=commit.position if commit else base.last_commit,
            time_max_us=int(rows["time_max_us"][-1]) if len(rows) else base.time_max_us,
        )


@dataclass(frozen=True)
class _Batch:
    columns: Columns
    runs: Runs
    committed: Array
    rows: Array
    outside: Array

    @cached_property
    def row_of_run(self) -> Array:
        """Each run's index row, -1 for one that does not commit."""
        row = np.full(len(self.runs), -1, dtype=np.int64)
        row[self.committed] = np.arange(len(self.committed))
        return row

    def committed_marks(self, row: int, marks: list[Mark]) -> list[Mark]:
        return [replace(mark, since=int(self.rows["commit_position"][row])) for mark in marks]


def _correct(batch: _Batch, row: int, active: Active) -> None:
    target = batch.rows[row : row + 1]
    target["first_position"] = active.first_position
    target["changes"], target["bytes"], target["undos"] = active.changes, active.bytes, active.undos
    commit_row = int(batch.runs.last_row[batch.committed[row]])
    length = int(target["commit_position"][0]) - active.first_position + 1
    target["streamed"] = length - (int(batch.outside[commit_row]) - active.outside) != active.records


def _count_outside(xid: Array) -> Array:
    """For each record, how many up to it lie outside transactions."""
    outside = xid == 0
    return np.cumsum(outside) if outside.any() else np.broadcast_to(np.int64(0), len(xid))


def _is_shared(runs: Runs, outside: Array) -> Array:
    """Whether other transactions' records lie among a run's own."""
    length = runs.last_row - runs.first_row + 1
    shared: Array = length - (outside[runs.last_row] - outside[runs.first_row]) != runs.counts.records
    return shared


def _commit_payloads(columns: Columns, commit_rows: Array) -> Array:
    if (columns.size[commit_rows] < _COMMIT.itemsize).any():
        raise ValueError("a COMMIT without a commit payload")
    if not len(commit_rows):
        return np.zeros(0, dtype=_COMMIT)
    data, size = columns.payload.buffers()[2], _COMMIT.itemsize
    # An item starts at every byte; those that are commits are taken.
    everywhere = np.ndarray(data.size - size + 1, dtype=f"V{size}", buffer=data, strides=(1,))
    return everywhere[offsets(columns.payload)[commit_rows]].view(_COMMIT)


def _with_details(batch: _Batch, rows: Array, lists: Array) -> tuple[Array, Array]:
    """The same with the details of the commits, which follow their fixed part."""
    columns = batch.columns
    commit_rows = batch.runs.last_row[batch.committed]
    sizes = columns.size[commit_rows] - _COMMIT.itemsize
    if not sizes.any():
        return rows, lists
    starts = offsets(columns.payload)[commit_rows] + _COMMIT.itemsize
    return add_details(rows, lists, np.frombuffer(columns.payload.buffers()[2], np.uint8), starts, sizes)


def _received(known: SourcePosition, columns: Columns, commit_row: int, commit: Commit | None) -> SourcePosition:
    """How far the source has got: the highest of what is known, of the last commit's end and of all keepalives.

    Of equals the one that was logged last, because its detail is the newest.
    """
    found = [(known.ordinal, -1, known)]
    if commit is not None:
        end = replace(commit.position, ordinal=commit.end_ordinal)
        found.append((end.ordinal, commit_row, end))
    alive = np.flatnonzero(columns.kind == _KEEPALIVE)
    if len(alive):
        row = int(alive[np.lexsort((alive, columns.ordinal[alive]))[-1]])
        position = SourcePosition(int(columns.ordinal[row]), detail=columns.payload[row].as_py())
        found.append((position.ordinal, row, position))
    return max(found, key=lambda candidate: candidate[:2])[2]
