"""What must hold for details, whatever they are; shared by the quick tests and the long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tests.unit.log.memory_log import Point
from tests.unit.log.records import batch, in_memory, open_log, point, transaction

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import INDEX_SUFFIXES, index_path, segment_path, segment_positions
from tailrace.log.reader import LogReader
from tailrace.log.verify import rebuild_index, verify
from tailrace.log.write.writer import LogWriter


@dataclass(frozen=True)
class Step:
    """A transaction's commit, and what the writer does after it."""

    detail: bytes
    time_us: int
    then: str


DETAILS = st.binary(max_size=40) | st.sampled_from([b"\x00" * 8, b"\xff" * 16, b"g" * 5000])
STEPS = st.lists(
    st.builds(Step, DETAILS, st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from(["", "flush", "flush", "roll"])),
    min_size=1,
    max_size=12,
)


def commits(steps: list[Step]) -> list[Point]:
    return [(seq * 100, step.time_us, step.detail) for seq, step in enumerate(steps, 1)]


def write(writer: LogWriter, steps: list[Step]) -> None:
    """Odd transactions in one batch, even ones in two, so that both ways through the ledger are gone."""
    for seq, step in enumerate(steps, 1):
        records = transaction(seq, seq * 100, b"x", time_us=step.time_us, detail=step.detail)
        for part in [records] if seq % 2 else [records[:1], records[1:]]:
            writer.append(batch(part))
        if step.then:
            getattr(writer, step.then)()
    writer.flush()


@contextmanager
def log_of(steps: list[Step]) -> Iterator[Path]:
    """A log that no process writes any more. Hypothesis wants a new folder for each example."""
    with in_memory() as folder:
        writer = open_log(Path(folder))
        write(writer, steps)
        writer.close()
        yield writer.path


def found(path: Path, after: int = 0) -> list[Point]:
    """What a new reader says of every transaction, in both ways."""
    reader = LogReader(path)
    rows = reader.transactions(after, reader.head.seq).to_pylist()
    listed = [(row["commit_ordinal"], row["commit_time_us"], row["detail"]) for row in rows]
    assert listed == [point(reader.position_of(seq)) for seq in range(after + 1, reader.head.seq + 1)]
    return listed


def check_a_restart_and_a_rebuilt_index(steps: list[Step]) -> None:
    with log_of(steps) as path:
        assert found(path) == commits(steps)
        writer = open_log(path)
        assert point(writer.last_commit) == commits(steps)[-1]
        writer.close()
        files = {index_path(path, p, suffix): b"" for p in segment_positions(path) for suffix in INDEX_SUFFIXES}
        files = {file: file.read_bytes() for file in files}
        for file in files:
            file.unlink()
        rebuild_index(path)
        assert {file: file.read_bytes() for file in files} == files
        assert found(path) == commits(steps)
        assert verify(path).problems == []


def check_a_cut_at_any_byte(steps: list[Step], data: st.DataObject) -> None:
    with log_of(steps) as path:
        (path / "head").unlink()
        segment = segment_path(path, segment_positions(path)[-1])
        kept, header_bytes = header_of(segment)
        size = data.draw(st.integers(header_bytes, segment.stat().st_size))
        segment.write_bytes(segment.read_bytes()[:size])
        writer = open_log(path)
        assert writer.head.seq >= kept
        assert found(path) == commits(steps)[: writer.head.seq]
        assert point(writer.last_commit) == [(0, 0, b""), *commits(steps)][writer.head.seq]
        writer.close()


def check_retention(steps: list[Step], data: st.DataObject) -> None:
    with log_of(steps) as path:
        writer = open_log(path)
        writer.roll()
        done = data.draw(st.integers(0, len(steps)))
        LogReader(path).acknowledge("lake", done)
        writer.retain()
        writer.close()
        for _ in range(2):
            writer = open_log(path)
            assert point(writer.last_commit) == commits(steps)[-1]
            writer.close()
        reader = LogReader(path)
        assert point(reader.position_of(reader.head.seq)) == commits(steps)[-1]
        assert found(path, after=reader.oldest_seq - 1) == commits(steps)[reader.oldest_seq - 1 :]
        gone = reader.oldest_seq - 2
        if gone >= 1:
            with pytest.raises(DefiniteError, match=rf"no longer knows transaction {gone}: its oldest is {gone + 2}"):
                reader.position_of(gone)


def header_of(segment: Path) -> tuple[int, int]:
    """The last transaction before a segment and the length of its header, read from its bytes by hand."""
    content = segment.read_bytes()
    length = 8 + int.from_bytes(content[4:8], "little")
    text = content[content.index(b'{"base"') : length].decode("latin-1")
    return json.JSONDecoder().raw_decode(text)[0]["base"]["seq"], length
