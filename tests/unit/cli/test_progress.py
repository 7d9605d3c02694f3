"""The line that lives while changes stream: it says what capture waits for, and no longer than that."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tailrace.cli.progress import TerminalWatcher
from tailrace.connector.status import Phase, StreamStatus
from tailrace.model.cut import PublishedCut
from tailrace.model.lsn import Lsn

BLOCKED = 'the log in [lake]/log has reached its quota of 67108864 bytes: "lake" has read up to transaction 5'
STATUS = StreamStatus(PublishedCut(123_456, Lsn(0x16B374D848), 0, {}), 223_456, 1234.0, 123_456_789, 12.3, BLOCKED)


def shown(watcher: TerminalWatcher, console: Console, status: StreamStatus) -> str:
    """The last picture of the line."""
    watcher.streaming(status)
    console.file = text = StringIO()
    watcher.phase(Phase.STOPPED)
    return " ".join(text.getvalue().split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_reason_is_shown_while_capture_is_blocked_and_gone_when_it_goes_on(width: int) -> None:
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False)
    with TerminalWatcher(console) as watcher:
        assert BLOCKED in shown(watcher, console, STATUS)
        going_on = shown(watcher, console, replace(STATUS, problem=None))
    assert "transaction 123,456 of 223,456 1,234 changes/s" in going_on
    assert "quota" not in going_on


def test_what_is_said_is_text_and_not_markup() -> None:
    console = Console(file=(text := StringIO()), width=80)
    with TerminalWatcher(console) as watcher:
        watcher.say(BLOCKED)
    assert text.getvalue() == f"· {BLOCKED}\n"
