"""Hearing what another process writes into a file of messages."""

from __future__ import annotations

import json
from pathlib import Path

from tailrace.server.lake_host.messages import EVENTS, MessageTail


def _line(kind: str, **event: object) -> str:
    message = {"time": "2026-11-19T12:00:00.000", "level": "info", "logger": EVENTS, "message": kind, "event": event}
    return json.dumps(message) + "\n"


def test_each_message_is_heard_once_and_half_a_line_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "tailrace.log"
    tail = MessageTail(path)
    assert tail.read() == []
    path.write_text(_line("CutPublished", seq=1) + _line("CutPublished", seq=2)[:20])
    assert [each.fields for each in tail.read()] == [{"seq": 1}]
    path.write_text(_line("CutPublished", seq=1) + _line("CutPublished", seq=2))
    assert [each.fields for each in tail.read()] == [{"seq": 2}]
    assert tail.read() == []


def test_a_file_that_was_put_aside_is_followed_by_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "tailrace.log"
    tail = MessageTail(path)
    path.write_text(_line("CutPublished", seq=1) * 3)
    assert len(tail.read()) == 3
    path.rename(tmp_path / "tailrace.log.1")
    path.write_text(_line("CutPublished", seq=2))
    assert [each.fields for each in tail.read()] == [{"seq": 2}]


def test_lines_of_other_loggers_and_what_is_no_message_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "tailrace.log"
    path.write_text('{"logger": "tailrace.other"}\nno JSON\n[1]\n{"logger": "tailrace.connector"}\n' + _line("X"))
    assert [each.kind for each in MessageTail(path).read()] == ["X"]
