"""What is hidden is in no message, however the message has it."""

from __future__ import annotations

import json
import logging

import pytest

from tailrace.connector.messages import JsonLines
from tailrace.errors import DefiniteError
from tailrace.hidden import MASK, hide, masked

FILE = "root:x:0:0:root:/root:/bin/bash\nlist of all users, by name\nann\n"


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter2", "user ann, password hunter2!", f"user ann, password {MASK}!"),
        ("Hunter2", "host HUNTER2:5432", f"host {MASK}:5432"),
        ("a b\nc", "'a   b c' and a b", f"'{MASK}' and a b"),
        ("app", "no database app, an apple", f"no database {MASK}, an apple"),
        ("it's \\ here", f"path {'it' + chr(39) + 's ' + chr(92) + ' here'!r}", f'path "{MASK}"'),
        ('say "x" now', 'role "say ""x"" now"', f'role "{MASK}"'),
        ("x" * 100, f'role "{"x" * 63}" does not exist', f'role "{MASK}" does not exist'),
        ("first.example,second.example", "first.example:1,second.example:2", f"{MASK}:1,{MASK}:2"),
        (FILE, FILE, f"{MASK}\n"),
        (FILE, "root:x:0:0:root:/root:/bin/bash", MASK),
        (FILE, "list of all users, by name", MASK),
        (FILE, "list the databases by name", "list the databases by name"),
        ("", "nothing", "nothing"),
        (" \n", "a b", "a b"),
    ],
)
def test_what_is_hidden_is_masked_and_other_words_stay(value: str, text: str, shown: str) -> None:
    hide(value)
    assert masked(text) == shown


def test_errors_and_logged_lines_have_nothing_of_it() -> None:
    hide("time-canary")
    hide("message")
    error = DefiniteError("no user TIME-canary", "create time-canary")
    assert (error.message, error.hint, str(error)) == (f"no user {MASK}", f"create {MASK}", f"no user {MASK}")
    record = logging.makeLogRecord({"msg": "user %s", "args": ("time-canary",), "event": {"done": ["time-canary"]}})
    fields = json.loads(JsonLines().format(record))
    # Names of fields are ours.
    assert (fields["message"], fields["event"]) == (f"user {MASK}", {"done": [MASK]})


def test_the_newest_stay_hidden_when_there_are_too_many() -> None:
    for value in ("first-one", "second-one", "first-one", "third-one"):
        hide(value, characters_max=27)
    assert masked("first-one second-one third-one") == f"{MASK} second-one {MASK}"
