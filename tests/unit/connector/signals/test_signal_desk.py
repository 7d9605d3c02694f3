"""The desk: signals of every channel enter the book once, and the desk says what they ask for."""

from __future__ import annotations

import json
import os
import signal as signals
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.doors.capturing import capturing
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource

import tailrace
from tailrace.connector.connector import Connector
from tailrace.connector.events import CopyNotified
from tailrace.connector.signals.desk import SignalDesk
from tailrace.connector.signals.orders import Log, PauseSnapshot, StopSnapshot
from tailrace.connector.signals.sender import lake_signals
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.log.reader import LogReader
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings

TAKE = """
import sys
from pathlib import Path
from tailrace.connector.signals.desk import SignalDesk
from tailrace.lake.home import LakeHome
from tailrace.settings import ConnectorSettings
lake, file = map(Path, sys.argv[1:])
desk = SignalDesk(LakeHome.find(lake), ConnectorSettings(lake, signal_file=file), None)
print(*(each.id for each in desk.take(None)))
desk.close()
"""


@pytest.fixture
def home(tmp_path: Path) -> LakeHome:
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    return home


@contextmanager
def desk_of(
    home: LakeHome, file: Path | None = None, table: TableId | None = None, *, is_guest: bool = False
) -> Iterator[SignalDesk]:
    name = None if table is None else str(table)
    settings = ConnectorSettings(home.lake, signal_file=file, signal_table=name, is_guest=is_guest)
    with closing(SignalDesk(home, settings, ScriptedSource.decode)) as desk:
        yield desk


def line(id_: str) -> str:
    return json.dumps({"id": id_, "type": "log", "data": {"message": id_}}) + "\n"


def test_a_signal_from_another_process_waits_and_is_taken_up_once(home: LakeHome) -> None:
    first = tailrace.signal(home.lake, "stop-snapshot", {"data-collections": ["a.b"]})
    second = tailrace.signal(str(home.lake), "pause-snapshot", id="mine")
    assert second == "mine"
    assert [record.state for record in lake_signals(home)] == [SignalState.WAITING] * 2
    with desk_of(home) as desk:
        taken = desk.take(None)
        assert [(each.id, each.order) for each in taken] == [
            (first, StopSnapshot(("a.b",), "incremental")),
            ("mine", PauseSnapshot((), "incremental")),
        ]
        tailrace.signal(home.lake, "log", {"message": "the same id again"}, id="mine")
        assert desk.take(None) == []
        assert desk.open_signals() == taken
        desk.set(first, SignalState.DONE, "nothing was being copied")
    with desk_of(LakeHome.find(home.lake)) as desk:
        assert [each.id for each in desk.open_signals()] == ["mine"]
    assert [record.channel for record in lake_signals(home)] == ["request", "request"]


def test_what_makes_no_sense_is_refused_before_anything_is_written(home: LakeHome, tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="invalid signal: data-collections is required"):
        tailrace.signal(home.lake, "execute-snapshot")
    with pytest.raises(DefiniteError, match="is not a Tailrace lake"):
        tailrace.signal(tmp_path / "elsewhere", "pause-snapshot")
    assert lake_signals(home) == []
    assert not (home.lake / "_tailrace" / "requests").exists()


def test_signals_of_all_channels_enter_one_book_with_the_places_of_their_channels(
    home: LakeHome, tmp_path: Path
) -> None:
    file, script = tmp_path / "signals.jsonl", Script(tmp_path / "shop.jsonl")
    script.create_table("ops.signals", {"id": "string", "type": "string", "data": "string"}, key=["id"])
    source, table = ScriptedSource(str(script.path)), TableId("ops", "signals")
    claim = source.claim(None)
    with desk_of(home, file, table) as desk:
        desk.begin(None)
        assert desk.seq == 0
    source.prepare(claim, [table], None)
    with capturing(source, claim, home.log) as captured:
        script.transaction([Insert("ops.signals", {"id": "row", "type": "log", "data": '{"message": "m"}'})])
        script.transaction([Insert("ops.signals", {"id": "bad", "type": "lgo", "data": None})])
        file.write_text(line("line") + "{\n")
        tailrace.signal(home.lake, "log", {"message": "m"}, id="request")
        captured.catch_up()
        with desk_of(home, file, table) as desk:
            desk.begin(LogReader(home.log))
            taken = desk.take(LogReader(home.log))
            assert [(each.id, each.order) for each in taken] == [
                ("request", Log("m")),
                ("line", Log("line")),
                ("row", Log("m")),
            ]
            assert desk.seq == LogReader(home.log).head.seq
        with desk_of(home, file, table) as desk:
            assert desk.seq == LogReader(home.log).head.seq, "in the book with the signals"
            assert desk.take(LogReader(home.log)) == []
            script.transaction([Insert("ops.signals", {"id": "row 2", "type": "log", "data": '{"message": "m"}'})])
            captured.catch_up()
            with desk_of(home, is_guest=True) as guest:
                assert guest.take(LogReader(home.log)) == [], "it does not know of the table"
                assert guest.seq == LogReader(home.log).head.seq - 1, "what a guest does not read stays in the log"
            with desk_of(home) as stranger:
                assert stranger.seq is None, "the table is no longer read"
            assert [each.id for each in desk.take(LogReader(home.log))] == ["row 2"]
    rejected = [record for record in lake_signals(home) if record.state is SignalState.REJECTED]
    assert [(record.channel, record.signal.data) for record in rejected] == [("file", ""), ("table", "")]
    assert str(rejected[1].result).startswith("type: unknown 'lgo'")


def test_a_notification_is_in_the_journal_when_it_is_told(home: LakeHome) -> None:
    connector = Connector(ConnectorSettings(home.lake), ScriptedSource("nowhere"))
    told = []
    connector.subscribe(lambda event: told.append((event, home.signals.notifications.all())))
    connector._control.home = home
    notification = Notification(CopyStep.STARTED, 1, "signal")
    connector._tell(CopyNotified(notification))
    assert told == [(CopyNotified(notification), [notification])]


@pytest.mark.parametrize("point", ["file.draft", "signals.entered"])
def test_killed_between_any_two_writes_a_desk_loses_no_signal_and_takes_none_twice(
    home: LakeHome, tmp_path: Path, point: str
) -> None:
    file = tmp_path / "signals.jsonl"
    file.write_text(line("a") + line("b"))
    tailrace.signal(home.lake, "log", {"message": "m"}, id="request")
    command = [sys.executable, "-c", TAKE, str(home.lake), str(file)]
    killed = subprocess.run(command, env=os.environ | {"TAILRACE_FAILPOINT": point}, capture_output=True, check=False)
    assert killed.returncode == -signals.SIGKILL
    entered = [record.signal.id for record in home.signals.book.records()]
    assert entered == ([] if point == "file.draft" else ["request", "a", "b"])
    with file.open("a") as more:
        more.write(line("c"))
    with desk_of(LakeHome.find(home.lake), file) as desk:
        assert [each.id for each in desk.take(None)] == (["c"] if entered else ["request", "a", "b", "c"])
        assert sorted(each.id for each in desk.open_signals()) == ["a", "b", "c", "request"]
        assert desk.take(None) == []
    assert list(home.signals.requests.signals()) == []
