"""What a program reads is whole; what is to be pasted is a line of its own; what a terminal has no room for says so."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from rich.table import Table

from tailrace.cli.console import PlainConsole, fitting, print_table
from tailrace.cli.lake.query import print_rows
from tailrace.cli.sync.doctor import render
from tailrace.source.door.tables import Check

LONG = "select pg_drop_replication_slot('tailrace_" + "shop_" * 40 + "355ac0de');"


def console(*, is_terminal: bool) -> PlainConsole:
    return PlainConsole(file=StringIO(), width=80, force_terminal=is_terminal, color_system=None, legacy_windows=False)


def text(printed: PlainConsole) -> str:
    assert isinstance(printed.file, StringIO)
    return printed.file.getvalue()


def test_a_table_that_a_program_reads_has_every_value_whole_and_a_line_for_each_row() -> None:
    table = Table("id", "type", "result", box=None)
    for number in range(20):
        table.add_row(str(number), "execute-snapshot", LONG)
    printed = console(is_terminal=False)
    print_table(printed, table)
    lines = text(printed).splitlines()
    assert len(lines) == 21
    assert all(line.split()[1] == "execute-snapshot" and line.endswith(LONG) for line in lines[1:])


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_sql_of_the_doctor_is_never_broken(is_terminal: bool) -> None:
    printed = console(is_terminal=is_terminal)
    render(
        [Check("idle slot", None, "x " * 100, LONG), Check("read access", False, "no", f"grant a;\n{LONG}")], printed
    )
    assert [line.strip() for line in text(printed).splitlines() if LONG in line] == [LONG, LONG]
    assert "grant a;" in [line.strip() for line in text(printed).splitlines()]


def test_a_query_that_a_program_reads_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["id", "note"], lambda rows_max=None: iter([(1, LONG), (2, "short")]), True)
    captured = capsys.readouterr()
    assert LONG in captured.out
    assert captured.err == ""


def test_a_query_on_a_terminal_has_a_line_for_each_row_and_says_what_was_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for rows, is_cut in (([(1, "paid", LONG), (2, "open", "short")], True), ([(1, "paid", "short")], False)):
        print_rows(["id", "status", "note"], lambda rows_max=None, rows=rows: iter(rows), True)
        captured = capsys.readouterr()
        assert len(captured.out.splitlines()) == len(rows) + 4
        assert ("…" in captured.out) == is_cut
        assert "│  1 │ paid   │" in captured.out, "only what is too wide is cut"
        assert ("--csv, --json or a pipe" in captured.err) == is_cut
    numbers = tuple(range(100_000, 100_030))
    print_rows([f"c{number}" for number in numbers], lambda rows_max=None: iter([numbers]), True)
    assert capsys.readouterr().out.splitlines()[3].replace("│", " ").split() == [*map(str, numbers)], "none is hidden"


@pytest.mark.parametrize(
    ("widths", "room", "widest"),
    [([2, 4, 150], 70, 64), ([2, 4, 10], 70, 10), ([50, 50], 70, 35), ([], 70, 0), ([5, 60, 60], 65, 30)],
)
def test_only_the_widest_columns_are_cut(widths: list[int], room: int, widest: int) -> None:
    assert fitting(widths, room) == widest
    assert sum(min(width, widest) for width in widths) <= room
