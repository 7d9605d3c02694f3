"""Verify: is every byte as it was written, and does the index say what the segments say?

Reads the whole log, changes nothing, and may run beside the writer: it looks as far as the head did when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tailrace.errors import DefiniteError
from tailrace.log.files.disk import LogDisk
from tailrace.log.files.layout import index_path, load_manifest, log_number, segment_path, segment_positions
from tailrace.log.files.record import Array
from tailrace.log.files.segment import Frame, SegmentGoneError, SegmentReader
from tailrace.log.index.head import HeadFile
from tailrace.log.index.index import Derived, are_ended, parse_marks, read_from
from tailrace.log.index.transactions import TransactionIndex, steady
from tailrace.log.ledger.ledger import UNKNOWN_POSITION, Ledger
from tailrace.log.playback.ranges import load_frames
from tailrace.log.reader import LogReader
from tailrace.log.write.lock import lock_log
from tailrace.log.write.recovery import check_continuity, derive, intact_frames


@dataclass
class Report:
    """What was looked at, and what is wrong."""

    segments: int = 0
    frames: int = 0
    records: int = 0
    transactions: int = 0
    problems: list[str] = field(default_factory=list)


def verify(path: Path, on_segment: Callable[[int, int], None] | None = None) -> Report:
    """Check every frame and every index row. DefiniteError when there is no log.

    `on_segment` is told how many segments are done, of how many.
    """
    stop = _durable_stop(path)
    report = Report()
    index, _ = steady(TransactionIndex(path), _remember_headers)
    ledger: Ledger | None = None
    for position in index.positions:
        report.segments += 1
        known = len(report.problems)
        try:
            ledger = _verify_segment(index, position, stop, ledger, report)
        except DefiniteError as error:
            report.problems.append(error.message)
            ledger = None
        if position < min(segment_positions(path), default=position):
            del report.problems[known:]  # Retention has removed it while we read.
        if on_segment is not None:
            on_segment(report.segments, len(index.positions))
    return report


def _durable_stop(path: Path) -> int:
    """How far the log was durable, also where the index ends before that and a reader would stop."""
    reader, written = LogReader(path), HeadFile.load(path)
    if written is None or written.log != log_number(reader.id):
        return reader.head.position
    return max(reader.head.position, written.head.position)


def _remember_headers(index: TransactionIndex) -> None:
    """So that a segment which retention removes later is not missed when others are looked up."""
    for position in index.positions:
        try:
            index.header(position)
        except SegmentGoneError:
            raise
        except DefiniteError:
            continue  # It is told of when its turn comes.


def unfinished(path: Path) -> dict[int, int]:
    """Transactions that are active at the head, and the position at which each began."""
    stop = LogReader(path).head.position
    return steady(TransactionIndex(path), lambda index: _unfinished(index, stop))[1]


def _unfinished(index: TransactionIndex, stop: int) -> dict[int, int]:
    floor = index.header(index.positions[-1]).base.floor if index.positions else 0
    later = [position for position in index.positions if position > floor]
    positions = index.positions[max(0, len(index.positions) - len(later) - 1) :]
    if not positions:
        return {}
    ledger = Ledger(index.header(positions[0]).base, strict=False)
    for position in positions:
        with SegmentReader(segment_path(index.path, position)) as segment:
            _, start = segment.header()
            for frame in _durable_frames(segment, start, position, stop, is_last=position == positions[-1]):
                ledger.observe(frame.whole())
    return {xid: active.first_position for xid, active in ledger.active.items()}


def rebuild_index(path: Path, on_segment: Callable[[int, int], None] | None = None) -> int:
    """Write every index file again from the segments, and return the number of transactions.

    Takes the writer's lock. DefiniteError where a segment is damaged. `on_segment` as for `verify`.
    """
    load_manifest(path)
    with closing(lock_log(path)):
        positions = segment_positions(path)
        if not positions:
            return 0
        recovered = derive(path, LogDisk(), positions, rewrite_all=True, on_segment=on_segment)
        recovered.index.sync()
        recovered.index.close()
        LogDisk().sync_directory(path)
        return recovered.ledger.base.seq - _first_seq(path, positions[0]) + 1


def _first_seq(path: Path, position: int) -> int:
    with SegmentReader(segment_path(path, position)) as segment:
        return segment.header()[0].base.seq + 1


def _verify_segment(index: TransactionIndex, position: int, stop: int, ledger: Ledger | None, report: Report) -> Ledger:
    """Read one segment, and continue with the ledger; without one, start from what the segment says of itself."""
    with SegmentReader(segment_path(index.path, position)) as segment:
        header, start = segment.header()
        ledger = ledger or Ledger(header.base, strict=False)
        check_continuity(segment, header, ledger)
        stored_marks = [mark for mark, _ in parse_marks(read_from(index_path(index.path, position, ".marks"), 0))]
        if position != index.positions[-1] and not are_ended(stored_marks):
            report.problems.append(f"{segment.path}: the index lacks marks")
        marks = {(mark.since, mark.relation, mark.payload) for mark in stored_marks}
        stored = {int(row["position"]): row for row in load_frames(index.path, position, reaching=position)}
        for frame in _durable_frames(segment, start, position, stop, is_last=position == index.positions[-1]):
            derived = ledger.observe(frame.whole())
            report.frames += 1
            report.records += frame.head.rows
            report.transactions += len(derived.transactions)
            report.problems += _frame_problems(segment, frame, stored)
            report.problems += _index_problems(index, segment, derived)
            missing = [m for m in derived.marks if (m.since, m.relation, m.payload) not in marks]
            report.problems += [f"{segment.path}: the index lacks the mark at position {m.position}" for m in missing]
    return ledger


def _durable_frames(segment: SegmentReader, start: int, position: int, stop: int, is_last: bool) -> Iterator[Frame]:
    if not is_last:
        yield from segment.frames(start, segment.size)
        return
    end = position
    for frame in intact_frames(segment, start, position):
        if frame.head.position >= stop:
            return
        end = frame.head.position_next
        yield frame
    if end < stop:
        raise DefiniteError(f"segment {segment.path} ends at position {end}, but was durable up to {stop}")


def _frame_problems(segment: SegmentReader, frame: Frame, stored: dict[int, Array]) -> list[str]:
    row = stored.get(frame.head.position)
    expected = (frame.offset, frame.head.bytes, frame.head.keys)
    if row is not None and tuple(int(row[name]) for name in ("offset", "bytes", "keys")) == expected:
        return []
    return [f"{segment.path}: the index does not know the frame at byte {frame.offset}"]


def _index_problems(index: TransactionIndex, segment: SegmentReader, derived: Derived) -> list[str]:
    """Compare what the segment implies with what the index says, where the whole transaction is still there."""
    rows = derived.transactions
    if len(rows) == 0:
        return []
    first, last = int(rows["seq"][0]), int(rows["seq"][-1])
    try:
        stored, lists = index.read(first - 1, last, with_details=True)
    except DefiniteError:
        return [f"{segment.path}: the index lacks some of the transactions {first} to {last}"]
    names = [name for name in rows.dtype.names or () if name not in ("lists_start", "check")]
    known = rows["first_position"] != UNKNOWN_POSITION
    wrong = np.zeros(len(rows), dtype=bool)
    for name in names:
        wrong |= (rows[name] != stored[name]) & known
    if known.all() and not wrong.any() and not np.array_equal(lists, derived.lists):
        return [f"{segment.path}: the index has other tables or details for the transactions {first} to {last}"]
    return [f"{segment.path}: the index is wrong about transaction {seq}" for seq in rows["seq"][wrong].tolist()]
