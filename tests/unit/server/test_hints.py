"""Hints for a server's connectors name properties, not options of a command line."""

from __future__ import annotations

import pytest

from tailrace.configuration.properties import property_of
from tailrace.errors import DefiniteError
from tailrace.server import hints
from tailrace.server.api.errors import text_of
from tailrace.server.hints import in_properties
from tailrace.server.supervisor.hosted import ended_by


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (
            "repair the lake with --snapshot-mode when_needed: every table is copied again",
            "repair the lake with snapshot.mode=when_needed: every table is copied again",
        ),
        ("leave it out: --exclude public.t", "leave it out: table.exclude.list=public.t"),
        ("if rows are only added: --append-only public.t", "if rows are only added: append.only.tables=public.t"),
        ("its last good state: --as-of 0/16B3748", "its last good state: as_of=0/16B3748"),
        ("or have it sent: --generated-columns", "or have it sent: columns.generated=true"),
        ("and more with more --readers; end some", "and more with more readers.max; end some"),
        ("tailrace serve --spark-conf x=y", "tailrace serve --spark-conf x=y"),
        ("--slot-size and a--slot", "--slot-size and a--slot"),
    ],
)
def test_an_option_becomes_the_property_that_means_the_same(hint: str, said: str) -> None:
    assert in_properties(hint) == said
    error = DefiniteError("broken", hint)
    assert ended_by(error).trace == text_of(error) == f"broken\nhint: {said}"


def test_every_property_that_a_hint_names_is_one() -> None:
    names = {each.partition("=")[0] for each in hints.names().values()} - {"as_of"}
    assert all(property_of(name) is not None for name in names)
