"""Every layout, with offsets that are valid, that are not, and that older versions wrote."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.offsets.samples import COUNTED, GROWING, OLD, SHARD, STREAMING, UUID

from tailrace.errors import DefiniteError
from tailrace.offsets.kinds import KINDS, describe, emit, layout_of, parse, upgrade, validate
from tailrace.offsets.layout import OffsetFaultsError


def test_every_kind_has_an_offset_in_this_table() -> None:
    assert set(STREAMING) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_newest_version_writes_is_valid_and_comes_back_as_it_was(kind: str) -> None:
    partition, offset = STREAMING[kind]
    assert validate(kind, partition, offset) == []
    assert emit(parse(kind, partition, offset)) == (partition, offset)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_takes_attributes_of_transactions_and_incremental_snapshots(kind: str) -> None:
    partition, offset = STREAMING[kind]
    assert validate(kind, partition, {**offset, **COUNTED, **GROWING}) == []
    assert _rules(kind, partition, {**offset, **COUNTED, "transaction_id": 7}) == {"offset.transaction_id": "string"}
    counts = {**COUNTED, "transaction_data_collection_order_public.orders": -1}
    assert set(_rules(kind, partition, {**offset, **counts}).values()) == {"long"}
    lone = {"transaction_data_collection_order_public.orders": 1}
    assert set(_rules(kind, partition, {**offset, **lone}).values()) == {"transaction"}
    keys = {name: value for name, value in GROWING.items() if name != "incremental_snapshot_collections"}
    assert set(_rules(kind, partition, {**offset, **keys}).values()) == {"incremental-snapshot"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_no_version_has_is_named(kind: str) -> None:
    partition, offset = STREAMING[kind]
    assert _rules(kind, partition, {**offset, "LSN ": 1}) == {"offset.LSN ": "known"}
    assert _rules(kind, {**partition, "port": "1"}, offset) == {"partition.port": "known"}


@pytest.mark.parametrize(
    ("kind", "changed", "field", "rule"),
    [
        ("postgres", {"lsn": "16/B374D848"}, "lsn", "lsn"),
        ("postgres", {"lsn": -1}, "lsn", "lsn"),
        ("postgres", {"lsn": True}, "lsn", "lsn"),
        ("postgres", {"lsn": 1.0}, "lsn", "lsn"),
        ("postgres", {"lsn": 2**63}, "lsn", "lsn"),
        ("postgres", {"lsn": None}, "lsn", "lsn"),
        ("postgres", {"messageType": "insert"}, "messageType", "message-type"),
        ("postgres", {"snapshot": "yes"}, "snapshot", "snapshot"),
        ("postgres", {"snapshot": 1}, "snapshot", "snapshot"),
        ("postgres", {"last_snapshot_record": True}, "last_snapshot_record", "snapshot-facts"),
        ("postgres", {"lsn": 0, "lsn_proc": 0, "lsn_commit": 0}, "lsn", "position"),
        ("postgres", {"lsn": 0, "lsn_events_processed": 2}, "lsn_events_processed", "events-of-lsn"),
        ("mysql", {"file": "mysql-bin"}, "file", "binlog-file"),
        ("mysql", {"file": "../mysql-bin.000003"}, "file", "binlog-file"),
        ("mysql", {"file": ...}, "file", "required"),
        ("mysql", {"pos": ...}, "pos", "required"),
        ("mysql", {"gtids": "0-1-100"}, "gtids", "gtids"),
        ("mysql", {"gtids": f"{UUID}:5-1"}, "gtids", "gtids"),
        ("mysql", {"gtids": f"{UUID}:0"}, "gtids", "gtids"),
        ("mysql", {"gtids": f"{UUID}"}, "gtids", "gtids"),
        ("mysql", {"gtids": ","}, "gtids", "gtids"),
        ("mariadb", {"gtids": "0-1"}, "gtids", "gtids"),
        ("mysql", {"row": 2**31}, "row", "int"),
        ("mariadb", {"gtids": f"{UUID}:1-5"}, "gtids", "gtids"),
        ("oracle", {"commit_scn": "1240:1"}, "commit_scn", "commit-scn"),
        ("oracle", {"commit_scn": "1240:1:5af8,1250:1:78f8"}, "commit_scn", "commit-scn"),
        ("oracle", {"commit_scn": "1240:1:not hex"}, "commit_scn", "commit-scn"),
        ("oracle", {"commit_scn": "1240,1250"}, "commit_scn", "commit-scn"),
        ("oracle", {"commit_scn": ...}, "commit_scn", "commit-scn-required"),
        ("oracle", {"scn": ...}, "scn", "position"),
        ("oracle", {"scn": "-1"}, "scn", "scn"),
        ("oracle", {"lcr_position": "0"}, "lcr_position", "lcr-position"),
        ("oracle", {"lcr_position": "00ff", "scn_idx": 1}, "lcr_position", "adapter"),
        ("oracle", {"snapshot_pending_tx": "5af8"}, "snapshot_pending_tx", "pending-tx"),
        ("oracle", {"snapshot_pending_tx": "5af8:1,5af8:2"}, "snapshot_pending_tx", "pending-tx"),
        ("sqlserver", {"commit_lsn": "27:ac0:2"}, "commit_lsn", "lsn"),
        ("sqlserver", {"commit_lsn": "00000027:00000ac0:000002"}, "commit_lsn", "lsn"),
        ("sqlserver", {"commit_lsn": "NULL"}, "change_lsn", "change-of-commit"),
        ("sqlserver", {"commit_lsn": ...}, "commit_lsn", "required"),
        ("sqlserver", {"event_serial_no": None}, "event_serial_no", "long"),
        ("db2", {"commit_lsn": "xyz"}, "commit_lsn", "lsn"),
        ("cassandra", {"cycling.riders": "commitlog:1"}, "cycling.riders", "place"),
        ("cassandra", {"cycling.riders": "CommitLog-7-1.log:-5"}, "cycling.riders", "place"),
        ("cassandra", {"no table!": "CommitLog-7-1.log:5"}, "no table!", "known"),
        ("vitess", {"vgtid": "{}"}, "vgtid", "vgtid"),
        ("vitess", {"vgtid": f"[{SHARD},{SHARD}]"}, "vgtid", "vgtid"),
        ("vitess", {"vgtid": "[" * 100_000}, "vgtid", "vgtid"),
        ("vitess", {"transaction_epoch": '{"80-": 1}'}, "transaction_epoch", "epochs-of-shards"),
        ("mongodb", {"resume_token": "not a token"}, "resume_token", "resume-token"),
        ("mongodb", {"resume_token": ..., "sec": -1}, "resume_token", "position"),
        ("mongodb", {"txnNumber": 5}, "txnNumber", "session"),
        ("spanner", {"offset": "2026-13-17T12:00:00Z"}, "offset", "time"),
        ("spanner", {"offset": "yesterday"}, "offset", "time"),
        ("spanner", {"offset": "2026-11-17T10:59:59.999999999Z"}, "offset", "forward"),
        ("postgres", {"incremental_snapshot_primary_key": "ff"}, "incremental_snapshot_primary_key", "java-array"),
        ("postgres", {"incremental_snapshot_collections": "[{}]"}, "incremental_snapshot_collections", "collections"),
    ],
)
def test_what_breaks_a_rule_is_named_with_the_rule(kind: str, changed: dict[str, Any], field: str, rule: str) -> None:
    partition, offset = STREAMING[kind]
    wrong = {name: value for name, value in {**offset, **changed}.items() if value is not ...}
    faults = validate(kind, partition, wrong)
    assert [(fault.field, fault.rule) for fault in faults] == [(f"offset.{field}", rule)]
    assert field in faults[0].message


@pytest.mark.parametrize(
    ("kind", "partition", "field", "rule"),
    [
        ("postgres", {}, "partition.server", "required"),
        ("postgres", {"server": ""}, "partition.server", "string"),
        ("postgres", ["shop"], "partition", "object"),
        ("sqlserver", {"database": "orders"}, "partition.server", "required"),
        ("cassandra", {"nodeId": "n1"}, "partition.logicalName", "node"),
        ("mongodb", {"server_id": 7}, "partition.server_id", "string"),
        ("spanner", {}, "partition.partitionToken", "required"),
    ],
)
def test_a_partition_that_breaks_a_rule_is_named(kind: str, partition: object, field: str, rule: str) -> None:
    faults = validate(kind, partition, STREAMING[kind][1])
    assert [(fault.field, fault.rule) for fault in faults] == [(field, rule)]


@pytest.mark.parametrize(("kind", "old", "new"), OLD)
def test_an_offset_of_an_old_version_is_valid_and_becomes_one_of_the_newest(
    kind: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert validate(kind, STREAMING[kind][0], old) == []
    assert upgrade(kind, old) == new
    assert upgrade(kind, new) == new


def test_every_kind_has_an_old_version_in_the_table() -> None:
    assert {kind for kind, _, _ in OLD} == set(KINDS)


def test_the_names_that_the_paper_misspelt_are_read_and_written_right() -> None:
    misspelt = (
        '[{"incremental_snapshot_collections_id":"a.b.c",'
        '"incremental_snapshot_collections_additional_condication":"ID = 25",'
        '"incremental_snapshot_collection_surrogate_key":"NAME"}]'
    )
    found = upgrade("postgres", {"lsn": 5, **GROWING, "incremental_snapshot_collections": misspelt})
    assert found["incremental_snapshot_collections"] == (
        '[{"incremental_snapshot_collections_id":"a.b.c",'
        '"incremental_snapshot_collections_additional_condition":"ID = 25",'
        '"incremental_snapshot_collections_surrogate_key":"NAME"}]'
    )


def test_partitions_of_old_versions_are_valid() -> None:
    assert validate("sqlserver", {"server": "shop"}, STREAMING["sqlserver"][1]) == []
    assert validate("mongodb", {"server_id": "shop", "rs": "rs0"}, STREAMING["mongodb"][1]) == []
    assert validate("vitess", {"server": "shop", "task_key": "0_2_0"}, STREAMING["vitess"][1]) == []
    assert validate("cassandra", {}, STREAMING["cassandra"][1]) == []


def test_an_upgrade_of_what_is_not_valid_says_what_is_wrong() -> None:
    with pytest.raises(OffsetFaultsError, match=r"offset\.lsn 'x' is not a whole number .* \(and 1 more\)") as caught:
        upgrade("postgres", {"lsn": "x", "txId": "y"})
    assert [fault.field for fault in caught.value.faults] == ["offset.lsn", "offset.txId"]


def test_an_unknown_kind_is_told_which_ones_there_are() -> None:
    with pytest.raises(DefiniteError) as caught:
        layout_of("redis")
    assert "postgres" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_is_a_json_schema_that_takes_what_is_valid_and_no_other_field(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema_rs")
    schema = describe(kind)
    partition, offset = STREAMING[kind]
    taken = jsonschema.validator_for(schema)
    for each in ({**offset, **COUNTED, **GROWING}, None):
        assert taken.is_valid({"partition": partition, "offset": each})
    assert taken.is_valid(schema["examples"][0])
    assert not taken.is_valid({"partition": partition, "offset": {**offset, "no such field": 1}})
    assert not taken.is_valid({"partition": {"port": 5}, "offset": offset})
    example = schema["examples"][0]
    assert validate(kind, example["partition"], example["offset"]) == []


def _rules(kind: str, partition: object, offset: object) -> dict[str, str]:
    return {fault.field: fault.rule for fault in validate(kind, partition, offset)}
