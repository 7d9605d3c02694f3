"""What a person sees of a connector's events."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tailrace.cli.sync.progress import TerminalProgress
from tailrace.connector.events import (
    ConnectorState,
    Event,
    SnapshotProgressed,
    StateChanged,
    StreamProgressed,
    TableChanged,
    TablesLanded,
    TroubleChanged,
)
from tailrace.model.copy_progress import TableProgress
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

BLOCKED = 'the log in [lake]/log has reached its quota of 67108864 bytes: "lake" has read up to transaction 5'
STATUS = StreamProgressed(
    PublishedCut(123_456, SourcePosition(7), {}), "16/B374D848", 223_456, 1234.0, 123_456_789, 12.3
)


def shown(progress: TerminalProgress, console: Console, *events: Event) -> str:
    """The last picture of the line."""
    for event in events:
        progress.show(event)
    console.file = text = StringIO()
    progress.show(StateChanged(ConnectorState.STOPPED))
    return " ".join(text.getvalue().split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_reason_is_shown_while_capture_is_blocked_and_gone_when_it_continues(width: int) -> None:
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False)
    with TerminalProgress(console) as progress:
        assert BLOCKED in shown(progress, console, TroubleChanged(BLOCKED), STATUS)
        continuing = shown(progress, console, TroubleChanged(None), STATUS)
    assert "transaction 123,456 of 223,456 1,234 changes/s" in continuing
    assert "quota" not in continuing


def test_what_is_said_is_text_and_not_markup() -> None:
    console = Console(file=(text := StringIO()), width=80)
    with TerminalProgress(console) as progress:
        progress.show(TroubleChanged(BLOCKED))
        progress.show(
            TableChanged(TableId("public", "[red]t"), TableRecord(TableState.ERRORED, "a [bold]reason", "a [hint]"))
        )
    assert text.getvalue().splitlines() == [
        f"· {BLOCKED}",
        "· public.[red]t is in error and left out from now on: a [bold]reason",
        "· hint: a [hint]",
    ]


def test_without_a_terminal_the_end_says_how_far_it_got() -> None:
    console = Console(file=(text := StringIO()), width=120)
    earlier = replace(STATUS, cut=PublishedCut(7, SourcePosition(1), {}))
    with TerminalProgress(console) as progress:
        for event in (earlier, STATUS, StateChanged(ConnectorState.STOPPED)):
            progress.show(event)
    assert [line.split("  ")[2] for line in text.getvalue().splitlines()] == [
        "transaction 7 of 223,456",
        "transaction 123,456 of 223,456",
    ]


def test_the_longest_transaction_of_a_copy_is_shown_with_its_rows() -> None:
    console = Console(file=(text := StringIO()), width=120)
    tables = [
        TableProgress(TableId("public", "a"), 50, 100, 100, 0.5, 2.25),
        TableProgress(TableId("public", "b"), 50, 100, 100, 1.5, 1.5),
    ]
    with TerminalProgress(console) as progress:
        progress.show(SnapshotProgressed(tables))
    assert text.getvalue() == "· 100 of about 200 rows copied, no state of the source held for longer than 2.2 s\n"


def test_a_line_of_a_copy_says_how_fast_it_is_and_how_long_it_will_take() -> None:
    console = Console(file=(text := StringIO()), width=160)
    tables = [TableProgress(TableId("public", "a"), 5, 20, 4000, 0.5, 0.75, rows_read=1000, seconds=2.0)]
    with TerminalProgress(console) as progress:
        progress.show(SnapshotProgressed(tables))
    assert "1,000 of about 4,000 rows copied (25 %), 500 a second, about 6 s left, no state" in text.getvalue()


def test_a_table_that_is_copied_beside_the_stream_has_a_bar_above_its_line_until_it_has_landed() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=160, color_system=None, legacy_windows=False)
    table = TableId("public", "again")
    copying = SnapshotProgressed([TableProgress(table, 5, 20, 4000, rows_read=1000, seconds=2.0)])
    with TerminalProgress(console) as progress:
        both = shown(progress, console, STATUS, copying, STATUS)
        landed = shown(progress, console, STATUS, copying, TablesLanded([table], "16/B3"), STATUS)
    assert "public.again" in both
    assert "1,000 of about 4,000 rows, 500 a second" in both
    assert "transaction 123,456 of 223,456" in both
    assert "of about" not in landed
    assert "transaction 123,456 of 223,456" in landed


def test_a_copy_that_landed_before_the_first_transaction_names_no_position() -> None:
    console = Console(file=(text := StringIO()), width=160)
    with TerminalProgress(console) as progress:
        progress.show(TablesLanded([TableId("public", "a")], None))
    assert text.getvalue() == "· snapshot of 1 table\n"
