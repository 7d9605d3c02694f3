"""Whatever is lost or altered on the disk, a reader gets all that it asked for or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.log.damage_sweeps import ALL, flip_bytes_of_a_sealed_index, outcome, write_three_segments
from tests.unit.log.fault_sweeps import cut_the_power_while_wiping
from tests.unit.log.records import batch, begin, change, commit, open_log, played, transaction

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import index_path, segment_path, segment_positions
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions, LogWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three segments with two transactions each, the last one not sealed; no process writes it any more."""
    write_three_segments(tmp_path / "log")
    return tmp_path / "log"


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists", ".marks"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_flipped_byte_in_a_sealed_index_is_an_error_that_names_the_file(path: Path, suffix: str, which: int) -> None:
    flip_bytes_of_a_sealed_index(path, suffix, which, every=53)


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists", ".marks"])
def test_a_shortened_or_lost_sealed_index_is_an_error_and_is_mended_by_the_next_writer(path: Path, suffix: str) -> None:
    file = index_path(path, 0, suffix)
    sound, versions = file.read_bytes(), LogReader(path).schemas()
    for size in (len(sound) - 1, len(sound) // 2, 0, None):
        file.unlink() if size is None else file.write_bytes(sound[:size])
        assert outcome(path) == str(file.with_suffix(""))
        open_log(path).close()
        assert file.read_bytes() == sound
        assert (played(path), LogReader(path).schemas()) == (ALL, versions)


def test_pieces_that_were_planned_are_read_whole_or_not_at_all(path: Path) -> None:
    file = index_path(path, 0, ".frames")
    reader = LogReader(path)
    reader.ranges(0, 6, 1 << 20)
    file.write_bytes(file.read_bytes()[:-56])
    with pytest.raises(DefiniteError, match=rf"index {file} is damaged at byte \d+"):
        played(path)


def test_retention_deletes_nothing_while_it_cannot_tell_what_is_needed(path: Path) -> None:
    writer = open_log(path)
    LogReader(path).acknowledge("lake", 0)
    for position in segment_positions(path)[:2]:
        file = index_path(path, position, ".transactions")
        content = bytearray(file.read_bytes())
        content[8] ^= 1
        file.write_bytes(content)
    with pytest.raises(DefiniteError, match=r"\.transactions is damaged at byte 0"):
        writer.retain()
    assert len(segment_positions(path)) == 3
    writer.close()


def test_a_missing_segment_in_the_middle_is_an_error(path: Path) -> None:
    middle = segment_positions(path)[1]
    segment_path(path, middle).unlink()
    with pytest.raises(DefiniteError, match="damaged"):
        played(path)
    with pytest.raises(DefiniteError, match="the segment before it ends at"):
        open_log(path)


def test_transactions_whose_beginning_is_deleted_are_not_played_back_in_part(path: Path) -> None:
    writer = open_log(path)
    reader = LogReader(path)
    reader.acknowledge("lake", 2)
    assert len(writer.retain()) == 1
    assert played(path, after=2) == ALL[2:]
    for each in (reader, LogReader(path)):
        with pytest.raises(DefiniteError, match="no longer holds all of transaction 2 "):
            each.ranges(1, 6, 1 << 20)
    with pytest.raises(DefiniteError, match="no longer holds all of transaction 1 "):
        reader.pin("read", 0)
    assert LogReader(path).consumers() == {"lake": 2}
    writer.close()


def test_every_altered_byte_of_the_manifest_is_found(path: Path) -> None:
    file = path / "log.json"
    sound = file.read_bytes()
    for at in range(len(sound)):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        if file.read_bytes().split() != sound.split():
            with pytest.raises(DefiniteError, match=r"damaged|log format"):
                LogReader(path)


def test_segments_without_a_manifest_belong_to_nobody(path: Path) -> None:
    (path / "log.json").unlink()
    with pytest.raises(DefiniteError, match="it is not known which source"):
        LogWriter.open(path, {"source": "another"})


def test_a_torn_tail_that_holds_a_segment_of_another_log_is_only_a_torn_tail(path: Path, tmp_path: Path) -> None:
    inner = segment_path(path, segment_positions(path)[-1]).read_bytes()
    for pad in range(8):
        outer = tmp_path / f"outer {pad}"
        writer = open_log(outer)
        writer.append(batch(transaction(1, 10, b"kept")))
        writer.flush()
        writer.append(batch([begin(2), change(2, b" " * pad + inner), change(2, b"t" * 4000), commit(2, 20)]))
        writer.flush()
        writer.close()
        segment = segment_path(outer, 0)
        segment.write_bytes(segment.read_bytes()[:-1000])
        (outer / "head").unlink()
        writer = open_log(outer)
        assert writer.head.seq == 1
        writer.close()


def test_a_reader_of_a_wiped_log_is_told_also_when_the_new_one_is_longer(path: Path) -> None:
    reader = LogReader(path)
    writer = open_log(path, LogOptions(reuse=False))
    for seq in range(1, 20):
        writer.append(batch(transaction(seq, seq * 100, b"new")))
        writer.flush()
    with pytest.raises(DefiniteError, match="was wiped and begun again"):
        reader.refresh()
    writer.close()


def test_a_crash_while_a_log_is_wiped_is_finished_by_the_next_writer(path: Path, tmp_path: Path) -> None:
    cut_the_power_while_wiping(path, tmp_path, every=3)
