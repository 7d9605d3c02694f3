"""A script with a table of every lake type, and one of the kind that most tests need."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.doors.script import Script
from tests.doors.scripted import ScriptedSource

ORDERS = "shop.orders"
ORDER_COLUMNS = {"id": "bigint", "note": "string", "big": "string"}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    made = Script(tmp_path / "shop.jsonl")
    made.create_table(ORDERS, ORDER_COLUMNS, key=["id"])
    return made


@pytest.fixture
def source(script: Script) -> ScriptedSource:
    return ScriptedSource(str(script.path))
