"""What every storage promises: tests of each run these."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.storage.door import Storage

WRITERS = 8


def assert_puts_whole_files(storage: Storage) -> None:
    """What was there is replaced, and a copy of the storage in another process would see it."""
    assert storage.look("a/one") is None
    with pytest.raises(FileNotFoundError):
        storage.get("a/one")
    storage.put("a/one", b"first")
    storage.put("a/one", b"the second")
    assert storage.get("a/one") == b"the second"
    found = storage.look("a/one")
    assert found is not None
    assert (found.name, found.bytes) == ("a/one", 10)
    assert abs(found.changed_ns - time.time_ns()) < 60e9
    assert pickle.loads(pickle.dumps(storage)).get("a/one") == b"the second"
    assert storage.names("a") == ["a/one"], "nothing else is left"


def assert_puts_new_files_once(storage: Storage) -> None:
    """Of many writers one wins, and none replaces anything."""
    for number in range(10):
        name = f"log/{number:020d}.json"

        def put(writer: int, name: str = name) -> bool:
            return storage.put_new(name, b"%d" % writer * 1000)

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(put, range(WRITERS)))
        assert won.count(True) == 1
        assert storage.get(name) == b"%d" % won.index(True) * 1000
        assert not storage.put_new(name, b"later")
        assert storage.get(name) == b"%d" % won.index(True) * 1000
    assert len(storage.names("log")) == 10, "nothing else is left"


def assert_creates_files_piece_by_piece(storage: Storage) -> None:
    """A file is there when it is whole. One that fails leaves nothing."""
    with storage.create("new/rows.parquet") as file:
        pq.write_table(pa.table({"n": range(1000)}), file)
        size = file.tell()
    found = storage.look("new/rows.parquet")
    assert found is not None
    assert found.bytes == size
    with storage.open("new/rows.parquet") as file, pq.ParquetFile(file) as parquet:
        assert parquet.read().column("n").to_pylist() == list(range(1000))
    with pytest.raises(ZeroDivisionError):
        create_in_vain(storage, "new/lost")
    assert storage.names("new") == ["new/rows.parquet"]


def create_in_vain(storage: Storage, name: str) -> None:
    with storage.create(name) as file:
        file.write(b"some")
        raise ZeroDivisionError


def assert_gets_parts(storage: Storage) -> None:
    storage.put("digits", b"0123456789")
    assert storage.get_ranges("digits", [(2, 5), (8, 20), (0, 0), (30, 40)]) == [b"234", b"89", b"", b""]
    with storage.open("digits") as file:
        assert file.size() == 10
        file.seek(4)
        assert file.read(3) == b"456"
    for read in (storage.open, lambda name: storage.get_ranges(name, [(0, 1)])):
        with pytest.raises(FileNotFoundError):
            read("letters")


def assert_lists(storage: Storage) -> None:
    """What lies directly in a folder, in order."""
    for name in ("b", "a/2", "a/1", "a/deep/3", "a/.hidden", "_c/4"):
        storage.put(name, name.encode())
    assert storage.names() == ["_c/", "a/", "b"]
    assert storage.names("a") == ["a/.hidden", "a/1", "a/2", "a/deep/"]
    assert storage.names("a", after="a/1") == ["a/2", "a/deep/"]
    assert storage.names("nowhere") == []
    listed = storage.list("a", after="a/.hidden")
    assert listed == [storage.look("a/1"), storage.look("a/2")]
    assert storage.at("a").names("deep") == ["deep/3"]
    assert storage.at("a/deep").get("3") == b"a/deep/3"
    assert storage.at("a").at("deep").address == storage.at("a/deep").address == f"{storage.address}/a/deep"


def assert_deletes(storage: Storage) -> None:
    """What is not there is passed over. A folder is there as long as something is in it."""
    for name in ("a/1", "a/2", "a/deep/3"):
        storage.put(name, b"")
    storage.delete(["a/1", "nothing", "a/deep/3", "no/where"])
    assert storage.names("a") == ["a/2"]
    storage.delete(["a/2"])
    assert storage.names() == []
    storage.sync(["nothing", "no/where"])


def assert_marks_folders(storage: Storage) -> None:
    """Whoever has a mark sees that something came or went. A storage need not have any."""
    storage.put("a/0", b"")
    before = storage.mark("a")
    assert storage.mark("a") == before
    assert storage.mark("nowhere") is None
    if before is None:
        return
    # The clock of a disk ticks a few hundred times a second.
    assert any(put_moves(storage, f"a/{number}", before) for number in range(1_000_000))
    before = storage.mark("a")
    assert any(delete_moves(storage, name, before) for name in storage.names("a"))


def put_moves(storage: Storage, name: str, before: str | None) -> bool:
    storage.put(name, b"")
    return storage.mark("a") != before


def delete_moves(storage: Storage, name: str, before: str | None) -> bool:
    storage.delete([name])
    return storage.mark("a") != before


def assert_sets_aside(storage: Storage, aside: Path) -> None:
    """Files leave the storage for a local folder, a new one each time."""
    for name in ("log/1", "log/2", "log/3"):
        storage.put(name, name.encode())
    storage.set_aside(["log/3", "log/2"], aside)
    storage.set_aside(["log/1"], aside)
    assert storage.names("log") == []
    found = {str(path.relative_to(aside)): path.read_bytes() for path in aside.rglob("*") if path.is_file()}
    assert found == {"1/3": b"log/3", "1/2": b"log/2", "2/1": b"log/1"}


def assert_keeps_journals(storage: Storage) -> None:
    """Lines stay in their order. Old ones leave as a whole."""
    journal = storage.journal("own/cuts")
    assert (journal.lines(), journal.recent(), journal.first(), journal.end) == ([], [], None, 0)
    marks = [journal.mark]
    for line in ("one", "two, é", "three"):
        journal.append(line)
        marks.append(journal.mark)
    assert storage.journal("own/cuts").lines() == ["one", "two, é", "three"]
    assert (journal.first(), journal.recent()[-1]) == ("one", "three")
    end = journal.end
    journal.append("four")
    assert journal.lines(end) == ["four"]
    journal.replace(["two, é", "four"])
    marks.append(journal.mark)
    assert journal.lines() == ["two, é", "four"]
    end = journal.end
    journal.append("five")
    marks.append(journal.mark)
    assert (journal.first(), journal.lines(end)) == ("two, é", ["five"])
    assert len({*marks}) == len(marks)
