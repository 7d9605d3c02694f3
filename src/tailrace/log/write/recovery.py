"""Recovery: what the segments say when a log is opened for writing, and the index they imply.

The segments are the truth. Opening reads the last one from its start, checks every frame, cuts a torn tail and
writes that segment's index again. For the transactions that were active where it starts, it begins to read at the
segment in which the oldest of them began. Sealed segments and their indexes were synced before the next was made.

A bad frame is a *torn tail* when nothing of a later flush follows it: then it was never confirmed to anyone. When
something does, the frame had been durable and is damaged now, and cutting there would lose data: a DefiniteError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from tailrace.errors import DamageError, DefiniteError
from tailrace.log.files.disk import LogDisk
from tailrace.log.files.layout import (
    INDEX_SUFFIXES,
    SEGMENT_SUFFIX,
    index_path,
    put_aside,
    segment_path,
    segment_positions,
)
from tailrace.log.files.record import FRAME_BYTES_MAX, relations_of
from tailrace.log.files.segment import Frame, SegmentHeader, SegmentReader
from tailrace.log.index.details import list_words
from tailrace.log.index.head import HeadFile
from tailrace.log.index.index import TRANSACTION, are_ended, load_rows, parse_marks, read_from, table_bits
from tailrace.log.index.index_files import IndexFiles
from tailrace.log.index.transactions import TransactionIndex
from tailrace.log.ledger.ledger import Ledger
from tailrace.log.playback.ranges import load_frames

_CHUNK_BYTES = 8 << 20


@dataclass
class Recovered:
    """Where the writer continues."""

    ledger: Ledger
    position: int
    """Of the last segment's first record."""
    header: SegmentHeader
    size: int
    """Of the last segment without its torn tail."""
    index: IndexFiles


def recover(path: Path, disk: LogDisk, log: int) -> Recovered | None:
    """Bring the log at `path` into the state of its last durable flush. None when it has no segment yet."""
    _sweep(path, disk)
    positions = segment_positions(path)
    if not positions:
        _check_head(path, 0, log)
        return None
    rewrite_all = _index_incomplete(path, positions)
    start = 0 if rewrite_all else _scan_start(path, positions)
    recovered = derive(path, disk, positions[start:], rewrite_all)
    _check_head(path, recovered.ledger.base.position, log)
    recovered.ledger.become_strict()
    return recovered


def derive(
    path: Path,
    disk: LogDisk,
    positions: list[int],
    rewrite_all: bool,
    on_segment: Callable[[int, int], None] | None = None,
) -> Recovered:
    """Read these segments and write the last one's index again, or every one's.

    `on_segment` is told how many segments are done, of how many.
    """
    done = on_segment or (lambda number, total: None)
    with SegmentReader(segment_path(path, positions[0])) as segment:
        ledger = Ledger(segment.header()[0].base, strict=False)
    for number, position in enumerate(positions[:-1], 1):
        with ExitStack() as stack:
            index = stack.enter_context(closing(IndexFiles(disk, path, position, draft=True))) if rewrite_all else None
            _observe(path, position, ledger, index, is_last=False)
            if index is not None:
                index.end()
                index.drain()
                index.sync()
                index.publish()
        done(number, len(positions))
    with ExitStack() as stack:
        last = IndexFiles(disk, path, positions[-1], draft=True)
        stack.callback(last.close)
        header, size = _observe(path, positions[-1], ledger, last, is_last=True)
        last.publish()
        stack.pop_all()
    done(len(positions), len(positions))
    return Recovered(ledger, positions[-1], header, size, last)


def _observe(
    path: Path, position: int, ledger: Ledger, index: IndexFiles | None, is_last: bool
) -> tuple[SegmentHeader, int]:
    """Feed a segment to the ledger and its index; its header and the offset where its last good frame ends."""
    with SegmentReader(segment_path(path, position)) as segment:
        header, end = segment.header()
        check_continuity(segment, header, ledger)
        frames = intact_frames(segment, end, position) if is_last else segment.frames(end, segment.size)
        for group in _together(frames):
            batches = [frame.whole() for frame in group]
            derived = ledger.observe(pa.concat_batches(batches))
            end = group[-1].offset + group[-1].head.bytes
            if index is not None:
                for frame, batch in zip(group, batches, strict=True):
                    index.add_frame(frame.head, frame.offset, table_bits(relations_of(batch)))
                index.add(derived)
                index.drain()
        if ledger.base.position < position + header.carried:
            raise segment.damage(end, "the schemas it starts with are not whole")
        return header, end


def _together(frames: Iterator[Frame]) -> Iterator[list[Frame]]:
    """Small frames in groups, because each step of the ledger has its price."""
    group: list[Frame] = []
    size = 0
    for frame in frames:
        group.append(frame)
        size += frame.head.bytes
        if size >= FRAME_BYTES_MAX:
            yield group
            group, size = [], 0
    if group:
        yield group


def intact_frames(segment: SegmentReader, start: int, position: int) -> Iterator[Frame]:
    """Frames up to the torn tail, if there is one. DefiniteError when it is damage rather than a torn tail."""
    while start < segment.size:
        head = segment.head_at(start)
        frame = None
        if head is not None and head.position == position and start + head.bytes <= segment.size:
            frame = _load_or_none(segment, start)
        if head is None or frame is None:
            if _later_flush_follows(segment, start, position):
                raise segment.damage(start, "no whole frame starts there, and durable ones follow")
            return
        yield frame
        start += head.bytes
        position = head.position_next


def _load_or_none(segment: SegmentReader, start: int) -> Frame | None:
    head = segment.head_at(start)
    if head is None or start + head.bytes > segment.size:
        return None
    try:
        frame = segment.load(head, start)
        frame.whole()
    except DefiniteError:
        return None
    return frame


def _later_flush_follows(segment: SegmentReader, start: int, position: int) -> bool:
    """Whether an intact frame lies after `start` whose flush began after `position`."""
    for offset in range(start, segment.size, _CHUNK_BYTES):
        chunk = segment.peek(offset, _CHUNK_BYTES)
        found = chunk.find(b"\xff\xff\xff\xff")
        while found >= 0:
            head = segment.head_at(offset + found) if found % 8 == 0 else None
            if head is not None and head.flush > position and _load_or_none(segment, offset + found) is not None:
                return True
            found = chunk.find(b"\xff\xff\xff\xff", found // 8 * 8 + 8)
    return False


def check_continuity(segment: SegmentReader, header: SegmentHeader, ledger: Ledger) -> None:
    base = ledger.base
    if (header.base.position, header.base.seq) != (base.position, base.seq):
        raise segment.damage(
            0,
            f"it starts at position {header.base.position} and transaction {header.base.seq}, "
            f"the segment before it ends at {base.position} and {base.seq}",
        )


def _check_head(path: Path, position: int, log: int) -> None:
    """The head was written after its flush was durable, so the segments must extend to it."""
    head = HeadFile.load(path)
    if head is not None and head.log == log and head.head.position > position:
        raise DamageError(
            f"the log in {path} ends at position {position}, but was durable up to {head.head.position}",
            put_aside(path),
        )


def _scan_start(path: Path, positions: list[int]) -> int:
    """The segment in which the oldest transaction began that was active where the last segment starts."""
    with SegmentReader(segment_path(path, positions[-1])) as segment:
        floor = segment.header()[0].base.floor
    return max((i for i, position in enumerate(positions) if position <= floor), default=0)


def _index_incomplete(path: Path, positions: list[int]) -> bool:
    """Whether a sealed segment's index lacks anything, as after a restore without the index files.

    Transactions are only counted here, for there may be very many; each row is checked when it is read.
    """
    index = TransactionIndex(path)
    return any(not _is_indexed(index, position, following) for position, following in pairwise(positions))


def _is_indexed(index: TransactionIndex, position: int, following: int) -> bool:
    transactions = index.header(following).base.seq - index.header(position).base.seq
    sizes = {suffix: _size(index_path(index.path, position, suffix)) for suffix in INDEX_SUFFIXES}
    if min(sizes.values()) < 0 or sizes[".transactions"] != transactions * TRANSACTION.itemsize:
        return False
    try:
        load_frames(index.path, position, reaching=following)
    except DefiniteError:
        return False
    last = load_rows(index_path(index.path, position, ".transactions"), TRANSACTION, transactions - 1, 1)
    words = int((last["lists_start"] + list_words(last)).sum())
    marks = [mark for mark, _ in parse_marks(read_from(index_path(index.path, position, ".marks"), 0))]
    return sizes[".lists"] == words * 8 and are_ended(marks)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return -1


def _sweep(path: Path, disk: LogDisk) -> None:
    """Remove what a crash left half made, or half deleted."""
    for draft in path.glob("*.tmp"):
        disk.unlink(draft)
    for suffix in INDEX_SUFFIXES:
        for file in path.glob(f"*{suffix}"):
            if not file.with_suffix(SEGMENT_SUFFIX).exists():
                disk.unlink(file)
