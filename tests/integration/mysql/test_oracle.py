"""The binlog, read by us and by mysql-replication, which decodes it row by row: both find the same values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from tests.integration.mysql.binlog import position
from tests.integration.mysql.decoding import taken
from tests.integration.mysql.test_values import FAMILIES, make_table
from tests.mysql_servers import HOST, MARIADB, MySqlServer

from tailrace.model.change import BEFORE

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")

AGREED = ("integers", "decimals", "labels")
"""What it reads as the server does. It drops zeros of bytes, and loses its place in a large text."""


def theirs(server: MySqlServer, begin: tuple[str, int], database: str) -> list[tuple[str, Any, Any]]:
    """Each change: its kind, the old row, the new row."""
    file, at = begin
    stream = BinLogStreamReader(
        connection_settings={"host": HOST, "port": server.port, "user": "root"},
        server_id=78,
        log_file=file,
        log_pos=at,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        only_schemas=[database],
        is_mariadb=server.make is MARIADB,
    )
    found = []
    try:
        for event in stream:
            for row in event.rows:
                if isinstance(event, UpdateRowsEvent):
                    found.append(("u", row["before_values"], row["after_values"]))
                elif isinstance(event, WriteRowsEvent):
                    found.append(("c", None, row["values"]))
                else:
                    found.append(("d", row["values"], None))
    finally:
        stream.close()
    return found


def plain(row: dict[str, Any] | None, types: dict[str, str]) -> dict[str, Any] | None:
    """Values in the form that both have: numbers as decimals, a set as its labels. The other reader does not tell an
    empty set from none."""
    return None if row is None else {name: _plain(row[name], type_) for name, type_ in types.items()}


def _plain(value: Any, type_: str) -> Any:
    if type_.startswith("set"):
        return frozenset(filter(None, value.split(","))) if isinstance(value, str) else frozenset(value or ())
    if value is not None and type_.startswith("decimal"):
        return Decimal(value)
    return Decimal(value) if isinstance(value, int) else value


@pytest.mark.parametrize("family", AGREED)
def test_another_reader_of_the_binlog_finds_the_same_changes(server: MySqlServer, database: str, family: str) -> None:
    # What is left out it cannot read, or reads otherwise than the server.
    columns = {type_: values for type_, values in FAMILIES[family].items() if "character set" not in type_}
    begin = position(server)
    make_table(server, database, columns)
    found = taken(server, begin)
    types = {name: str(type_) for name, type_ in found.announced("t").columns}
    ours = []
    for row in found.changes("t"):
        op = row["tailrace:op"]
        old, new = (None if op == "c" else row[BEFORE]), (None if op == "d" else row)
        ours.append((op, plain(old, types), plain(new, types)))
    assert ours == [(op, plain(old, types), plain(new, types)) for op, old, new in theirs(server, begin, database)]
