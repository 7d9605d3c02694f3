"""What `tailrace query` makes of values that are no plain ones."""

from __future__ import annotations

import json
import re
from datetime import date
from io import StringIO
from pathlib import Path

import pytest

import tailrace.cli
from tailrace.cli.console import PlainConsole
from tailrace.cli.lake.query import print_json, print_rows
from tailrace.errors import DefiniteError


@pytest.mark.parametrize("text", [":x:", "[red]b[/red]", r"\[red]b", "[/]", "a\\", "http://a:dog:b"])
def test_a_table_shows_names_and_values_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([f"n{text}"], lambda rows_max=None: iter([(text,)]), True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip("┃│ ") for line in (lines[1], lines[3])] == [f"n{text}", text]


def test_no_console_turns_words_between_colons_into_pictures() -> None:
    folder = Path(tailrace.cli.__path__[0])
    made = [file.name for file in folder.glob("*.py") if re.search(r"(?<!Plain)\bConsole\(", file.read_text())]
    assert made == ["console.py"]
    assert not PlainConsole(file=StringIO()).render_str(":dog:").spans
    assert PlainConsole(file=StringIO()).render_str(":dog:").plain == ":dog:"


def test_an_object_of_json_has_every_column_and_only_what_json_knows(capsys: pytest.CaptureFixture[str]) -> None:
    row = (float("nan"), [float("-inf"), 1.5], {date(2024, 1, 1): b"\x00"})
    print_json(["a", "A", "b"], lambda rows_max=None: iter([row]), True)
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found == {"a": "nan", "A": ["-inf", 1.5], "b": {"2024-01-01": "\\x00"}}
    with pytest.raises(DefiniteError, match="two columns are called id"):
        print_json(["id", "v", "id"], lambda rows_max=None: iter([(1, 2, 3)]), True)
