"""Kinds of source, found by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

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


@pytest.fixture
def postgres_again() -> Iterator[str]:
    """What takes Postgres's place gives it back."""
    found = kinds.source_class("postgres")
    path = f"{found.__module__}:{found.__qualname__}"
    yield path
    kinds.register("postgres", path)


def test_a_source_has_the_codec_of_its_kind() -> None:
    assert issubclass(kinds.source_class("postgres"), kinds.codec_of("postgres"))


def test_a_registered_class_is_its_own_codec(postgres_again: str) -> None:
    """Also where it takes the place of one that is known."""
    kinds.register("postgres", "tests.doors.scripted:ScriptedSource")
    assert kinds.codec_of("postgres") is ScriptedSource
    kinds.register("postgres", postgres_again)
    assert kinds.codec_of("postgres") is not ScriptedSource


def test_an_unknown_kind_has_no_codec() -> None:
    with pytest.raises(DefiniteError, match="unknown kind of source 'paper'"):
        kinds.codec_of("paper")
