"""Transfers between accounts in several tables: in every cut the money is all there, and what is referred to exists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.bank import AUDIT, TABLES, audit, fine, open_bank, open_for_business
from tests.running import Running, running

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.model.position import SourcePosition
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

EACH = 20
FINE = fine(3 * EACH)


@pytest.fixture
def bank(database: str, tmp_path: Path) -> Iterator[Running]:
    """A bank with a connector that publishes as often as it can."""
    open_bank(database, EACH)
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1)
    with running(settings, source_of(database)) as run:
        run.catch_up()
        yield run


def found_in(cut: tailrace.Cut[Any]) -> tuple[int, ...]:
    frames = {name: cut.tables[name] for name in TABLES}
    rows = {name: f.toArrow() if hasattr(f, "toArrow") else f.to_arrow_table() for name, f in frames.items()}
    return audit(rows)


def do_business(database: str, bank: Running, transactions: int, cuts: int) -> int:
    """Until there are so many transactions and cuts. Meanwhile the newest cut is looked at again and again, published
    and live in turn; returns how often."""
    looks = 0
    with open_for_business(database, EACH) as counts, closing(connect()) as connection:
        while sum(counts) < transactions or len(LakeHome(bank.lake).cuts.all()) < cuts:
            newest = tailrace.cut(connection, bank.lake, published=looks % 2 == 0, register=False)
            assert found_in(newest) == FINE, newest.text
            looks += 1
    with psycopg.connect(database) as conn:
        assert conn.execute(AUDIT).fetchone() == FINE
    bank.catch_up()
    return looks


def points(bank: Running, wanted: int) -> list[tuple[int, SourcePosition]]:
    """Every cut that was published and so many transactions, spread over all that the log has."""
    published = LakeHome(bank.lake).cuts.all()
    found = {cut.seq: cut.position for cut in published}
    bank.reader.refresh()
    first, last = max(published[0].seq, bank.reader.oldest_seq), bank.reader.head.seq
    step = max(1, (last - first) // wanted)
    for seq in range(first, last + 1, step):
        found.setdefault(seq, bank.reader.position_of(seq))
    return sorted(found.items())


def check(session: Any, bank: Running, chosen: list[tuple[int, SourcePosition]]) -> None:
    # The newest first: Spark would lay later ones over the oldest, which it has open, and not look at the others.
    for seq, position in reversed(chosen):
        cut = tailrace.cut(session, bank.lake, as_of=position, register=False)
        assert (cut.seq, found_in(cut)) == (seq, FINE)


def test_in_every_cut_published_and_live_the_money_is_all_there_and_foreign_keys_hold(
    database: str, bank: Running, spark: SparkSession
) -> None:
    do_business(database, bank, transactions=100, cuts=3)
    chosen = points(bank, 12)
    check(spark, bank, chosen[len(chosen) // 2 :][:1])
    assert [tuple(row) for row in tailrace.cut(spark, bank.lake).sql(AUDIT).collect()] == [FINE]
    with closing(connect()) as connection:
        check(connection, bank, chosen)
        live = tailrace.cut(connection, bank.lake, as_of=chosen[len(chosen) // 2][1], register=False)
        assert live.sql(AUDIT).fetchall() == [FINE]


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_in_each_of_a_thousand_cuts_both_engines_find_the_money_and_the_foreign_keys(
    database: str, bank: Running, spark: SparkSession
) -> None:
    looks = do_business(database, bank, transactions=1000, cuts=50)
    chosen = points(bank, 1000)
    published = len(LakeHome(bank.lake).cuts.all())
    print(f"{looks} looks beside the writers; {len(chosen)} cuts, {published} of them published")
    assert len(chosen) >= 1000
    for session in (connect(), spark):
        check(session, bank, chosen)
