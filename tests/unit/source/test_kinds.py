"""Kinds of source, found by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.doors.scripted import ScriptedSource

from tailrace.errors import DefiniteError
from tailrace.source import kinds


def test_the_codec_of_every_kind_is_found_without_a_driver() -> None:
    """Readers of a lake need it where no database is reached."""
    program = (
        "import sys\n"
        "from tailrace.source import kinds\n"
        "print([kinds.codec_of(kind).kind for kind in kinds.known()] == kinds.known(), 'psycopg' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "False"]


def test_a_source_has_the_codec_of_its_kind() -> None:
    assert issubclass(kinds.source_class("postgres"), kinds.codec_of("postgres"))


def test_a_registered_class_is_its_own_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it takes the place of one that is known."""
    monkeypatch.setattr(kinds, "_KINDS", {"postgres": "nowhere:Nothing"})
    kinds.register("postgres", "tests.doors.scripted:ScriptedSource")
    assert kinds.codec_of("postgres") is ScriptedSource


def test_an_unknown_kind_has_no_codec() -> None:
    with pytest.raises(DefiniteError, match="unknown kind of source 'paper'"):
        kinds.codec_of("paper")
