"""The ledger: which transactions are active, which have finished, and what is known of each.

Pure: batches of records in, index rows out. The writer feeds it what is appended; recovery and rebuilding feed it
what the segments hold, and get the same rows, because a row depends on the records and their positions alone.

The heap holds one `Active` for each unfinished transaction, never its changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tailrace.log.index import TRANSACTION, Derived, Mark
from tailrace.log.record import Array, Columns, offsets
from tailrace.log.row_lists import RowLists
from tailrace.log.runs import Runs, group
from tailrace.model.kind import Kind
from tailrace.model.lsn import Lsn

UNKNOWN_POSITION = -1
"""First position of a transaction that began in a segment which is no longer there."""

_SCHEMA, _WINDOW, _KEEPALIVE = np.uint8(Kind.SCHEMA), np.uint8(Kind.WINDOW), np.uint8(Kind.KEEPALIVE)
_KNOWN = np.isin(np.arange(256), list(Kind))
_COMMIT = np.dtype([("commit_lsn", ">u8"), ("end_lsn", ">u8"), ("time_us", ">i8")])
"""A `CommitPayload`, as it is on disk."""


@dataclass(frozen=True)
class Base:
    """How far a log had got at some position: all that the ledger needs to go on from there,
    besides the transactions that were active, the oldest of which began at `floor`."""

    position: int = 0
    seq: int = 0
    lsn: int = 0
    last_commit_lsn: int = 0
    time_max_us: int = 0
    floor: int = 0


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

    def add_schema(self, mark: Mark) -> None:
        """Keep a new shape; a repetition of the newest one, as after a roll, adds nothing."""
        newest = next((m for m in reversed(self.schemas) if m.relation == mark.relation), None)
        if newest is None or newest.payload != mark.payload:
            self.schemas.append(mark)


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
        self._advance(columns, rows, outside)
        return derived

    def carried(self) -> list[Mark]:
        """The schemas a new segment starts with: those in force, and those of active transactions."""
        newest = {(xid, mark.relation): mark for xid, a in self.active.items() for mark in a.schemas}
        return [replace(m, xid=0) for m in self.in_force.values()] + list(newest.values())

    def _refuse_orphans(self, runs: Runs) -> None:
        known = np.fromiter(self.active, dtype=np.uint64, count=len(self.active))
        orphan = ~runs.opened & ~runs.quiet & ~(runs.leading & np.isin(runs.xid, known))
        if self._strict and orphan.any():
            xid = int(runs.xid[np.flatnonzero(orphan)[0]])
            raise ValueError(f"record of transaction {xid}, which has not begun")

    def _rows(self, columns: Columns, runs: Runs, committed: Array) -> Array:
        """Index rows as if each committed run were its whole transaction; `_settle` corrects the others."""
        rows = np.zeros(len(committed), dtype=TRANSACTION)
        commits = _commit_payloads(columns, runs.last_row[committed])
        rows["seq"] = self._base.seq + 1 + np.arange(len(committed))
        rows["xid"] = runs.xid[committed]
        rows["commit_lsn"], rows["end_lsn"] = commits["commit_lsn"], commits["end_lsn"]
        rows["commit_time_us"] = commits["time_us"]
        times = np.append(self._base.time_max_us, commits["time_us"].astype(np.int64))
        rows["time_max_us"] = np.maximum.accumulate(times)[1:]
        rows["first_position"] = self._base.position + runs.first_row[committed]
        rows["commit_position"] = self._base.position + runs.last_row[committed]
        for name in ("changes", "bytes", "undos"):
            rows[name] = getattr(runs, name)[committed]
        return rows

    def _check_order(self, rows: Array) -> None:
        lsns = np.append(np.uint64(self._base.last_commit_lsn), rows["commit_lsn"])
        if self._strict and (lsns[1:] < lsns[:-1]).any():
            at = int(np.flatnonzero(lsns[1:] < lsns[:-1])[0])
            raise ValueError(f"commit at {Lsn(lsns[at + 1])!s} after the commit at {Lsn(lsns[at])!s}")

    def _marks(self, columns: Columns) -> dict[int, Mark]:
        """SCHEMA and WINDOW records by row."""
        found = np.flatnonzero((columns.kind == _SCHEMA) | (columns.kind == _WINDOW)).tolist()
        return {
            row: Mark(
                position=self._base.position + row,
                kind=int(columns.kind[row]),
                relation=int(columns.relation[row]),
                xid=int(columns.xid[row]),
                lsn=int(columns.lsn[row]),
                payload=columns.payload[row].as_py(),
            )
            for row in found
        }

    def _settle(self, batch: _Batch, marks: dict[int, Mark]) -> Derived:
        """Open, continue and finish transactions; the marks that are valid from now on, with the rows."""
        schemas: dict[int, list[Mark]] = {}
        run_of_row = batch.runs.of_row(len(batch.columns.xid)) if marks else ()
        for row, mark in marks.items():
            schemas.setdefault(int(run_of_row[row]), []).append(mark)
        lists = RowLists(batch.runs, batch.row_of_run)
        row_of = batch.row_of_run
        valid = [replace(mark, since=mark.position) for mark in schemas.pop(-1, [])]
        for run in self._unsettled(batch.runs):
            active = self._continue(batch, run, schemas.pop(run, []))
            if row_of[run] >= 0:
                _correct(batch, int(row_of[run]), active)
                lists.add(int(row_of[run]), active.relations, active.aborted)
                valid += batch.committed_marks(int(row_of[run]), active.schemas)
        for run, found in schemas.items():
            if row_of[run] >= 0:
                whole = Active(0, 0)
                for mark in found:
                    whole.add_schema(mark)
                valid += batch.committed_marks(int(row_of[run]), whole.schemas)
        valid.sort(key=lambda mark: mark.since)
        self.in_force.update((mark.relation, mark) for mark in valid if mark.kind == Kind.SCHEMA)
        return Derived(*lists.fill(batch.rows), marks=valid)

    def _unsettled(self, runs: Runs) -> Iterator[int]:
        """Runs that are not a whole transaction on their own."""
        known = np.fromiter(self.active, dtype=np.uint64, count=len(self.active))
        whole = runs.opened & (runs.outcome != 0) & ~np.isin(runs.xid, known)
        # A run left open and begun anew within the batch makes later runs of its transaction replace it.
        later = np.append(False, (runs.xid[1:] == runs.xid[:-1]) & ~whole[:-1])[: len(runs)]
        yield from np.flatnonzero(~whole | later).tolist()

    def _continue(self, batch: _Batch, run: int, schemas: list[Mark]) -> Active:
        """The transaction of a run, with the run added; active from now on unless the run ends it."""
        runs, xid = batch.runs, int(batch.runs.xid[run])
        first = int(runs.first_row[run])
        active = self.active.pop(xid, None)
        if runs.opened[run]:
            active = Active(self._base.position + first, int(batch.outside[first]))
        elif active is None:
            active = Active(UNKNOWN_POSITION, 0)
        active.records += int(runs.records[run])
        active.changes += int(runs.changes[run])
        active.bytes += int(runs.bytes[run])
        active.undos += int(runs.undos[run])
        active.relations.update(runs.relations.of(run).tolist())
        aborted = runs.aborted.of(run)
        if len(aborted):
            active.aborted.append(aborted)
        for mark in schemas:
            active.add_schema(mark)
        if runs.outcome[run] == 0 and not (runs.quiet[run] and active.records == runs.records[run]):
            self.active[xid] = active
        return active

    def _advance(self, columns: Columns, rows: Array, outside: Array) -> None:
        base = self._base
        last = rows[-1] if len(rows) else None
        received = columns.lsn[columns.kind == _KEEPALIVE].tolist() + ([] if last is None else [int(last["end_lsn"])])
        self._outside = int(outside[-1]) if len(outside) else self._outside
        self._base = replace(
            base,
            position=base.position + len(columns.xid),
            seq=base.seq + len(rows),
            lsn=max([base.lsn, *received]),
            last_commit_lsn=base.last_commit_lsn if last is None else int(last["commit_lsn"]),
            time_max_us=base.time_max_us if last is None else int(last["time_max_us"]),
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
    shared: Array = length - (outside[runs.last_row] - outside[runs.first_row]) != runs.records
    return shared


def _commit_payloads(columns: Columns, commit_rows: Array) -> Array:
    if (columns.size[commit_rows] != _COMMIT.itemsize).any():
        raise ValueError("a COMMIT without a commit payload")
    if not len(commit_rows):
        return np.zeros(0, dtype=_COMMIT)
    data, size = columns.payload.buffers()[2], _COMMIT.itemsize
    # An item starts at every byte; those that are commits are taken.
    everywhere = np.ndarray(data.size - size + 1, dtype=f"V{size}", buffer=data, strides=(1,))
    return everywhere[offsets(columns.payload)[commit_rows]].view(_COMMIT)
