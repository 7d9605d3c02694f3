"""Where a new log begins for a lake whose log was lost: what it leaves out, and which numbers it gives."""

from __future__ import annotations

from tailrace.connector.start.new_log import base_after
from tailrace.connector.tables.decisions import decide_after_cut
from tailrace.lake.stamp import Stamp
from tailrace.log.ledger.ledger import Base
from tailrace.model.cut import PublishedCut
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState


def at(ordinal: int) -> SourcePosition:
    return SourcePosition(ordinal, time_us=ordinal * 10)


def stamp(ordinal: int, seq: int | None) -> Stamp:
    return Stamp(at(ordinal), relation=1, copy=1, seq=seq)


CUT = PublishedCut(seq=7, position=at(700), tables={})


def test_it_counts_on_from_the_cut_and_leaves_out_what_every_table_has() -> None:
    stamps = [stamp(500, 5), stamp(700, 7), stamp(100, None)]
    base = base_after(CUT, 0, stamps, stamps)
    assert base == Base(seq=7, received=SourcePosition(700), last_commit=at(700), time_max_us=7000)


def test_no_number_of_the_old_log_is_given_again_where_a_table_is_ahead_of_the_cut() -> None:
    base = base_after(CUT, 0, [stamp(500, 5), stamp(900, 9)], [stamp(500, 5), stamp(600, 6)])
    assert base.seq == 10, "9 is the old log's, and its position alone says where it is in the new one"
    assert base.last_commit == at(600), "the table that is ahead says nothing about the others"


def test_rows_that_were_copied_prove_no_commit() -> None:
    base = base_after(PublishedCut(0, at(300), {}), 0, [stamp(300, None)], [stamp(300, None), None])
    assert (base.seq, base.last_commit) == (0, START), "all that the source still has comes again"


def test_the_log_begins_where_the_source_was_told_that_the_lake_is() -> None:
    assert base_after(CUT, 5000, [], []).received == SourcePosition(5000)


def test_copies_that_no_cut_has_begin_again_and_no_others() -> None:
    names = {name: TableId("public", name) for name in ("live", "landed", "growing", "new", "broken")}
    records = {
        names["live"]: TableRecord(TableState.LIVE, copy=1, relation=1),
        names["landed"]: TableRecord(TableState.SNAPSHOTTING, copy=2, relation=2),
        names["growing"]: TableRecord(TableState.RESYNCING, copy=3, relation=3),
        names["new"]: TableRecord(TableState.PENDING, copy=1),
        names["broken"]: TableRecord(TableState.ERRORED, copy=1, relation=4),
    }
    decided = decide_after_cut(records, {"public.live": 1, "public.landed": 2, "public.growing": 2})
    assert {table.name: record.copy for table, record in decided.items()} == {"growing": 4}


def test_a_live_table_that_the_cut_did_not_wait_for_is_copied_again() -> None:
    """The source was told of the cut, so what the table lacks is sent to no one any more."""
    names = {name: TableId("public", name) for name in ("named", "stuck", "older")}
    records = {table: TableRecord(TableState.LIVE, copy=2, relation=1) for table in names.values()}
    decided = decide_after_cut(records, {"public.named": 2, "public.older": 1})
    assert {table.name: (record.state, record.copy) for table, record in decided.items()} == {
        "stuck": (TableState.RESYNCING, 3),
        "older": (TableState.RESYNCING, 3),
    }
