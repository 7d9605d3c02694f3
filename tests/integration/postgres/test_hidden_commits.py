"""A transaction is in the stream before other sessions see it: what the catalog shows meanwhile is not its shape."""

from __future__ import annotations

import threading

import psycopg
import pytest
from tests.integration.postgres.test_window_points import captured, server_of_its_own, waiting_for_a_standby
from tests.postgres import wait_until

from tailrace.log.reader import LogReader
from tailrace.source.postgres.stream.encoding.announced_shapes import Announcing, Described, describe_announced
from tailrace.source.postgres.values.messages import Relation, RelationColumn

INT4 = 23
ADD = "begin; alter table t add x int; insert into t values (3, 0, 5); commit"
SENT = "select sent_lsn >= pg_current_wal_insert_lsn() from pg_stat_replication"


def test_capture_waits_until_others_see_the_transaction_that_changed_a_table_and_its_columns() -> None:
    with server_of_its_own() as server, captured(server.create_database("hidden")) as (conn, _, capture):
        with waiting_for_a_standby(conn, server.dsn("hidden"), ADD):
            wait_until(lambda: conn.execute(SENT).fetchone() == (True,))
            # A capture that took the catalog as it is would log the transaction now.
            with pytest.raises(AssertionError):
                wait_until(lambda: capture.head.seq == 1, seconds=0.5)
        wait_until(lambda: capture.head.seq == 1)
        shape = LogReader(capture.log).schemas()[-1].schema
        assert [(column.name, column.number) for column in shape.columns] == [("id", 1), ("n", 2), ("x", 3)]
        assert shape.definition is not None
        assert shape.definition.get("doubt") is None


def test_a_transaction_that_stays_hidden_leaves_its_shape_in_doubt() -> None:
    with server_of_its_own() as server:
        dsn = server.create_database("hidden")
        with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn, autocommit=True) as other:
            conn.execute("create table t (id int primary key, n int)")
            (oid,) = conn.execute("select 't'::regclass::oid::int").fetchone() or (0,)
            with waiting_for_a_standby(conn, dsn, ADD):
                xid = _hidden_xid(conn)
                names = RelationColumn(True, "id", INT4, -1), *(RelationColumn(False, n, INT4, -1) for n in "nx")
                relation = Relation(oid, "public", "t", "d", names, committed_by=xid)
                impatient = describe_announced(other, relation, Announcing(hidden_seconds_max=0))
                described = list[Described]()
                patient = threading.Thread(target=lambda: described.append(describe_announced(other, relation)))
                patient.start()
                patient.join(0.2)
                assert patient.is_alive()
            patient.join()
            assert (impatient.schema.definition or {})["doubt"]
            assert [each.is_settled for each in described] == [True]


def _hidden_xid(conn: psycopg.Connection) -> int:
    row = conn.execute("select backend_xid::text from pg_stat_activity where wait_event = 'SyncRep'").fetchone()
    assert row is not None
    return int(row[0])
