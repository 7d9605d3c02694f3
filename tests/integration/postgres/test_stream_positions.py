"""What a slot can still send, how much of it would be skipped, and a stream that begins at exactly one commit."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until

from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.offsets import Counted
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")


@pytest.fixture
def source(conn: psycopg.Connection, dsn: str) -> PostgresSource:
    conn.execute("create table t (id int primary key)")
    return PostgresSource(dsn)


@pytest.fixture
def claim(source: PostgresSource) -> Claim:
    made = source.claim(None)
    source.prepare(made, [T], None)
    return made


def insert(conn: psycopg.Connection, *ids: int) -> None:
    for number in ids:
        conn.execute("insert into t values (%s)", [number])


def commits(conn: psycopg.Connection, claim: Claim) -> list[int]:
    """Where the waiting commits begin, as the server tells it."""
    query = "select data from pg_logical_slot_peek_binary_changes(%s, null, null, 'proto_version', '1', "
    query += "'publication_names', %s) where get_byte(data, 0) = 67"
    found = conn.execute(query, [claim["slot"], claim["publication"]]).fetchall()
    return [int.from_bytes(data[2:10], "big") for (data,) in found]


def captured(source: PostgresSource, claim: Claim, log: Path) -> list[int]:
    """The commits that a log has after it has caught up."""
    now = source.now().ordinal
    with Capture(source, claim, log) as capture:
        wait_until(lambda: capture.error or (capture.is_streaming and capture.head.ordinal >= now))
        assert capture.error is None, capture.error
    reader = LogReader(log)
    return list(reader.transactions(0, reader.head.seq).column("commit_ordinal").to_pylist())


def test_a_slot_tells_from_where_on_it_can_send_and_who_reads_it(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    insert(conn, 1)
    (confirmed,) = conn.execute("select confirmed_flush_lsn::text from pg_replication_slots").fetchone() or ()
    served = source.offsets().served(claim)
    assert served.oldest is not None
    assert source.format(served.oldest) == served.facts["confirmed"] == confirmed
    assert (served.problem, served.facts["wal_status"]) == (None, "reserved")
    assert served.newest >= served.oldest
    with Capture(source, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.is_streaming)
        assert "is being read by process" in (source.offsets().served(claim).problem or "")
    gone = source.offsets().served({**claim, "slot": "no_such_slot"})
    assert (gone.oldest, gone.problem) == (None, "there is no slot no_such_slot")


def test_transactions_before_a_position_are_counted_and_stay_where_they_are(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim
) -> None:
    insert(conn, 1, 2, 3, 4)
    first, second, third, _ = commits(conn, claim)
    keeper = source.offsets()
    assert keeper.count(claim, 0, SourcePosition(third)) == Counted(2)
    assert keeper.count(claim, 0, SourcePosition(third + 1)) == Counted(3)
    assert keeper.count(claim, first, SourcePosition(third)) == Counted(1)
    assert keeper.count(claim, second, SourcePosition(third)) == Counted(0)
    assert keeper.count(claim, 0, source.now()) == Counted(4)
    assert keeper.count({**claim, "slot": "no_such_slot"}, 0, source.now()) is None
    assert len(commits(conn, claim)) == 4


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_stream_that_skips_begins_with_the_commit_at_the_position_and_stays_so_after_a_restart(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim, tmp_path: Path, *, is_exact: bool
) -> None:
    insert(conn, 1, 2, 3)
    first, second, third = commits(conn, claim)
    skipping = source.offset_words.skip(claim, SourcePosition(second if is_exact else first + 1))
    assert source.offset_words.skip(skipping, None) == claim
    source.require_continuity(skipping, SourcePosition(0))
    assert captured(source, skipping, tmp_path / "log") == [second, third]
    insert(conn, 4)
    again = captured(source, skipping, tmp_path / "log")
    assert (again[:2], len(again)) == ([second, third], 3)


def test_a_position_that_the_slot_has_left_is_a_gap(
    conn: psycopg.Connection, source: PostgresSource, claim: Claim
) -> None:
    insert(conn, 1, 2)
    first, _ = commits(conn, claim)
    conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [claim["slot"]])
    with pytest.raises(DefiniteError, match="another process read from it"):
        source.require_continuity(source.offset_words.skip(claim, SourcePosition(first)), SourcePosition(1))
    source.require_continuity(source.offset_words.skip(claim, source.now()), SourcePosition(1))


def test_only_a_slot_that_is_there_and_that_no_one_reads_is_taken_over(
    conn: psycopg.Connection, dsn: str, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    slot, publication = claim["slot"], claim["publication"]
    adopting = PostgresSource(dsn, slot=slot, publication=publication)
    taken = adopting.offsets().adopt(None)
    assert (taken.claim["slot"], taken.claim["owns_slot"], taken.leave) == (slot, False, None)
    own = adopting.claim(None) | {"slot": "ours", "owns_slot": True, "publication": "ours", "owns_publication": True}
    moved = PostgresSource(dsn, slot=slot).offsets().adopt(own)
    assert (moved.claim["slot"], moved.claim["publication"], moved.sends_alike) == (slot, "ours", True)
    assert moved.leave is not None
    assert (moved.leave["slot"], moved.leave["owns_slot"], moved.leave["owns_publication"]) == ("ours", True, False)
    other = adopting.offsets().adopt(own)
    assert (other.claim["publication"], other.claim["owns_publication"], other.sends_alike) == (
        publication,
        False,
        False,
    )
    assert other.leave is not None
    assert other.leave["owns_publication"]
    with pytest.raises(DefiniteError, match="there is no slot gone"):
        PostgresSource(dsn, slot="gone", publication=publication).offsets().adopt(None)
    with pytest.raises(DefiniteError, match="publication gone does not exist"):
        PostgresSource(dsn, slot=slot, publication="gone").offsets().adopt(None)
    with Capture(source, claim, tmp_path / "log") as capture:
        wait_until(lambda: capture.is_streaming)
        with pytest.raises(DefiniteError, match="is being read by process") as caught:
            adopting.offsets().adopt(None)
        assert caught.value.hint == "stop the connector that reads it first"
