"""What signals mean for tables, judged from records alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tailrace.connector.signals import judgement
from tailrace.connector.signals.desk import OpenSignal
from tailrace.connector.signals.judgement import NamedTables, SignalEnd
from tailrace.connector.signals.orders import ALL, ExecuteSnapshot, Order, choose
from tailrace.lake.records.ordered_copies import ALL_PAUSED, OrderedCopies, Snapshots
from tailrace.model.rows.text_key import TextKey
from tailrace.model.signal import Signal, SignalRecord, SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableRecord, TableState

A, B, C = (TableId("shop", name) for name in "abc")
LIVE = TableRecord(TableState.LIVE, copy=3, relation=7)
PENDING = TableRecord(TableState.PENDING, copy=1)
RESYNCING = TableRecord(TableState.RESYNCING, copy=4, relation=7)
ERRORED = TableRecord(TableState.ERRORED, "a value is odd", copy=4, relation=7)
REMOVED = TableRecord(TableState.REMOVED, copy=4, relation=7)
Records = Mapping[TableId, TableRecord]


def execute(*tables: str, condition: str | None = None) -> ExecuteSnapshot:
    return ExecuteSnapshot(tables, "incremental", {} if condition is None else {ALL: condition}, {})


def open_signal(id_: str, order: Order) -> OpenSignal:
    return OpenSignal(SignalRecord(Signal(id_, "any"), "request", SignalState.RECEIVED, 0, 0), order)


def copies_of(order: ExecuteSnapshot, records: Records) -> OrderedCopies:
    return judgement.copies_of(choose(order, judgement.followed(records)).tables, records)


# Execute.


def test_the_answer_to_an_order_is_the_next_copy_unless_one_waits_to_begin() -> None:
    records = {A: LIVE, B: PENDING, C: RESYNCING}
    assert copies_of(execute("shop.*"), records).copies == {"shop.a": 4, "shop.b": 1, "shop.c": 5}


def test_an_order_means_no_table_that_is_left_out() -> None:
    assert copies_of(execute("shop.*"), {A: LIVE, B: REMOVED}).copies == {"shop.a": 4}


def test_only_a_whole_table_is_copied_in_part() -> None:
    ordered = copies_of(execute("shop.*", condition="id > 1"), {A: LIVE, B: RESYNCING, C: ERRORED})
    assert ordered.parts == ("shop.a",)


def test_every_table_is_told_once_also_when_some_were_told_before_a_crash() -> None:
    order = execute("shop.a", "shop.b")
    ordered = copies_of(order, {A: LIVE, B: LIVE})
    first = judgement.asking("s1", order, ordered, {A: LIVE, B: LIVE})
    assert {record.copy for record in first.late.values()} == {4}
    after_crash = {A: first.late[A], B: LIVE}
    assert list(judgement.asking("s1", order, ordered, after_crash).late) == [B]
    assert judgement.asking("s1", order, ordered, dict(first.late)).late == {}


def test_a_whole_copy_tries_the_types_of_a_key_again_and_a_part_keeps_the_definition() -> None:
    live = replace(LIVE, text_key=TextKey(7, (1,), "odd"), definition={"columns": "as they were"})
    whole = judgement.asking("s", execute("shop.a"), OrderedCopies({"shop.a": 4}), {A: live})
    part = judgement.asking(
        "s", execute("shop.a", condition="id > 1"), OrderedCopies({"shop.a": 4}, parts=("shop.a",)), {A: live}
    )
    assert (whole.late[A].definition, whole.late[A].text_key) == (None, None)
    assert part.late[A].text_key == live.text_key
    assert part.late[A].definition == live.definition
    assert part.parts == {A: "id > 1"}
    assert whole.late[A].reason == part.late[A].reason == "signal s asked for it"


def test_a_table_has_ended_when_it_has_the_copy_or_cannot_have_it() -> None:
    ordered = OrderedCopies({"shop.a": 4, "shop.b": 4, "shop.c": 4})
    records = {A: replace(LIVE, copy=4), B: ERRORED, C: RESYNCING}
    assert judgement.ended_tables(ordered, records) == {"shop.a": None, "shop.b": "a value is odd"}
    assert judgement.ended_tables(ordered, {A: LIVE, B: LIVE, C: replace(LIVE, copy=9)}) == {"shop.c": None}
    assert judgement.ended_tables(ordered, {A: REMOVED}) == {"shop.a": "it is no longer chosen"}


def test_an_order_fails_with_the_reason_of_each_table_that_failed_and_names_what_it_did_not_find() -> None:
    records = {A: LIVE, B: LIVE}
    assert judgement.end_of(execute("shop.a"), {"shop.a": None}, records) == SignalEnd(
        SignalState.DONE, "1 of 1 tables copied"
    )
    ended = {"shop.a": None, "shop.b": "odd"}
    assert judgement.end_of(execute("shop.a", "shop.b", "shop.x"), ended, records) == SignalEnd(
        SignalState.FAILED, "1 of 2 tables copied; shop.b: odd; no table matches shop.x"
    )


@pytest.mark.parametrize("state", TableState)
def test_an_order_waits_only_while_a_copy_of_it_is_paused(state: TableState) -> None:
    records = {A: replace(LIVE, state=state)}
    assert judgement.is_waiting([A], records, Snapshots(paused=frozenset({"shop.a"}))) == (state in COPYING)
    assert not judgement.is_waiting([A], records, Snapshots(paused=frozenset({"shop.b"})))


# Pause and resume.


def named(records: Records, *patterns: str) -> NamedTables:
    return NamedTables.of(patterns, records)


def test_a_pause_without_tables_is_for_all_and_a_resume_of_one_leaves_the_others_paused() -> None:
    records = {A: LIVE, B: LIVE}
    paused = judgement.paused_with(named(records), frozenset())
    assert paused == {ALL_PAUSED}
    left = judgement.paused_without(named(records, "shop.a"), paused, records)
    assert left == {"shop.b"}
    assert judgement.paused_without(named(records), left, records) == set()


def test_a_signal_of_no_known_table_is_rejected_and_one_of_some_names_the_others() -> None:
    records = {A: LIVE}
    assert named(records, "shop.x").end("copies are paused") == SignalEnd(
        SignalState.REJECTED, "nothing was done: no table matches shop.x"
    )
    assert named(records, "shop.a", "shop.x").end("copies are paused") == SignalEnd(
        SignalState.DONE, "copies are paused; no table matches shop.x"
    )
    assert named({}).end("copies are paused").state is SignalState.DONE


# Stop.


def stopping(
    records: Records, snapshots: Snapshots, *earlier: OpenSignal, patterns: tuple[str, ...] = ()
) -> judgement.Stopping:
    return judgement.stopping("stop", named(records, *patterns), earlier, snapshots, records)


def test_a_stop_gives_up_what_is_being_copied_and_nothing_else() -> None:
    found = stopping({A: RESYNCING, B: LIVE, C: ERRORED}, Snapshots())
    assert found.tables == [A]
    assert found.given_up[A].state is TableState.ERRORED
    assert found.given_up[A].reason == "signal stop stopped its copy"
    assert found.kept == {}


def test_a_table_of_which_some_rows_were_copied_again_keeps_them_all() -> None:
    snapshots = Snapshots({"s": OrderedCopies({"shop.a": 4}, parts=("shop.a",))}, cut_short={"shop.b": 4})
    found = stopping({A: RESYNCING, B: RESYNCING, C: RESYNCING}, snapshots)
    assert found.kept == {"shop.a": 4, "shop.b": 4}
    assert list(found.given_up) == [C]


def test_a_stop_ends_earlier_orders_that_wait_for_nothing_else_and_no_later_one() -> None:
    records = {A: RESYNCING, B: RESYNCING, C: LIVE}
    begun = Snapshots({"one": OrderedCopies({"shop.a": 4}), "both": OrderedCopies({"shop.a": 4, "shop.b": 4})})
    orders = [open_signal(id_, execute("shop.*")) for id_ in ("one", "both", "stop", "later")]
    found = stopping(records, begun, *orders, patterns=("shop.a",))
    assert [signal.id for signal in found.orders] == ["one"]
    assert [signal.id for signal in stopping(records, begun, *orders).orders] == ["one", "both"]


def test_a_table_whose_end_was_told_keeps_no_order_from_being_stopped() -> None:
    begun = Snapshots({"both": OrderedCopies({"shop.a": 4, "shop.b": 4}, told=("shop.b",))})
    found = stopping({A: RESYNCING, B: LIVE}, begun, open_signal("both", execute("shop.*")), patterns=("shop.a",))
    assert [signal.id for signal in found.orders] == ["both"]


def test_an_order_that_has_not_begun_is_stopped_by_the_names_that_it_means() -> None:
    waiting = open_signal("new", execute("shop.c"))
    records = {A: RESYNCING, C: LIVE}
    assert [each.id for each in stopping(records, Snapshots(), waiting, patterns=("shop.c",)).orders] == ["new"]
    assert stopping(records, Snapshots(), waiting, patterns=("shop.a",)).orders == []


def test_a_copy_is_cut_short_until_it_ends_or_another_begins() -> None:
    snapshots = Snapshots(cut_short={"shop.a": 4, "shop.b": 4, "shop.c": 3, "shop.gone": 1})
    records = {A: RESYNCING, B: replace(LIVE, copy=4), C: RESYNCING}
    assert judgement.still_cut_short(snapshots, records) == {"shop.a": 4}
