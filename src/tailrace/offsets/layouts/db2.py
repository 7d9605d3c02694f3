"""Offsets of Debezium's Db2 connector: those of SQL Server, with one partition and LSNs of up to 16 bytes. Pure."""

from __future__ import annotations

from tailrace.offsets.attributes import ORDERS
from tailrace.offsets.codecs import TEXT
from tailrace.offsets.layout import Layout, OffsetField
from tailrace.offsets.layouts.sqlserver import POSITION_RULES, hex_lsn, newest, position_fields

LAYOUT = Layout(
    kind="db2",
    about="one partition for a connector",
    partition=(OffsetField("server", TEXT, "the connector's topic.prefix", required=True),),
    offset=position_fields(hex_lsn(range(9, 17))),
    families=(ORDERS,),
    cross_rules=POSITION_RULES,
    newest=newest,
    example={
        "partition": {"server": "shop"},
        "offset": {"commit_lsn": "00000000:00000000:0000000000051dfb", "change_lsn": "NULL", "event_serial_no": 0},
    },
)
