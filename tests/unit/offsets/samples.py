"""Offsets of every kind, as the newest versions write them and as older ones wrote them. Written by hand, from what
Debezium's connectors store."""

from __future__ import annotations

from typing import Any

SERVER = {"server": "shop"}
UUID = "24bc7850-2c16-11e6-a073-0242ac110002"
KEY = "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c02000078700000000174000131"
"""`new Object[] {"1"}`, as Java wrote it."""
COLLECTIONS = '[{"incremental_snapshot_collections_id":"shop.public.orders"}]'
GROWING = {
    "incremental_snapshot_collections": COLLECTIONS,
    "incremental_snapshot_primary_key": KEY,
    "incremental_snapshot_maximum_key": KEY,
    "incremental_snapshot_correlation_id": None,
}
COUNTED = {"transaction_id": "777:24023128", "transaction_data_collection_order_public.orders": 3}
BINLOG = {"file": "b.1", "pos": 4}
SHARD = '{"keyspace":"shop","shard":"-80","gtid":"MySQL56/a8d0:1-5","table_p_ks":[]}'

OLD_SHARD = '{"keyspace":"shop","shard":"-80","gtid":"MySQL56/a8d0:1-5"}'
DB2_LSN = "00000000:00000000:0000000000051dfb"

STREAMING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "postgres": (SERVER, {"lsn": 24023128, "lsn_proc": 24023128, "lsn_commit": 24023008, "txId": 777, "ts_usec": 1}),
    "mysql": (SERVER, {"file": "mysql-bin.000003", "pos": 154, "gtids": f"{UUID}:1-5:7", "server_id": 223344}),
    "mariadb": (SERVER, {"file": "mariadb-bin.000003", "pos": 154, "gtids": "0-1-100,1-2-7"}),
    "oracle": (SERVER, {"scn": "1234", "commit_scn": "1240:1:5af8-978a,1250:2:78f8", "snapshot_scn": "1000"}),
    "sqlserver": (
        {"server": "shop", "database": "orders"},
        {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "00000027:00000ac0:0001", "event_serial_no": 2},
    ),
    "db2": (SERVER, {"commit_lsn": "00000000:00000000:0000000000051dfb", "change_lsn": "NULL", "event_serial_no": 0}),
    "cassandra": (
        {"logicalName": "shop", "nodeId": "n1"},
        {"cycling.birthday_list.commitlog": "CommitLog-7-1700000000000.log:12345", "cycling.riders.snapshot": ":-1"},
    ),
    "vitess": (SERVER, {"vgtid": f"[{SHARD}]", "transaction_epoch": '{"-80": 1}', "connector_generation": 2}),
    "mongodb": ({"server_id": "shop"}, {"sec": 1700000000, "ord": 1, "resume_token": "glQAAAACX2RhdGE="}),
    "spanner": (
        {"partitionToken": "Parent0"},
        {"offset": "2026-11-17T12:00:00.123456789Z", "startTime": "2026-11-17T11:00:00Z", "queryStartedAt": ""},
    ),
}
"""What the newest version writes while it streams: partition and offset."""

OLD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("postgres", {"lsn": 5, "snapshot": True}, {"lsn": 5, "snapshot": "INITIAL"}),
    ("postgres", {"lsn": 5, "snapshot": "true"}, {"lsn": 5, "snapshot": "INITIAL"}),
    ("postgres", {"lsn": 5, "snapshot": False}, {"lsn": 5}),
    ("postgres", {"lsn": 5, "lsn_proc": 4}, {"lsn": 5, "lsn_proc": 4, "lsn_commit": 4}),
    ("postgres", {"lsn": 5, "messageType": "NOOP"}, {"lsn": 5}),
    ("mysql", {**BINLOG, "event": 0, "row": 0}, {**BINLOG}),
    ("mysql", {**BINLOG, "gtids": None, "ts_ms": None}, {**BINLOG}),
    ("mysql", {**BINLOG, "gtids": ""}, {**BINLOG}),
    ("mysql", {**BINLOG, "ts_ms": 1700000000}, {**BINLOG, "ts_sec": 1700000000}),
    ("mysql", {**BINLOG, "ts_ms": 1700000000123}, {**BINLOG, "ts_sec": 1700000000}),
    ("mysql", {**BINLOG, "gtids": f"{UUID}:1-5,\n{UUID}:7"}, {**BINLOG, "gtids": f"{UUID}:1-5:7"}),
    ("oracle", {"scn": 1234, "commit_scn": 1240}, {"scn": "1234", "commit_scn": "1240:1:"}),
    ("oracle", {"scn": "1234", "commit_scn": "1240"}, {"scn": "1234", "commit_scn": "1240:1:"}),
    ("oracle", {"scn": "1234", "commit_scn": "1240:0f2.a:3:2"}, {"scn": "1234", "commit_scn": "1240:2:"}),
    (
        "oracle",
        {"scn": "1234", "commit_scn": "1250:2:BB-aa,1240:1:"},
        {"scn": "1234", "commit_scn": "1240:1:,1250:2:aa-bb"},
    ),
    ("oracle", {"lcr_position": "00ff", "scn": None}, {"lcr_position": "00ff"}),
    (
        "oracle",
        {"snapshot": "true", "scn": 5, "snapshot_completed": "false"},
        {"snapshot": "INITIAL", "scn": "5", "snapshot_completed": False},
    ),
    (
        "sqlserver",
        {"commit_lsn": "00000027:00000AC0:0002"},
        {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "NULL", "event_serial_no": 0},
    ),
    ("sqlserver", {"commit_lsn": "NULL", "snapshot": True}, {"commit_lsn": "NULL", "snapshot": "INITIAL"}),
    ("mongodb", {"sec": 5, "ord": 1, "h": -398278732173914406, "tord": 2, "stxnid": None}, {"sec": 5, "ord": 1}),
    ("mongodb", {"initsync": True, "sec": 0, "ord": 0, "h": 7}, {"initsync": True, "sec": 0, "ord": 0}),
    (
        "cassandra",
        {"birthday_list": "commitlog-7-1700000000000.log:12345"},
        {"birthday_list": "commitlog-7-1700000000000.log:12345"},
    ),
    ("mariadb", {**BINLOG, "event": 0, "row": 0, "snapshot": True}, {**BINLOG, "snapshot": "INITIAL"}),
    ("mariadb", {**BINLOG, "gtids": "0-1-100,\n1-2-7"}, {**BINLOG, "gtids": "0-1-100,1-2-7"}),
    ("mariadb", {**BINLOG, "gtids": "", "ts_sec": None}, {**BINLOG}),
    ("mariadb", {**BINLOG, "ts_ms": 1700000000123}, {**BINLOG, "ts_sec": 1700000000}),
    ("db2", {"commit_lsn": DB2_LSN.upper()}, {"commit_lsn": DB2_LSN, "change_lsn": "NULL", "event_serial_no": 0}),
    (
        "db2",
        {"commit_lsn": DB2_LSN, "change_lsn": None, "event_serial_no": 3},
        {"commit_lsn": DB2_LSN, "change_lsn": "NULL", "event_serial_no": 3},
    ),
    (
        "db2",
        {"commit_lsn": DB2_LSN, "snapshot": True, "snapshot_completed": False},
        {"commit_lsn": DB2_LSN, "snapshot": "INITIAL", "snapshot_completed": False},
    ),
    ("db2", {"commit_lsn": "NULL", "snapshot": "true"}, {"commit_lsn": "NULL", "snapshot": "INITIAL"}),
    ("vitess", {"vgtid": f"[{OLD_SHARD}]"}, {"vgtid": f"[{SHARD}]"}),
    ("vitess", {"vgtid": f'[{OLD_SHARD[:-1]},"table_p_ks":null}}]'}, {"vgtid": f"[{SHARD}]"}),
    (
        "vitess",
        {"vgtid": f"[{OLD_SHARD}]", "transaction_id": f"[{OLD_SHARD}]"},
        {"vgtid": f"[{SHARD}]", "transaction_id": f"[{OLD_SHARD}]"},
    ),
    ("spanner", {"offset": "2026-11-17T12:00:00.5Z"}, {"offset": "2026-11-17T12:00:00.500000000Z"}),
    ("spanner", {"offset": "2026-11-17T12:00:00"}, {"offset": "2026-11-17T12:00:00Z"}),
    (
        "spanner",
        {"offset": "2026-11-17T12:00:00.25+01:00", "startTime": "2026-11-17T11:00:00Z"},
        {"offset": "2026-11-17T11:00:00.250000000Z", "startTime": "2026-11-17T11:00:00Z"},
    ),
]
"""Kind, an offset of an older version, and the same as the newest writes it."""
