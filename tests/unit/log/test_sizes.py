"""The size of a log is that of its files, also when it is asked again and segments come and go."""

from __future__ import annotations

from pathlib import Path

from tailrace.log.files.layout import INDEX_SUFFIXES, index_path, segment_path
from tailrace.log.sizes import LogSize


def total(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_log_that_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert LogSize(tmp_path / "none").bytes() == 0


def test_the_size_is_that_of_all_files_whatever_is_written_or_deleted(tmp_path: Path) -> None:
    size = LogSize(tmp_path)
    (tmp_path / "consumers").mkdir()
    (tmp_path / "consumers" / "publisher").write_bytes(b"12")
    (tmp_path / "log.json").write_bytes(b"x" * 7)
    for number in range(6):
        position = number * 100
        segment_path(tmp_path, position).write_bytes(b"s" * (50 + number))
        for suffix in INDEX_SUFFIXES:
            index_path(tmp_path, position, suffix).write_bytes(b"i" * number)
        assert size.bytes() == total(tmp_path)
        # The last two are still written.
        index_path(tmp_path, position, INDEX_SUFFIXES[0]).write_bytes(b"i" * 99)
        if number:
            index_path(tmp_path, position - 100, INDEX_SUFFIXES[0]).write_bytes(b"i" * 77)
        assert size.bytes() == total(tmp_path)
    segment_path(tmp_path, 0).unlink()
    assert size.bytes() == total(tmp_path)


def test_a_sealed_segment_is_looked_at_once(tmp_path: Path) -> None:
    size = LogSize(tmp_path)
    for number in range(3):
        segment_path(tmp_path, number).write_bytes(b"s" * 10)
    assert size.bytes() == 30
    segment_path(tmp_path, 0).write_bytes(b"s" * 11)
    assert size.bytes() == 30
    segment_path(tmp_path, 2).write_bytes(b"s" * 11)
    assert size.bytes() == 31
