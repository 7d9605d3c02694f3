"""The scripted source against the script's own account of its rows."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.doors.capturing import capturing, logged_changes
from tests.doors.script import Alter, Delete, Insert, Script, Step, Truncate, Update
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.change import BEFORE, COMMIT_TS, OP, ORDINAL, PREFIX, SEQ, UNCHANGED, change_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim

SCRIPTED: type[Source] = ScriptedSource
ORDERS = "shop.orders"
TABLE = TableId("shop", "orders")

EVERY_TYPE: dict[str, Any] = {
    "boolean": True,
    "smallint": -7,
    "int": 1 << 30,
    "bigint": 1 << 60,
    "float": 0.5,
    "double": 0.1,
    "decimal(12,2)": Decimal("1234567890.12"),
    "string": "ä\n",
    "binary": b"\x00\xff",
    "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    "timestamp_ntz": datetime(2024, 2, 29, 12, 0, 0, 1),
}


def prepared(source: ScriptedSource, *tables: TableId) -> Claim:
    claim = source.claim(None)
    source.prepare(claim, tables or [TABLE], None)
    return claim


def shown(change: dict[str, Any], *names: str) -> list[Any]:
    return [change[OP], change[UNCHANGED], *(change[name] for name in names)]


def fold(rows: list[dict[str, Any]], changes: list[dict[str, Any]], after: int) -> list[dict[str, Any]]:
    """The rows after the changes of later commits, done one by one."""
    state = {row["id"]: row for row in rows}
    for change in (change for change in changes if change[ORDINAL] > after):
        values = {name: value for name, value in change.items() if not name.startswith(PREFIX)}
        match change[OP]:
            case "t":
                state = {}
            case "d":
                del state[change[BEFORE]["id"]]
            case "c":
                assert values["id"] not in state
                state[values["id"]] = values
            case "u":
                old = state.pop((change[BEFORE] or values)["id"])
                state[values["id"]] = values | {name: old[name] for name in change[UNCHANGED] or []}
    return [state[key] for key in sorted(state)]


def random_steps(script: Script, rng: random.Random) -> list[Step]:
    """Something that can be done to the table now; the ids of one transaction do not meet."""
    ids = [row["id"] for row in script.state(ORDERS)]
    chosen = rng.sample(ids, min(len(ids), 2))
    fresh = rng.sample([number for number in range(100) if number not in ids], 3)
    steps: list[Step] = [Insert(ORDERS, {"id": fresh[0], "note": "new", "big": "x" * rng.randrange(50)})]
    if len(chosen) == 2:
        changes = {"note": str(rng.random())} | ({"id": fresh[1]} if rng.random() < 0.5 else {})
        steps.append(Update(ORDERS, (chosen[0],), changes, leave_out=["big"]))
        steps.append(Delete(ORDERS, (chosen[1],)))
    if rng.random() < 0.1:
        steps += [Truncate(ORDERS), Insert(ORDERS, {"id": fresh[2]})]
    return steps


def snapshot_rows(source: ScriptedSource) -> tuple[list[dict[str, Any]], SourcePosition]:
    with source.snapshot() as point:
        table = source.describe([TABLE])[TABLE]
        chunks = source.chunks(table, 200)
        batches = [batch for chunk in chunks for batch in source.read_chunk(point, chunk, table.schema)]
        return [row for batch in batches for row in batch.to_pylist()], point.position


def test_a_change_comes_back_from_the_log_as_it_was_scripted(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    claim = prepared(source)
    with capturing(source, claim, tmp_path / "log") as captured:
        first = script.transaction([Insert(ORDERS, {"id": 1, "note": "new", "big": "x"})])
        script.transaction(
            [
                Update(ORDERS, (1,), {"note": "paid"}, leave_out=["big"]),
                Alter(ORDERS, add={"paid": "boolean"}, rename={"note": "remark"}),
                Update(ORDERS, (1,), {"id": 2, "paid": True}, leave_out=["big"]),
            ]
        )
        script.transaction([Delete(ORDERS, (2,)), Truncate(ORDERS)])
        captured.catch_up()
    changes = logged_changes(SCRIPTED, tmp_path / "log", ORDERS)
    assert [shown(change, "id") for change in changes] == [
        ["c", None, 1],
        ["u", ["big"], 1],
        ["u", ["big"], 2],
        ["d", None, None],
        ["t", None, None],
    ]
    assert [change.get("note", change.get("remark")) for change in changes[:3]] == ["new", "paid", "paid"]
    assert [change.get("paid", "none") for change in changes[:3]] == ["none", "none", True]
    assert [change[BEFORE] and change[BEFORE]["id"] for change in changes] == [None, None, 1, 2, None]
    assert changes[0][ORDINAL] == first.ordinal
    assert int(changes[0][COMMIT_TS].timestamp() * 1e6) == pytest.approx(first.time_us, abs=1)
    assert [change[SEQ] for change in changes] == [1, 2, 2, 3, 3]


def test_a_value_of_every_lake_type_comes_through_unchanged(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    schema = script.create_table("shop.types", {f"a {type_}": type_ for type_ in EVERY_TYPE}, key=["a bigint"])
    claim = prepared(source, schema.table)
    row = {f"a {type_}": value for type_, value in EVERY_TYPE.items()}
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Insert("shop.types", row)])
        captured.catch_up()
    [change] = logged_changes(SCRIPTED, tmp_path / "log", "shop.types")
    assert list(change) == change_schema(schema).names
    assert {name: change[name] for name in row} == row
    with source.snapshot() as point:
        [chunk] = source.chunks(source.describe([schema.table])[schema.table], 1 << 20)
        [batch] = source.read_chunk(point, chunk, schema)
    assert batch.to_pylist() == [row] == script.state("shop.types")


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_and_the_changes_after_it_come_to_the_state_of_the_script(
    script: Script, source: ScriptedSource, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    claim = prepared(source)
    with capturing(source, claim, tmp_path / "log") as captured:
        for _ in range(20):
            script.transaction(random_steps(script, rng))
        rows, position = snapshot_rows(source)
        assert sorted(rows, key=lambda row: row["id"]) == script.state(ORDERS)
        for _ in range(20):
            script.transaction(random_steps(script, rng))
        captured.catch_up()
    changes = logged_changes(SCRIPTED, tmp_path / "log", ORDERS)
    assert fold(rows, changes, source.shown_up_to(position)) == script.state(ORDERS)
    assert fold([], changes, 0) == script.state(ORDERS)


@pytest.mark.parametrize("flushes", [1, 2, 4])
def test_a_killed_capture_leaves_each_transaction_once(
    script: Script, source: ScriptedSource, tmp_path: Path, flushes: int
) -> None:
    claim = prepared(source)
    for start in (0, 1000, 2000):  # Each takes more than two flushes.
        script.transaction([Insert(ORDERS, {"id": start + number}) for number in range(250)])
    command = [sys.executable, "-m", "tests.doors.capturing", str(script.path), claim["name"], str(tmp_path / "log")]
    killed = subprocess.run(
        command,
        env={"PYTHONPATH": ":".join(sys.path), "TAILRACE_FAILPOINT": f"capture.flushed:{flushes}"},
        check=False,
        timeout=60,
    )
    assert killed.returncode == -9
    assert LogReader(tmp_path / "log").head.seq < 3
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Insert(ORDERS, {"id": -1})])
        captured.catch_up()
    changes = logged_changes(SCRIPTED, tmp_path / "log", ORDERS)
    assert fold([], changes, 0) == script.state(ORDERS)
    assert len(changes) == 751
    assert LogReader(tmp_path / "log").head.seq == 4


def test_what_only_the_source_reads_of_a_position_is_given_back_to_it(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    claim = prepared(source)
    with capturing(source, claim, tmp_path / "log") as captured:
        committed = script.transaction([Insert(ORDERS, {"id": 1})])
        captured.catch_up()
    with closing(LogWriter.open(tmp_path / "log", source.identify())) as log:
        found = [log.last_commit, LogReader(tmp_path / "log").position_of(1)]
    assert [(each.ordinal, each.time_us, each.detail) for each in found] == 2 * [
        (committed.ordinal, committed.time_us, committed.detail)
    ]
    assert committed.detail.startswith(b"gtid:")


def test_a_source_where_nothing_of_ours_happens_is_still_reached(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    claim = prepared(source)
    script.create_table("shop.others", {"id": "int"}, key=["id"])
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Insert("shop.others", {"id": 1})])
        captured.catch_up()
    assert LogReader(tmp_path / "log").head.seq == 0


def test_a_paused_capture_takes_no_changes(script: Script, source: ScriptedSource, tmp_path: Path) -> None:
    claim = prepared(source)
    with capturing(source, claim, tmp_path / "log") as captured:
        captured.catch_up()
        captured.control.pause()
        wait_until(lambda: captured.is_held)
        script.transaction([Insert(ORDERS, {"id": 1})])
        assert LogReader(tmp_path / "log").head.seq == 0
        captured.control.resume()
        captured.catch_up()
        assert LogReader(tmp_path / "log").head.seq == 1


def test_an_outage_is_reported_and_capture_continues_after_it(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    claim = prepared(source)
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Insert(ORDERS, {"id": 1})])
        captured.catch_up()
        with script.outage():
            wait_until(lambda: any("cannot reach" in line for line in captured.reports))
        script.transaction([Insert(ORDERS, {"id": 2})])
        captured.catch_up()
        wait_until(lambda: captured.reports[-1] == "")
    assert [change["id"] for change in logged_changes(SCRIPTED, tmp_path / "log", ORDERS)] == [1, 2]
