"""Windows of the scripted source: the second account of what the door promises of them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.doors.capturing import capturing
from tests.doors.script import Delete, Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.source.door.rows import SnapshotPoint

ORDERS = "shop.orders"
TABLE = TableId("shop", "orders")


def ids(source: ScriptedSource, point: SnapshotPoint, chunks: list[Any]) -> list[int]:
    schema = source.describe([TABLE])[TABLE].schema
    sent = pickle.loads(pickle.dumps(chunks))
    return [
        row["id"] for chunk in sent for batch in source.read_chunk(point, chunk, schema) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("order", [(), ("note",), ("note", "id")])
@pytest.mark.parametrize("rows", [1, 3, 10, 40])
def test_chunks_by_key_hold_every_row_once(
    script: Script, source: ScriptedSource, rows: int, order: tuple[str, ...]
) -> None:
    script.transaction([Insert(ORDERS, {"id": 100 - n, "note": f"n{n % 4}"}) for n in range(30)])
    table = source.describe([TABLE])[TABLE]
    with source.window() as point:
        last = source.last_key(point, table, order)
        cursor, found = None, []
        while cursor != last:
            chunks = source.key_chunks(point, table, (cursor, last), rows, 2, order)
            assert 0 < len(chunks) <= 2
            found += ids(source, point, chunks)
            cursor = json.loads(json.dumps(chunks[-1].upto))
    assert sorted(found) == list(range(71, 101))


def test_a_range_ends_at_its_second_cursor_and_may_be_empty(script: Script, source: ScriptedSource) -> None:
    table = source.describe([TABLE])[TABLE]
    with source.window() as point:
        assert source.last_key(point, table) is None
        assert source.key_chunks(point, table, (None, None), 2, 2) == []
    script.transaction([Insert(ORDERS, {"id": n, "note": "n"}) for n in (1, 2, 3, 9)])
    with source.window() as point:
        last = source.last_key(point, table)
    script.transaction([Delete(ORDERS, (9,)), Insert(ORDERS, {"id": 10, "note": "x"})])
    with source.window() as point:
        chunks = source.key_chunks(point, table, (["1"], last), 2, 2)
        assert [chunk.upto for chunk in chunks] == [last]
        assert ids(source, point, chunks) == [2, 3]
        assert source.key_chunks(point, table, (["3"], last), 2, 2) == []
        by_key = source.chunk_of_keys(table, pa.table({"id": [2, 9, 10]}))
        assert ids(source, point, [by_key]) == [2, 10]
        assert ids(source, point, [source.filtered(by_key, 'note = "x"')]) == [10]
        with pytest.raises(DefiniteError, match="is no condition"):
            ids(source, point, [source.filtered(by_key, "drop")])
        with pytest.raises(DefiniteError, match="has no column other"):
            source.last_key(point, table, ["other"])


def test_what_is_logged_after_the_state_was_taken_is_unseen(
    script: Script, source: ScriptedSource, tmp_path: Path
) -> None:
    claim = source.claim(None)
    source.prepare(claim, [TABLE], None)
    with capturing(source, claim, tmp_path / "log"):
        script.transaction([Insert(ORDERS, {"id": 1})])
        with source.window() as point:
            script.transaction([Insert(ORDERS, {"id": 2})])
            table = source.describe([TABLE])[TABLE]
            assert ids(source, point, source.key_chunks(point, table, (None, None), 9, 9)) == [1]
        wait_until(lambda: LogReader(tmp_path / "log").head.seq == 2)
    index = LogReader(tmp_path / "log").transactions(0, 2)
    assert source.unseen(point.view, index).tolist() == [False, True]
    assert source.unseen(source.view(), index).tolist() == [False, False]
