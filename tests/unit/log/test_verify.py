"""Verify finds every flipped byte, and rebuilding the index gives the rows that were there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.log.damage_sweeps import flip_bytes_of_a_segment, flip_bytes_of_an_index, write_spanning
from tests.unit.log.records import (
    batch,
    begin,
    change,
    commit,
    open_log,
    played,
    transaction,
)
from typer.testing import CliRunner

from tailrace.cli.log.commands import app
from tailrace.errors import DefiniteError
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import index_path, segment_path, segment_positions
from tailrace.log.reader import LogReader
from tailrace.log.verify import rebuild_index, unfinished, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three segments; one transaction lies in two of them, one is unfinished."""
    write_spanning(tmp_path)
    return tmp_path


def test_a_sound_log_has_no_problems(path: Path) -> None:
    report = verify(path)
    assert report.problems == []
    assert (report.segments, report.transactions) == (3, 3)
    assert unfinished(path) == {9: 12}


@pytest.mark.parametrize("tables", [(7, 34823), (34823, 7)])
def test_the_tables_of_a_transaction_are_listed_alike_however_its_records_came(
    tmp_path: Path, tables: tuple[int, int]
) -> None:
    """The two numbers share a place in a small set, which shows them in the order in which they came."""
    records = [begin(5), *(change(5, b"", relation=table) for table in tables), commit(5, 100)]
    for name, groups in {"at once": [records], "one by one": [[record] for record in records]}.items():
        writer = open_log(tmp_path / name)
        for group in groups:
            writer.append(batch(group))
            writer.flush()
        writer.close()
        assert verify(tmp_path / name).problems == []
        (found,) = LogReader(tmp_path / name).transactions(0, 1)["relations"].to_pylist()
        assert found == [7, 34823]


def test_every_flipped_byte_of_a_segment_is_found(path: Path) -> None:
    flip_bytes_of_a_segment(path, every=101)


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists", ".marks"])
def test_every_flipped_byte_of_the_index_is_found_and_a_rebuild_mends_it(path: Path, suffix: str) -> None:
    flip_bytes_of_an_index(path, suffix, every=37)


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists"])
def test_an_index_that_lost_its_end_is_found_where_readers_stop_early(path: Path, suffix: str) -> None:
    writer = open_log(path)
    writer.append(batch(transaction(11, 400, b"eleven")))
    writer.flush()
    writer.close()
    index = index_path(path, segment_positions(path)[-1], suffix)
    sound = index.read_bytes()
    for size in (0, len(sound) - 8):
        index.write_bytes(sound[:size])
        assert verify(path).problems
    rebuild_index(path)
    assert index.read_bytes() == sound
    assert verify(path).problems == []


def test_a_rebuilt_index_has_the_same_rows(path: Path) -> None:
    reader = LogReader(path)
    before, schemas = reader.transactions(0, 3), reader.schemas()
    files = {file: file.read_bytes() for file in path.glob("0*") if file.suffix != ".arrows"}
    for file in files:
        file.unlink()
    assert rebuild_index(path) == 3
    assert {file: file.read_bytes() for file in files} == files
    assert LogReader(path).transactions(0, 3).equals(before)
    assert LogReader(path).schemas() == schemas


def test_a_rebuilt_index_has_the_same_rows_after_retention(path: Path) -> None:
    writer = open_log(path)
    Consumers(path).acknowledge("lake", 2)
    assert len(writer.retain()) == 1
    writer.close()
    before = LogReader(path)
    rows, oldest = before.transactions(2, 3), before.oldest_seq
    assert verify(path).problems == []
    rebuild_index(path)
    after = LogReader(path)
    assert (after.oldest_seq, after.transactions(2, 3).equals(rows)) == (oldest, True)
    assert played(path, after=2) == [(3, b"ten")]
    assert {v.relation for v in after.schemas()} == {1}


def test_rebuilding_refuses_a_log_that_is_being_written(path: Path) -> None:
    writer = open_log(path)
    with pytest.raises(DefiniteError, match="is being written by process"):
        rebuild_index(path)
    writer.close()


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_commands_show_what_is_there(path: Path) -> None:
    Consumers(path).acknowledge("lake", 1)
    listed = run("ls", path)
    assert "00000000000000000000.arrows" in listed
    assert "lake" in listed
    assert "2 transactions" in listed
    summed = run("stats", path)
    assert "system_identifier" in summed
    assert "xid 9 since position 12" in summed
    assert "every checksum and the index agree" in run("verify", path)
    assert "3 transactions indexed" in run("rebuild-index", path)


def test_show_prints_records_for_people(path: Path) -> None:
    shown = run("show", path, "--seq", 2)
    assert "spans" in shown
    assert "eight" not in shown
    assert "commit 200 end 208" in shown
    assert "ROLLBACK_SUB" in shown
    assert "eight" in run("show", path, "--position", 5, "--limit", 1)
    assert "unfinished" in run("show", path)


def test_verify_ends_with_an_error_when_something_is_wrong(path: Path) -> None:
    segment = segment_path(path, 0)
    segment.write_bytes(segment.read_bytes().replace(b"spans", b"SPANS"))
    result = CliRunner().invoke(app, ["verify", str(path)])
    assert result.exit_code == 1
    assert "is damaged at byte" in result.output
