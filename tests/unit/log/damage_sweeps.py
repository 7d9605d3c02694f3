"""Bytes of a log are altered one after the other: each is found, or changes nothing that is read."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.log.records import (
    batch,
    begin,
    change,
    commit,
    open_log,
    played,
    rollback_sub,
    sample,
    schema,
    transaction,
    undo,
)

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import index_path, segment_path, segment_positions
from tailrace.log.reader import LogReader
from tailrace.log.verify import rebuild_index, verify

ALL = [(seq, b"payload %d" % seq) for seq in range(1, 7)]


def write_three_segments(path: Path) -> None:
    """Two transactions in each segment; the last one is not sealed."""
    writer = open_log(path)
    for seq, payload in ALL:
        writer.append(
            batch([schema(1, "id", f"column {seq}"), *transaction(seq, seq * 100, payload, detail=payload * 2)])
        )
        writer.flush()
        if seq in (2, 4):
            writer.roll()
    writer.close()


def write_spanning(path: Path) -> None:
    """Three segments; one transaction lies in two of them, one is unfinished."""
    writer = open_log(path)
    writer.append(batch([schema(1, "id"), begin(7), change(7, b"spans", sub_xid=3), change(7, b"gone", sub_xid=4)]))
    writer.append(batch(transaction(8, 100, b"eight", detail=b"a detail")))
    writer.roll()
    writer.append(
        batch([rollback_sub(7, 4), change(7, b"x", 2), undo(7, 2), commit(7, 200, detail=b"another"), begin(9)])
    )
    writer.flush()
    writer.append(batch([change(9, b"unfinished"), *transaction(10, 300, b"ten")]))
    writer.roll()
    writer.close()


def outcome(path: Path) -> object:
    """What a reader finds, or the segment whose index it calls damaged."""
    try:
        return played(path), LogReader(path).schemas()
    except DefiniteError as error:
        assert error.hint is not None  # noqa: PT017
        found = re.search(r"index (.*)\.\w+ is damaged at byte \d+", error.message)
        return found and found[1]


def flip_bytes_of_a_sealed_index(path: Path, suffix: str, which: int, every: int) -> None:
    """Of a log of `write_three_segments`: a reader finds what is there, or names the file."""
    file = index_path(path, segment_positions(path)[which], suffix)
    sound, versions = file.read_bytes(), LogReader(path).schemas()
    for at in sample(range(len(sound)), every):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert outcome(path) in ((ALL, versions), str(file.with_suffix("")))


def flip_bytes_of_a_segment(path: Path, every: int) -> None:
    """Of a log of `write_spanning`: `verify` finds each."""
    segment = segment_path(path, 0)
    content = segment.read_bytes()
    for at in sample(range(len(content)), every):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        segment.write_bytes(damaged)
        problems = verify(path).problems
        assert problems or _is_unused(content, at), at
    segment.write_bytes(content)


def _is_unused(content: bytes, at: int) -> bool:
    """The schema's flatbuffer has bytes that mean nothing; the header's values have a checksum of their own."""
    return at < content.index(b"position=")


def flip_bytes_of_an_index(path: Path, suffix: str, every: int) -> None:
    """Of a log of `write_spanning`: `verify` finds each, and rebuilding writes what was there."""
    index = path / f"{0:020d}{suffix}"
    content = index.read_bytes()
    assert content
    for at in sample(range(len(content)), every):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        index.write_bytes(damaged)
        assert verify(path).problems, at
    rebuild_index(path)
    assert index.read_bytes() == content
