"""A standby as the source while things happen to it: promoted under a running capture, its slot given up."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.test_capture import ids, reaches_now
from tests.postgres import wait_until
from tests.standby import Pair, pair_of

from tailrace.errors import GapError, MovedError
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.values import Claim, Problem
from tailrace.source.postgres.source import PostgresSource
from tailrace.source.postgres.stream.slot import find_slot

T = TableId("public", "t")


def ready(pair: Pair, source: PostgresSource) -> Claim:
    pair.run("create table t (id int primary key, body text); create publication p for table t")
    pair.catch_up()
    claim = source.claim(None)

    def obey(problem: Problem | None) -> None:
        if problem is not None:
            assert problem.hint == "on the primary: select pg_log_standby_snapshot();"
            pair.run("select pg_log_standby_snapshot()")

    source.prepare(claim, [T], None, obey)
    return claim


def test_a_standby_that_is_promoted_under_a_running_capture_is_continued_from(tmp_path: Path) -> None:
    with pair_of(18) as pair:
        source = PostgresSource(pair.standby.dsn(), publication="p")
        claim = ready(pair, source)
        with Capture(source, claim, tmp_path / "log") as capture:
            pair.run("insert into t values (1)")
            pair.catch_up()
            reaches_now(capture, source)
            pair.promote()
            with psycopg.connect(pair.standby.dsn(), autocommit=True) as conn:
                conn.execute("insert into t values (2)")
            wait_until(lambda: capture.has_ended, 60)
        assert isinstance(capture.error, MovedError)
        continued = source.require_continuity(claim, SourcePosition(capture.head.ordinal))
        assert (claim["timeline"], continued["timeline"]) == (1, 2)
        with Capture(source, continued, tmp_path / "log") as capture:
            with psycopg.connect(pair.standby.dsn(), autocommit=True) as conn:
                conn.execute("insert into t values (3)")
            reaches_now(capture, source)
        assert ids(source, tmp_path / "log") == [1, 2, 3]


@pytest.mark.parametrize("version", [pytest.param(16, marks=pytest.mark.proof), 18])
def test_a_slot_that_a_standby_gave_up_for_its_primary_is_told_with_the_remedy(version: int, tmp_path: Path) -> None:
    with pair_of(version, {"hot_standby_feedback": "off"}) as pair:
        source = PostgresSource(pair.standby.dsn(), publication="p")
        claim = ready(pair, source)
        pair.run("insert into t values (1)", "create table gone (id int)", "drop table gone")
        with Capture(source, claim, tmp_path / "log") as capture, psycopg.connect(pair.standby.dsn()) as conn:
            wait_until(lambda: capture.is_streaming, 30)
            pair.run("vacuum pg_class", "vacuum pg_attribute", "vacuum pg_type")
            wait_until(lambda: capture.has_ended, 60)
            slot = find_slot(conn, claim["slot"])
            assert slot is not None
            assert slot.wal_status == "lost"
        assert isinstance(capture.error, GapError)
        assert "the server removed catalog rows" in capture.error.message
        assert "hot_standby_feedback = on" in (capture.error.hint or "")


@pytest.mark.proof
def test_a_slot_that_a_standby_gave_up_for_the_wal_level_of_its_primary_is_told_so() -> None:
    with pair_of(18) as pair:
        source = PostgresSource(pair.standby.dsn(), publication="p")
        claim = ready(pair, source)
        pair.primary.stop()
        pair.primary._settings["wal_level"] = "replica"
        pair.primary.start()
        with psycopg.connect(pair.standby.dsn(), autocommit=True) as conn:
            wait_until(lambda: (slot := find_slot(conn, claim["slot"])) and slot.wal_status == "lost", 30)
        with pytest.raises(GapError, match="the server ran with another wal_level for a while") as caught:
            source.require_continuity(claim, SourcePosition(1))
        assert "wal_level = logical, on the primary too" in (caught.value.hint or "")
