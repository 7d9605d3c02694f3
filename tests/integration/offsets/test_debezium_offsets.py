"""Our layouts next to Debezium's own connectors: they read what we take for valid, and we read what they write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.debezium_offsets import KINDS
from tests.unit.offsets.samples import COUNTED, GROWING, OLD, STREAMING

from tailrace.offsets.kinds import upgrade, validate

WITH_TRANSACTIONS = ("postgres", "mysql", "oracle", "sqlserver", "db2", "vitess")
WITH_INCREMENTAL_SNAPSHOTS = ("postgres", "mysql", "oracle", "sqlserver", "db2")
ENDED = [each for each in OLD if each[1].get("snapshot") in (False, "false")]
"""Not even old versions wrote this, and the newest refuse it; we pass over it."""


class Debezium:
    """Debezium's connectors, asked for what they make of an offset."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def stored(self, kind: str, offset: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([kind, offset]) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def read(self, kind: str, offset: dict[str, Any]) -> dict[str, Any]:
        found = self.stored(kind, offset)
        assert "error" not in found, (kind, offset, found)
        return found


@pytest.fixture(scope="module")
def debezium() -> Iterator[Debezium]:
    command = [sys.executable, "-m", "tests.debezium_offsets"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Debezium(process)


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_write_debezium_reads_and_what_it_stores_then_is_valid(debezium: Debezium, kind: str) -> None:
    partition, offset = STREAMING[kind]
    extra = (COUNTED if kind in WITH_TRANSACTIONS else {}) | (GROWING if kind in WITH_INCREMENTAL_SNAPSHOTS else {})
    stored = debezium.read(kind, offset | extra)
    assert validate(kind, partition, stored) == []
    assert upgrade(kind, stored) == stored, "it is the newest already"
    kept = {name: value for name, value in stored.items() if name in offset}
    assert kept == {name: value for name, value in offset.items() if name in stored}


def test_an_upgrade_means_to_debezium_what_the_old_offset_meant(debezium: Debezium) -> None:
    known = [(kind, old, new) for kind, old, new in OLD if kind in KINDS and (kind, old, new) not in ENDED]
    assert {kind for kind, _, _ in known} == set(KINDS)
    for kind, old, new in known:
        assert _comparable(debezium.read(kind, new)) == _comparable(debezium.read(kind, old)), (kind, old)


def _comparable(offset: dict[str, Any]) -> dict[str, Any]:
    """Transactions in hex, whose letters and order mean nothing; a message's type, which is for people; GTIDs of one
    server, which may be apart; and a VGTID, which may leave out that no table is being copied."""
    found = {name: value for name, value in offset.items() if name != "messageType"}
    if found.get("commit_scn"):
        found["commit_scn"] = [sorted(each.lower().split("-")) for each in found["commit_scn"].split(":")]
    if found.get("gtids"):
        servers = [each.strip().split(":") for each in found["gtids"].split(",")]
        found["gtids"] = sorted(f"{server}:{interval}" for server, *intervals in servers for interval in intervals)
    if "vgtid" in found:
        found["vgtid"] = [{"table_p_ks": [], **each} for each in json.loads(found["vgtid"])]
        found["vgtid"] = [{**each, "table_p_ks": each["table_p_ks"] or []} for each in found["vgtid"]]
    return found


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("oracle", {"commit_scn": "1240:1"}),
        ("oracle", {"commit_scn": "not an scn"}),
        ("vitess", {"vgtid": "{}"}),
        ("cassandra", {"cycling.riders": "a:b:5"}),
        ("spanner", {"offset": "yesterday"}),
        ("postgres", {"lsn": "16/B374D848"}),
    ],
)
def test_what_debezium_cannot_read_is_not_valid(debezium: Debezium, kind: str, changed: dict[str, Any]) -> None:
    partition, offset = STREAMING[kind]
    assert "error" in debezium.stored(kind, offset | changed)
    assert validate(kind, partition, offset | changed) != []
