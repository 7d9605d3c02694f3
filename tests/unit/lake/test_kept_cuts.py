"""Which cuts a lake keeps, as it is asked again and again over a simulated week."""

from __future__ import annotations

from itertools import pairwise

from tailrace.lake.retention import Retention
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import SourcePosition

HOUR = 3600
RETENTION = Retention(keep_seconds=7 * 24 * HOUR, all_seconds=HOUR)


def cut(second: int, *tables: str) -> PublishedCut:
    named = dict.fromkeys(tables or ("public.orders",), CutTable(second, 1, second))
    return PublishedCut(second, SourcePosition(second), named, second * 1_000_000)


def kept_after(seconds: int, every: int, retention: Retention = RETENTION) -> list[PublishedCut]:
    """A cut every so often, and a look for old ones every ten minutes, with some missed."""
    cuts: list[PublishedCut] = []
    for second in range(0, seconds, every):
        cuts.append(cut(second))
        if second % (17 * every) == 0 and second % 1200 < 600:
            cuts = retention.kept(cuts, second * 1_000_000)
    return retention.kept(cuts, seconds * 1_000_000)


def test_the_last_hour_is_kept_whole_the_last_day_in_tens_of_minutes_and_the_last_week_in_hours() -> None:
    now, every = 12 * 24 * HOUR, 20
    seconds = [each.seq for each in kept_after(now, every)]
    ages = [now - second for second in seconds]
    assert max(ages) <= 7 * 24 * HOUR
    assert [age for age in ages if age < HOUR] == list(range(HOUR - every, 0, -every))
    gaps = [(now - later, later - earlier) for earlier, later in pairwise(seconds)]
    assert max(gap for age, gap in gaps if age < 23 * HOUR) <= 2 * 600
    assert max(gap for _, gap in gaps) <= 2 * HOUR
    assert len(seconds) < HOUR // every + 24 * 6 + 7 * 24 + 10


def test_the_newest_cut_of_every_table_stays_however_old_it_is() -> None:
    cuts = [cut(1, "a", "b"), cut(2, "a", "b", "c"), cut(3, "a"), cut(4, "a")]
    now_us = 400 * 24 * HOUR * 1_000_000
    assert RETENTION.kept(cuts, now_us) == [cuts[1], cuts[3]]
    assert Retention(0, 0).kept(cuts, now_us) == [cuts[1], cuts[3]]
    assert RETENTION.kept([], now_us) == []


def test_a_lake_of_very_many_tables_keeps_fewer_young_cuts() -> None:
    names = [f"t{number}" for number in range(1000)]
    cuts = [cut(second, *names) for second in range(3000)]
    kept = RETENTION.kept(cuts, 3000 * 1_000_000)
    assert 200 <= len(kept) < 220
    assert kept[-200:] == cuts[-200:]
