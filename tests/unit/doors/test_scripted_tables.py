"""What a scripted source says of its tables: which it sends, which it may not read, which values no lake holds."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.doors.capturing import capturing, logged_changes
from tests.doors.script import Alter, Insert, Script
from tests.doors.scripted import ScriptedSource

from tailrace.errors import DefiniteError, TransientError
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source import kinds
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.source import Source

SCRIPTED: type[Source] = ScriptedSource
ORDERS = "shop.orders"
TABLE = TableId("shop", "orders")


def test_a_table_is_unsent_until_it_is_prepared_and_after_it_was_taken_out(
    script: Script, source: ScriptedSource
) -> None:
    claim = source.claim(None)
    assert source.claim(claim) == claim
    assert source.unsent(claim, [TABLE]) == {TABLE}
    assert source.prepare(claim, [TABLE], None).done
    assert not source.prepare(claim, [TABLE], source.now()).done
    assert source.unsent(claim, [TABLE]) == set()
    script.stop_sending(ORDERS)
    assert source.unsent(claim, [TABLE]) == {TABLE}
    assert source.prepare(claim, [TABLE], source.now()).done
    assert source.unsent(claim, [TABLE]) == set()
    assert source.drop(claim)
    assert not source.drop(claim)
    assert source.unsent(claim, [TABLE]) == {TABLE}


def test_a_table_that_is_dropped_and_made_again_is_another_one(script: Script, source: ScriptedSource) -> None:
    claim = source.claim(None)
    source.prepare(claim, [TABLE], None)
    relation = source.describe([TABLE])[TABLE].schema.relation
    script.drop_table(ORDERS)
    assert source.describe([TABLE]) == {}
    script.create_table(ORDERS, {"id": "int"}, key=["id"])
    assert source.describe([TABLE])[TABLE].schema.relation != relation
    assert source.unsent(claim, [TABLE]) == {TABLE}


def test_changes_that_were_not_kept_are_not_passed_over(source: ScriptedSource, tmp_path: Path) -> None:
    before = source.now()
    claim = source.claim(None)
    with pytest.raises(DefiniteError, match=f"changes after @{before.ordinal} are gone"):
        source.prepare(claim, [TABLE], before)
    source.prepare(claim, [TABLE], None)
    source.drop(claim)
    with closing(LogWriter.open(tmp_path / "log", source.identify())) as log:
        control = CaptureControl(lambda _: None, keep_seconds=0.0)
        with pytest.raises(DefiniteError, match="keeps no changes"):
            source.capture(claim, log, control)


def test_a_forbidden_table_is_refused_by_name_and_the_others_are_not(script: Script, source: ScriptedSource) -> None:
    script.create_table("shop.items", {"id": "int"}, key=["id"])
    with source.snapshot() as point:
        table = source.describe([TABLE])[TABLE]
        [chunk] = source.chunks(table, 1 << 20)
        script.forbid(ORDERS)
        with pytest.raises(DefiniteError) as refused:
            list(source.read_chunk(point, chunk, table.schema))
    assert refused.value.table == ORDERS
    found = {str(table.table): table.problem is None for table in source.tables([], [])}
    assert found == {ORDERS: False, "shop.items": True}
    prepared = source.prepare(source.claim(None), [TABLE, TableId("shop", "items")], None)
    assert list(prepared.refused) == [TABLE]
    assert [check.ok for check in source.examine([], [])] == [True, False]
    script.allow(ORDERS)
    assert source.describe([TABLE])[TABLE].problem is None


def test_patterns_choose_tables_and_a_misspelt_one_is_an_error(script: Script, source: ScriptedSource) -> None:
    script.create_table("shop.items", {"id": "int"}, key=["id"])
    assert [str(table.table) for table in source.tables(["items", "shop.o*"], ["*s.none"])] == ["shop.items", ORDERS]
    with pytest.raises(DefiniteError, match="no table matches 'orderz'"):
        source.tables(["orderz"], [])
    with pytest.raises(DefiniteError, match="no table is left"):
        source.tables([], ["shop.*"])


@pytest.mark.parametrize(("type_", "value"), [("timestamp", "infinity"), ("int", 1 << 40), ("decimal(4,2)", "1.005")])
def test_a_value_that_its_lake_type_cannot_hold_stops_its_table(
    script: Script, source: ScriptedSource, tmp_path: Path, type_: str, value: Any
) -> None:
    claim = source.claim(None)
    source.prepare(claim, [TABLE], None)
    with capturing(source, claim, tmp_path / "log") as captured:
        script.transaction([Alter(ORDERS, add={"odd": type_}), Insert(ORDERS, {"id": 1, "odd": value})])
        captured.catch_up()
    with pytest.raises(DefiniteError, match="column odd") as refused:
        logged_changes(SCRIPTED, tmp_path / "log", ORDERS)
    assert refused.value.table == ORDERS
    with source.snapshot() as point:
        table = source.describe([TABLE])[TABLE]
        [chunk] = source.chunks(table, 1 << 20)
        with pytest.raises(DefiniteError, match="column odd") as refused:
            list(source.read_chunk(point, chunk, table.schema))
    assert refused.value.table == ORDERS


def test_a_table_altered_after_the_snapshot_is_read_again_under_another_one(
    script: Script, source: ScriptedSource
) -> None:
    with source.snapshot() as point:
        script.alter(ORDERS, add={"late": "int"})
        table = source.describe([TABLE])[TABLE]
        [chunk] = source.chunks(table, 1 << 20)
        with pytest.raises(TransientError):
            list(source.read_chunk(point, chunk, table.schema))


def test_a_source_and_its_chunks_can_be_made_again_in_another_process(script: Script, source: ScriptedSource) -> None:
    script.transaction([Insert(ORDERS, {"id": number, "big": "x" * 100}) for number in range(10)])
    again = kinds.load(kinds.path_of(source))(**source.arguments)
    assert again.identify() == source.identify()
    with source.snapshot() as point:
        table = source.describe([TABLE])[TABLE]
        chunks = pickle.loads(pickle.dumps(source.chunks(table, 300)))
        script.transaction([Insert(ORDERS, {"id": -1})])
        parts = [
            [row["id"] for batch in again.read_chunk(point, chunk, table.schema) for row in batch.to_pylist()]
            for chunk in chunks
        ]
    assert len(parts) > 3
    assert [number for part in parts for number in part] == list(range(10))


def test_a_position_is_read_as_it_is_written() -> None:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    scripted = kinds.codec_of("scripted")
    assert scripted.format(SourcePosition(120, 7, b"gtid:1-12")) == "@120"
    assert scripted.parse("@120") == SourcePosition(120)
    with pytest.raises(ValueError, match="looks like @120"):
        scripted.parse("0/120")


def test_the_second_doors_need_no_particular_database_or_lake() -> None:
    program = (
        "import sys, tests.doors.scripted, tests.doors.parquet_lake\n"
        "known = ('psycopg', 'delta', 'tailrace.source.postgres', 'tailrace.lake.delta')\n"
        "print([name for name in sys.modules if name.startswith(known)])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert shown.stdout.strip() == "[]"
