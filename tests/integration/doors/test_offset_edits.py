"""A lake's offset, edited: what is skipped is copied, what is repeated changes nothing, no crash leaves it between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.doors.script import Delete, Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.java_arrays import texts_of
from tests.running import running, sync_once

import tailrace
from tailrace.connector.offsets import editor, takeover
from tailrace.connector.offsets.editor import Direction, EditConflictError, RunningError
from tailrace.errors import DefiniteError
from tailrace.lake import formats
from tailrace.lake.home import LakeHome
from tailrace.lake.records.offset_history import EditKind, EditState
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.offsets.attributes import parse_collections
from tailrace.offsets.connect import StoredOffset
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS = "shop.orders"


@pytest.fixture(autouse=True)
def doors() -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")


class Shop:
    """A script, its source and a lake that has caught up with it."""

    def __init__(self, folder: Path) -> None:
        self.script = Script(folder / "shop.jsonl")
        self.script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
        self.script.transaction([Insert(ORDERS, {"id": n, "note": "new"}) for n in range(20)])
        self.source = ScriptedSource(str(self.script.path))
        self.settings = ConnectorSettings(folder / "lake", format="parquet", once=True, publish_every_seconds=0.1)
        self.lake = self.settings.lake

    def sync(self) -> None:
        assert sync_once(self.settings, self.source) == {ORDERS: TableState.LIVE}

    def change(self, note: str) -> int:
        """One transaction; where it committed."""
        return self.script.transaction([Update(ORDERS, (3,), {"note": note})]).ordinal

    def assess(self, ordinal: int) -> editor.Assessment:
        return editor.assess(self.lake, body(ordinal), self.source)

    def apply(self, ordinal: int | None, version: int | None = None) -> editor.OffsetEdit:
        return editor.apply(self.lake, body(ordinal), "ann", self.source, version=version)

    @property
    def copy(self) -> int:
        return LakeHome(self.lake).tables.load()[TableId("shop", "orders")].copy

    @property
    def logged(self) -> list[int]:
        reader = LogReader(self.lake / "_tailrace" / "log")
        return reader.transactions(reader.oldest_seq - 1, reader.head.seq).column("commit_ordinal").to_pylist()

    def assert_equal(self) -> None:
        found = tailrace.arrow(self.lake, ORDERS).to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == self.script.state(ORDERS)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.sync()
    return shop


def body(ordinal: int | None) -> dict[str, Any]:
    return {"offsets": [{"partition": {"server": "shop"}, "offset": None if ordinal is None else {"ordinal": ordinal}}]}


def test_what_is_skipped_is_never_logged_and_the_lake_equals_the_source_all_the_same(shop: Shop) -> None:
    skipped = [shop.change("first"), shop.script.transaction([Delete(ORDERS, (5,))]).ordinal]
    target = shop.change("third")
    found = shop.assess(target)
    assert (found.direction, found.transactions and found.transactions.transactions) == (Direction.FORWARD, 2)
    assert found.tables == [ORDERS]
    assert found.says.startswith("2 transactions skipped and never logged: the next start copies 1 table again")
    edit = shop.apply(target, found.version)
    assert (edit.version, edit.state, edit.who) == (1, EditState.WAITING, "ann")
    assert editor.read(shop.lake).to_wire() == body(target), "it shows before it has its effect"
    assert shop.copy == 1
    shop.sync()
    shop.assert_equal()
    assert shop.copy == 2
    assert not set(skipped) & set(shop.logged)
    (done,) = editor.history(shop.lake)
    assert (done.state, done.before, done.after) == (EditState.TAKEN, found.before, body(target)["offsets"])
    shop.change("fourth")
    shop.sync()
    shop.assert_equal()
    assert shop.copy == 2, "once"


def test_what_is_sent_again_is_left_out_and_nothing_changes_for_the_lake(shop: Shop) -> None:
    first, second = shop.change("first"), shop.change("second")
    shop.sync()
    found = shop.assess(first)
    assert (found.direction, found.transactions and found.transactions.transactions) == (Direction.BACKWARD, 2)
    assert found.tables == []
    assert "nothing changes for the lake" in found.says
    shop.apply(first)
    assert editor.read(shop.lake).to_wire() == body(first)
    shop.sync()
    shop.assert_equal()
    assert shop.copy == 1
    assert shop.logged == [first, second]
    assert [edit.state for edit in editor.history(shop.lake)] == [EditState.TAKEN]


def test_an_edit_to_where_the_lake_is_does_nothing(shop: Shop) -> None:
    now = editor.read(shop.lake).to_wire()
    assert editor.assess(shop.lake, now, shop.source).direction is Direction.NOWHERE
    edit = editor.apply(shop.lake, now, "ann", shop.source)
    assert edit.state is EditState.TAKEN
    assert not editor.read(shop.lake).is_waiting


@pytest.mark.parametrize(("ordinal", "rule"), [(10_000, "written"), (1, "kept")])
def test_what_the_source_cannot_send_is_refused_and_leaves_no_trace(shop: Shop, ordinal: int, rule: str) -> None:
    shop.change("more")
    shop.sync()
    assert [fault.rule for fault in shop.assess(ordinal).faults] == [rule]
    with pytest.raises(OffsetFaultsError):
        shop.apply(ordinal)
    assert editor.history(shop.lake) == []


@pytest.mark.parametrize(
    ("wrong", "field", "rule"),
    [
        ({"offsets": [{"partition": {"server": "x"}, "offset": {"ordinal": 5}}]}, "offsets[0].partition", "partition"),
        ({"offsets": [{"partition": {"server": "shop"}, "offset": {}}]}, "offsets[0].offset.ordinal", "required"),
        ([], "offsets", "shape"),
    ],
)
def test_an_edit_that_breaks_a_rule_names_it(shop: Shop, wrong: object, field: str, rule: str) -> None:
    assert [(f.field, f.rule) for f in editor.assess(shop.lake, wrong, shop.source).faults] == [(field, rule)]
    with pytest.raises(OffsetFaultsError):
        editor.apply(shop.lake, wrong, "ann")


def test_an_edit_that_was_not_compared_with_the_source_is_compared_at_the_start(shop: Shop) -> None:
    editor.apply(shop.lake, body(10_000), "ann")
    with pytest.raises(DefiniteError, match="set to @10000, which the source has not written yet") as caught:
        shop.sync()
    assert caught.value.hint == f"tailrace offsets undo {shop.lake}"
    editor.undo(shop.lake, "ann")
    shop.change("after")
    shop.sync()
    shop.assert_equal()
    assert shop.copy == 1


def test_offsets_are_read_at_any_time_and_changed_only_when_no_connector_has_the_lake(shop: Shop) -> None:
    with running(replace(shop.settings, once=False), shop.source) as run:
        run.catch_up()
        for pause in (False, True):
            if pause:
                run.connector.pause()
            assert editor.read(shop.lake).entries
            assert shop.assess(shop.source.now().ordinal) is not None
            for change in (lambda: shop.apply(5), lambda: shop.apply(None), lambda: editor.undo(shop.lake, "ann")):
                with pytest.raises(RunningError, match="only when it is stopped"):
                    change()
    assert editor.history(shop.lake) == []


def test_of_two_editors_one_wins_and_the_other_hears_of_it(shop: Shop) -> None:
    target = shop.change("more")
    seen = shop.assess(target).version
    shop.apply(target, seen)
    with pytest.raises(EditConflictError, match="edit 1 is there, not 0"):
        shop.apply(target, seen)
    with pytest.raises(EditConflictError):
        editor.undo(shop.lake, "bob", version=seen)
    with pytest.raises(EditConflictError):
        editor.reset(shop.lake, "bob", version=seen)
    assert len(editor.history(shop.lake)) == 1


def test_a_reset_copies_everything_again_and_skips_nothing(shop: Shop) -> None:
    first = shop.change("first")
    edit = editor.reset(shop.lake, "ann")
    assert (edit.kind, edit.after) == (EditKind.RESET, [])
    assert editor.read(shop.lake).to_wire() == {"offsets": []}
    shop.sync()
    shop.assert_equal()
    assert (shop.copy, shop.logged) == (2, [first])
    with pytest.raises(DefiniteError, match="being copied again"):
        editor.undo(shop.lake, "ann")


def test_an_edit_that_waits_can_be_undone_and_the_one_before_it_counts_again(shop: Shop) -> None:
    first, second = shop.change("first"), shop.change("second")
    shop.apply(second)
    editor.reset(shop.lake, "ann")
    assert editor.undo(shop.lake, "ann").undoes == 2
    assert editor.read(shop.lake).to_wire() == body(second)
    assert editor.undo(shop.lake, "ann").undoes == 1
    assert not editor.read(shop.lake).is_waiting
    with pytest.raises(DefiniteError, match="no edit to undo"):
        editor.undo(shop.lake, "ann")
    shop.sync()
    shop.assert_equal()
    assert (shop.copy, shop.logged) == (1, [first, second])


def test_an_edit_that_has_skipped_something_cannot_be_undone_and_says_why(shop: Shop) -> None:
    shop.change("first")
    shop.apply(shop.change("second"))
    shop.sync()
    with pytest.raises(DefiniteError, match="no longer keeps what was skipped"):
        editor.undo(shop.lake, "ann")


APPLY = "editor.apply(lake, {body}, 'ann', source)"
SYNC = "connector_of(settings, source).start(); import threading; threading.Event().wait(60)"


def die(shop: Shop, failpoint: str, what: str) -> None:
    """Do something in a process that is killed at a named point."""
    code = f"""
from pathlib import Path
from tests.doors.scripted import ScriptedSource
from tests.running import connector_of
from tailrace.connector.offsets import editor, takeover
from tailrace.lake import formats
from tailrace.offsets.connect import StoredOffset
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds
kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
lake, source = Path({str(shop.lake)!r}), ScriptedSource({str(shop.script.path)!r}, adopt="other")
settings = ConnectorSettings(lake, format="parquet", once=True, window_rows=5, readers_max=1)
{what}
"""
    environment = os.environ | {"TAILRACE_FAILPOINT": failpoint}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


@pytest.mark.parametrize("point", ["offsets.edited", "offsets.copies_told", "offsets.claim_stored"])
def test_an_edit_that_was_interrupted_anywhere_is_finished_by_the_next_start(shop: Shop, point: str) -> None:
    skipped, target = shop.change("first"), shop.change("second")
    if point == "offsets.edited":
        die(shop, point, APPLY.format(body=body(target)))
    else:
        shop.apply(target)
        die(shop, point, SYNC)
    assert [edit.state for edit in editor.history(shop.lake)] == [EditState.WAITING]
    shop.sync()
    shop.assert_equal()
    assert skipped not in shop.logged
    assert shop.copy > 1
    assert [edit.state for edit in editor.history(shop.lake)] == [EditState.TAKEN]


def test_an_edit_that_a_dying_start_had_taken_up_in_part_can_still_be_undone(shop: Shop) -> None:
    skipped, target = shop.change("first"), shop.change("second")
    shop.apply(target)
    die(shop, "offsets.claim_stored", SYNC)
    editor.undo(shop.lake, "ann")
    shop.sync()
    shop.assert_equal()
    assert shop.logged == [skipped, target]


def test_a_copy_by_windows_that_is_under_way_shows_how_far_it_is(shop: Shop) -> None:
    editor.reset(shop.lake, "ann")
    die(shop, "window.published:1", SYNC)
    (entry,) = editor.read(shop.lake).entries
    offset = entry["offset"]
    assert [each.table for each in parse_collections(offset["incremental_snapshot_collections"])] == [ORDERS]
    (done,) = texts_of(offset["incremental_snapshot_primary_key"]) or [""]
    assert int(done) in range(4, 19)
    assert texts_of(offset["incremental_snapshot_maximum_key"]) == ["19"]
    shop.sync()
    shop.assert_equal()
    assert "incremental_snapshot_collections" not in editor.read(shop.lake).entries[0]["offset"]


def other_reader(shop: Shop) -> None:
    """Another connector has claimed the source, and all tables are sent to it."""
    shop.source.prepare({"name": "other"}, [TableId("shop", "orders")], None)


def test_a_lake_begins_where_another_connector_stopped(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    other_reader(shop)
    delivered, next_one = shop.change("delivered"), shop.change("next")
    source = ScriptedSource(str(shop.script.path), adopt="other")
    stored = StoredOffset("dbz", {"server": "legacy"}, {"ordinal": delivered + 1})
    planned = takeover.plan(shop.lake, stored, source)
    assert (planned.is_new, planned.begins) == (True, f"@{delivered + 1}")
    assert not shop.lake.exists(), "a plan changes nothing"
    takeover.take_over(shop.lake, stored, source, "ann", "parquet")
    assert editor.read(shop.lake).entries == [{"partition": {"server": "legacy"}, "offset": {"ordinal": delivered + 1}}]
    with pytest.raises(DefiniteError, match="the lake began with it"):
        editor.undo(shop.lake, "ann")
    shop.sync()
    shop.assert_equal()
    assert shop.logged == [next_one], "neither lost nor twice"
    assert editor.read(shop.lake).entries[0]["partition"] == {"server": "legacy"}


def test_an_import_that_died_before_the_lake_was_there_is_finished_by_the_first_start(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    other_reader(shop)
    delivered, next_one = shop.change("delivered"), shop.change("next")
    stored = f"StoredOffset('dbz', {{'server': 'legacy'}}, {{'ordinal': {delivered + 1}}})"
    die(shop, "offsets.imported", f"takeover.take_over(lake, {stored}, source, 'ann', 'parquet')")
    assert LakeHome.is_new(shop.lake)
    shop.sync()
    shop.assert_equal()
    assert shop.logged == [next_one]


@pytest.mark.parametrize("has_gap", [False, True])
def test_a_lake_that_has_the_rows_takes_another_claim_over_and_copies_only_over_a_gap(
    tmp_path: Path, *, has_gap: bool
) -> None:
    shop = Shop(tmp_path)
    if not has_gap:
        other_reader(shop)
    shop.sync()
    own = LakeHome(shop.lake).source()
    assert own is not None
    between = shop.change("between")
    if has_gap:
        other_reader(shop)
    source = ScriptedSource(str(shop.script.path), adopt="other")
    stored = StoredOffset("dbz", {"server": "legacy"}, {"ordinal": shop.source.now().ordinal})
    assert list(takeover.plan(shop.lake, stored, source).copies) == ([ORDERS] if has_gap else [])
    takeover.take_over(shop.lake, stored, source, "ann")
    (shown,) = editor.read(shop.lake, source).entries
    assert shown["partition"] == {"server": "legacy"}
    assert (shown["offset"]["ordinal"] > between) is has_gap, "where the stream will begin"
    after = shop.change("after")
    shop.sync()
    shop.assert_equal()
    assert shop.copy == (2 if has_gap else 1)
    assert shop.logged == ([after] if has_gap else [between, after])
    found = LakeHome(shop.lake).source()
    assert found is not None
    assert found.claim["name"] == "other"
    with pytest.raises(DefiniteError, match="the lake has its stream from it"):
        editor.undo(shop.lake, "ann")
    served = shop.source.offsets().served(own.claim)
    assert served.oldest is None, "what the lake no longer needs is not kept for ever"
