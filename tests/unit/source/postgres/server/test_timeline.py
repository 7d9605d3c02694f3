"""Where timelines were left, as the server's history files say it."""

from __future__ import annotations

import pytest

from tailrace.errors import GapError, TailraceError, TransientError
from tailrace.source.postgres.server.identity import Identity
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import parse_history, require_wal
from tailrace.source.postgres.stream.protocol import StreamOptions, plugin_options


def test_a_history_says_where_each_earlier_timeline_was_left() -> None:
    content = b"1\t0/5000000\tno recovery target specified\n\n2\tA/FF\tbefore 2026-11-01 00:00:00+00\n"
    assert parse_history(content) == {1: Lsn(0x5000000), 2: Lsn.parse("A/FF")}


def test_each_server_is_asked_for_what_it_can_send() -> None:
    asked = {version: plugin_options(version * 10000, StreamOptions(), ["p"]) for version in range(12, 19)}
    assert [options["proto_version"] for options in asked.values()] == ["1", "1", "2", "3", "4", "4", "4"]
    assert [version for version, options in asked.items() if "streaming" in options] == [14, 15, 16, 17, 18]
    assert [version for version, options in asked.items() if "messages" in options] == [14, 15, 16, 17, 18]
    assert not any("two_phase" in options or "origin" in options for options in asked.values())


@pytest.mark.parametrize(("is_standby", "kind"), [(False, GapError), (True, TransientError)])
def test_less_wal_than_the_log_has_is_a_gap_and_of_a_standby_a_reason_to_wait(
    is_standby: bool, kind: type[TailraceError]
) -> None:
    found = Identity("7", 1, "shop", Lsn.parse("0/2000060"), is_standby)
    require_wal(found, Lsn.parse("0/2000060"))
    # A message outside of transactions is logged up to the byte after its start.
    require_wal(found, Lsn.parse("0/2000061"))
    with pytest.raises(kind, match="ends at 0/2000060, and our log has changes up to 0/2000068"):
        require_wal(found, Lsn.parse("0/2000068"))
