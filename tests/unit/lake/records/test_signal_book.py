"""The book of signals: each once, with its place, whatever happens between two writes."""

from __future__ import annotations

import itertools
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.lake.records.signal_book import SignalBook
from tailrace.model.signal import Arrival, Signal, SignalRecord, SignalState

ASK = """
import sys
from pathlib import Path
from tailrace.lake.records.requests import Requests
from tailrace.model.signal import Signal
sys.stdin.readline()
for number in range(50):
    Requests(Path(sys.argv[1])).ask_signal(Signal(f"{sys.argv[2]}-{number}", "log"))
"""


@pytest.fixture
def clock() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def book(tmp_path: Path, clock: Iterator[int]) -> SignalBook:
    return SignalBook(tmp_path / "signals.json", lambda: next(clock))


def arrival(id_: str, reason: str | None = None, data: str = "") -> Arrival:
    return Arrival(Signal(id_, "stop-snapshot", data), "file", reason)


def states(book: SignalBook) -> dict[str, SignalState]:
    return {record.signal.id: record.state for record in book.records()}


def test_a_signal_is_recorded_once_with_what_became_of_it_and_when(book: SignalBook, tmp_path: Path) -> None:
    assert book.records() == []
    assert book.place("file") is None
    (new,) = book.enter([arrival("a"), arrival("a", "again")], {"file": {"offset": 7}})
    assert new == SignalRecord(arrival("a").signal, "file", SignalState.RECEIVED, 1, 1)
    assert book.enter([arrival("a", "another reason")], {}) == []
    book.set("a", SignalState.RUNNING)
    book.set("a", SignalState.DONE, "3 tables")
    book.set("a", SignalState.FAILED, "too late")
    book.set("unknown", SignalState.DONE)
    other = SignalBook(tmp_path / "signals.json")
    assert other.place("file") == {"offset": 7}
    assert other.records() == [SignalRecord(new.signal, "file", SignalState.DONE, 1, 4, "3 tables")]
    assert stat.S_IMODE((tmp_path / "signals.json").stat().st_mode) == 0o600


def test_a_reader_sees_what_the_writer_stored_since(book: SignalBook, tmp_path: Path) -> None:
    reader = SignalBook(tmp_path / "signals.json")
    for number in range(3):
        book.enter([arrival(str(number))], {})
        assert len(reader.records()) == number + 1
    book.set("1", SignalState.PAUSED)
    assert states(reader)["1"] is SignalState.PAUSED


def test_what_cannot_be_read_is_rejected_and_what_has_ended_is_no_longer_open(book: SignalBook) -> None:
    book.enter([arrival("bad", "line: invalid JSON"), arrival("a"), arrival("b"), arrival("c")], {})
    book.set("b", SignalState.PAUSED)
    book.set("c", SignalState.STOPPED)
    assert [record.signal.id for record in book.open_records()] == ["a", "b"]
    assert states(book)["bad"] is SignalState.REJECTED


def test_only_the_last_ended_signals_are_kept_and_all_that_have_not_ended(tmp_path: Path) -> None:
    book = SignalBook(tmp_path / "signals.json", ended_max=3, ended_characters_max=10)
    book.enter([arrival("open")], {})
    book.enter([arrival(str(number), "bad") for number in range(5)], {})
    assert list(states(book)) == ["open", "2", "3", "4"]
    book.enter([arrival("long", "bad", "x" * 10), arrival("last", "bad", "y")], {})
    assert list(states(book)) == ["open", "last"]


@pytest.mark.parametrize("content", ["", "[]", '{"signals": [{}], "places": {}}', '{"signals": []}'])
def test_a_damaged_book_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "signals.json").write_text(content)
    with pytest.raises(DefiniteError, match=r"signals\.json is damaged"):
        SignalBook(tmp_path / "signals.json").records()


def test_requests_of_two_processes_at_once_are_all_there_each_in_its_order(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    folder = home.lake / "_tailrace" / "requests"
    command = [sys.executable, "-c", ASK, str(folder)]
    askers = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True) for name in "ab"]
    for asker in askers:
        assert asker.stdin is not None
        asker.stdin.write("\n")
        asker.stdin.flush()
    for asker in askers:
        with asker:
            assert asker.wait() == 0
    ids = [signal.id for signal, _ in home.signals.requests.signals()]
    assert len(ids) == 100
    for name in "ab":
        assert [each for each in ids if each[0] == name] == [f"{name}-{number}" for number in range(50)]


@pytest.mark.parametrize(
    "content", ['{"signal": {"id": 7, "type": "log"}}', '{"signal": 1}', "{}", "null", '{"x": {}}']
)
def test_a_request_that_makes_no_sense_is_put_aside_and_the_others_are_found(tmp_path: Path, content: str) -> None:
    home = LakeHome.create(tmp_path / "lake")
    home.signals.requests.ask_signal(Signal("a", "log"))
    bad = home.lake / "_tailrace" / "requests" / "0.json"
    bad.write_text(content)
    assert [signal.id for signal, _ in home.signals.requests.signals()] == ["a"]
    assert not bad.exists()
