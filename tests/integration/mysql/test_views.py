"""States of real servers while others write: what a state does not show is known, also what was sent before."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
from tests.integration.mysql.capturing import Capturing, address_of, reader_of
from tests.mysql_servers import MYSQL, MySqlServer, mysql_server
from tests.postgres import wait_until

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.ordering import in_order
from tailrace.log.reader import LogReader
from tailrace.model.change import BEFORE, OP, POS, SEQ
from tailrace.model.table import TableId
from tailrace.source.mysql.rows.views import ReadState, read_state, unseen
from tailrace.source.mysql.server.connection import ask
from tailrace.source.mysql.values.row_changes import decode

Rows = dict[int, int]


def write(server: MySqlServer, database: str, seed: int, stop: threading.Event) -> None:
    generator = random.Random(seed)
    with server.connect(database, autocommit=False) as conn, conn.cursor() as cursor:
        while not stop.is_set():
            key = 10 * generator.randrange(20) + seed
            cursor.execute(f"update t set n = n + 1 where id = {key}")
            cursor.execute(f"replace into t values ({key + 1000}, {generator.randrange(9)})")
            if generator.random() < 0.3:
                cursor.execute(f"delete from t where id = {10 * generator.randrange(20) + seed + 1000}")
            conn.commit()


def shown(state: ReadState, database: str) -> Rows:
    return dict(ask(state.connection, f"select id, n from {database}.t"))


def played(rows: Rows, changes: list[dict[str, Any]], seqs: set[int]) -> Rows:
    """The rows after some transactions, each change of which has the whole row."""
    found = dict(rows)
    for change in changes:
        if change[SEQ] in seqs:
            if change[OP] in "ud":
                found.pop(change[BEFORE]["id"], None)
            if change[OP] in "cu":
                found[change["id"]] = change["n"]
    return found


def logged(reader: LogReader, database: str) -> list[dict[str, Any]]:
    shape = touched_shape(reader, TableId(database, "t"), (0, reader.head.seq), decode)
    assert shape is not None
    changes = Changes.of(reader, shape, (0, reader.head.seq)).table()
    found: list[dict[str, Any]] = in_order(changes, (SEQ, POS)).to_pylist()
    return found


def test_the_rows_of_a_state_and_what_it_does_not_show_are_the_table(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    server.execute("create table t (id int primary key, n int)", database=database)
    capturing, stop = Capturing(server, tmp_path / "log"), threading.Event()
    views: list[tuple[ReadState, Rows]] = []
    with capturing:
        rows = ", ".join(f"({10 * key + seed}, 0)" for key in range(20) for seed in range(3))
        server.execute(f"insert into t values {rows}", database=database)
        writers = [threading.Thread(target=write, args=(server, database, seed, stop)) for seed in range(3)]
        for writer in writers:
            writer.start()
        for _ in range(15):
            with read_state(address_of(server)) as state:
                views.append((state, shown(state, database)))
        stop.set()
        for writer in writers:
            writer.join()
        capturing.reaches()
    reader = reader_of(capturing.log)
    transactions = reader.transactions(0, reader.head.seq)
    changes = logged(reader, database)
    seqs, ends = (transactions.column(name).to_numpy() for name in ("seq", "commit_ordinal"))
    assert len({state.place for state, _ in views}) > 5
    for state, found in views:
        is_before = ends <= state.place.ordinal
        missing = unseen(state.view, transactions) & is_before
        everything = played({}, changes, set(seqs[is_before].tolist()))
        assert played(found, changes, set(seqs[missing].tolist())) == everything
        # What it says of the others is not too little either: none that it shows lies after its place.
        assert unseen(state.view, transactions)[~is_before].all()
        if state.is_exact:
            assert found == everything
            assert not missing.any()


def test_a_transaction_that_is_sent_and_not_shown_yet_is_one_that_a_state_lacks(tmp_path: Path) -> None:
    """The server waits for a reader that acknowledges, and there is none: for seconds the change is in the binlog, and
    no one sees it."""
    with mysql_server(MYSQL) as server:
        server.execute(
            "create database d",
            "create table d.t (id int primary key, n int)",
            "insert into d.t values (1, 1)",
            "install plugin rpl_semi_sync_source soname 'semisync_source.so'",
            "set global rpl_semi_sync_source_timeout = 4000",
        )
        capturing = Capturing(server, tmp_path / "log")
        with capturing:
            wait_until(lambda: capturing.reports == [""])
            server.execute("set global rpl_semi_sync_source_enabled = 1")
            writer = threading.Thread(target=server.execute, args=("update d.t set n = 2 where id = 1",))
            writer.start()
            wait_until(lambda: reader_of(capturing.log).head.seq > 0)
            with read_state(address_of(server)) as state:
                rows = shown(state, "d")
            writer.join()
        reader = reader_of(capturing.log)
        transactions = reader.transactions(0, reader.head.seq)
        assert rows == {1: 1}
        assert unseen(state.view, transactions).tolist() == [True]
        assert int(np.max(transactions.column("commit_ordinal").to_numpy())) <= state.place.ordinal
        with read_state(address_of(server)) as later:
            assert shown(later, "d") == {1: 2}
        assert unseen(later.view, transactions).tolist() == [False]
