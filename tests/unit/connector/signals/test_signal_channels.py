"""Signals from a file and from a table of the source: each once, in order, through rotations and restarts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.doors.capturing import Captured, capturing
from tests.doors.script import Delete, Insert, Script, Update
from tests.doors.scripted import ScriptedSource

from tailrace.connector.signals.channels import FileChannel, FileLimits, TableChannel
from tailrace.errors import DefiniteError
from tailrace.lake.records.signal_book import Place
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId

TABLE = "ops.signals"


class Follower:
    """Reads a file as the connector does, with the place in a book that survives it."""

    def __init__(self, path: Path, limits: FileLimits | None = None) -> None:
        self._path = path
        self._file = FileChannel(path, limits or FileLimits())
        self._place: Place | None = None

    def close(self) -> None:
        self._file.close()

    def restart(self) -> None:
        self.close()
        self._file = FileChannel(self._path)

    def ids(self) -> list[str]:
        """The ids that two reads bring: one may only find that the file is another one."""
        found = []
        for _ in range(2):
            arrivals, self._place = self._file.read(self._place)
            found += [each.reason or each.signal.id for each in arrivals]
        return found


def line(id_: str) -> str:
    return f'{{"id": "{id_}", "type": "pause-snapshot"}}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signals.jsonl"


@pytest.fixture
def follower(path: Path) -> Iterator[Follower]:
    with closing(Follower(path)) as follower:
        yield follower


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_are_read_once_also_after_a_restart_and_an_unfinished_one_waits_for_its_end(
    path: Path, follower: Follower
) -> None:
    assert follower.ids() == []
    append(path, line("a") + "\n" + line("b") + line("c")[:10])
    assert follower.ids() == ["a", "b"]
    assert follower.ids() == []
    follower.restart()
    assert follower.ids() == []
    append(path, line("c")[10:])
    assert follower.ids() == ["c"]


def test_a_line_that_cannot_be_read_is_rejected_and_the_next_one_is_read(path: Path, follower: Follower) -> None:
    path.write_bytes(b"{nonsense\n\xff\xfe\n" + line("a").encode())
    first, second, last = follower.ids()
    assert first.startswith("line: invalid JSON")
    assert second.startswith("line: invalid JSON")
    assert last == "a"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_in_the_place_of_the_other_is_read_from_its_start(
    path: Path, follower: Follower, *, restarts: bool
) -> None:
    append(path, line("a"))
    assert follower.ids() == ["a"]
    if restarts:
        follower.restart()
    path.rename(path.with_suffix(".1"))
    assert follower.ids() == []
    append(path, line("a") + line("b"))
    assert follower.ids() == ["a", "b"], "although it begins like the other"


def test_what_was_appended_just_before_a_rotation_is_not_lost(path: Path, follower: Follower) -> None:
    append(path, line("a"))
    assert follower.ids() == ["a"]
    append(path, line("b") + "unfinished")
    path.rename(path.with_suffix(".1"))
    append(path, line("c"))
    assert follower.ids() + follower.ids() == ["b", "c"]


def test_a_truncated_file_is_read_from_its_start_also_if_it_has_grown_again(path: Path, follower: Follower) -> None:
    append(path, line("a") + line("b"))
    assert follower.ids() == ["a", "b"]
    os.truncate(path, 0)
    append(path, line("c"))
    assert follower.ids() == ["c"]
    os.truncate(path, 0)
    append(path, line("d") + line("e") + line("f"))
    assert follower.ids() == ["d", "e", "f"]


def test_a_line_without_end_costs_no_memory_and_one_that_is_too_long_is_rejected(path: Path) -> None:
    with closing(Follower(path, FileLimits(line_bytes_max=100))) as follower:
        append(path, line("a") + "x" * 350)
        assert follower.ids() == ["a"]
        append(path, "\n" + line("b"))
        assert follower.ids() == ["line: must have at most 100 bytes", "b"]


def test_many_lines_are_read_bit_by_bit(path: Path) -> None:
    append(path, "".join(line(str(number)) for number in range(20)))
    file, place, found = FileChannel(path, FileLimits(read_bytes_max=100)), None, []
    while True:
        arrivals, place = file.read(place)
        if not arrivals:
            break
        assert len(arrivals) <= 4
        found += [each.signal.id for each in arrivals]
    file.close()
    assert found == [str(number) for number in range(20)]


def test_a_file_that_cannot_be_one_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="cannot be read as a file of signals"):
        FileChannel(tmp_path)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "shop.jsonl")
    script.create_table("shop.orders", {"id": "int"}, key=["id"])
    script.create_table(TABLE, {"name": "string", "what": "string", "how": "string"}, key=["name"])
    return script


@pytest.fixture
def captured(script: Script, tmp_path: Path) -> Iterator[Captured]:
    source = ScriptedSource(str(script.path))
    claim = source.claim(None)
    source.prepare(claim, [TableId.parse(TABLE), TableId("shop", "orders")], None)
    with capturing(source, claim, tmp_path / "log") as captured:
        captured.catch_up()
        yield captured


def signal_row(id_: str | None, type_: str = "log", data: str | None = None) -> Insert:
    return Insert(TABLE, {"name": id_, "what": type_, "how": data})


class TableFollower:
    """Reads the signal table from the log, with the place where its last read ended."""

    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self.restart()
        self._place = self._table.begin(None, None)

    def restart(self) -> None:
        self._table = TableChannel(TableId.parse(TABLE), ScriptedSource.decode)

    def found(self) -> list[tuple[str, str, str]]:
        self._captured.catch_up()
        arrivals, self._place = self._table.read(LogReader(self._captured.log), self._place)
        return [(each.reason or each.signal.id, each.signal.type, each.signal.data) for each in arrivals]


def test_rows_that_are_inserted_are_signals_by_the_place_of_their_columns(script: Script, captured: Captured) -> None:
    follower = TableFollower(captured)
    assert follower.found() == []
    script.transaction([signal_row("b", "log", "{}"), Insert("shop.orders", {"id": 1}), signal_row("a  ")])
    script.transaction([signal_row("c-open", "snapshot-window-open"), signal_row("c-close", "snapshot-window-close")])
    script.transaction([signal_row("c"), Update(TABLE, ("b",), {"what": "stop-snapshot"}), Delete(TABLE, ("a  ",))])
    assert follower.found() == [("b", "log", "{}"), ("a", "log", ""), ("c", "log", "")]
    assert follower.found() == []
    follower.restart()
    script.transaction([signal_row("d")])
    assert follower.found() == [("d", "log", "")]


def test_a_row_without_id_gets_one(script: Script, captured: Captured) -> None:
    follower = TableFollower(captured)
    script.transaction([signal_row("")])
    ((id_, type_, _),) = follower.found()
    assert len(id_) == 16
    assert type_ == "log"


def test_a_signal_table_may_be_altered_or_made_again_between_two_reads(script: Script, captured: Captured) -> None:
    follower = TableFollower(captured)
    script.transaction([signal_row("a")])
    script.alter(TABLE, rename={"what": "type"}, add={"at": "timestamp"})
    script.transaction([Insert(TABLE, {"name": "b", "type": "log"})])
    script.alter(TABLE, retype={"how": "binary"})
    script.transaction([Insert(TABLE, {"name": "c", "type": "log"})])
    script.drop_table(TABLE)
    script.create_table(TABLE, {"id": "string", "type": "string", "data": "string"}, key=["data"])
    captured.source.prepare({"name": next(iter(names(script)))}, [TableId.parse(TABLE)], None)
    script.transaction([Insert(TABLE, {"id": "d", "type": "log", "data": "{}"})])
    assert [id_ for id_, _, _ in follower.found()] == ["a", "b", "c", "d"]


def names(script: Script) -> dict[str, int]:
    return dict(ScriptedSource(str(script.path))._history().claims)


def test_what_is_older_than_our_interest_in_a_table_is_no_signal(script: Script, captured: Captured) -> None:
    script.transaction([signal_row("old")])
    captured.catch_up()
    table, reader = TableChannel(TableId.parse(TABLE), ScriptedSource.decode), LogReader(captured.log)
    begun = table.begin({"table": "ops.other", "log": reader.id, "seq": 0}, reader)
    assert table.begin(begun, None) == begun
    script.transaction([signal_row("new")])
    captured.catch_up()
    reader.refresh()
    assert [each.signal.id for each in table.read(reader, begun)[0]] == ["new"]
    assert [each.signal.id for each in table.read(reader, {**begun, "log": "another log"})[0]] == ["old", "new"]
