"""Capture from real servers: the log has the server's transactions, each once, whatever happens to either."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import pytest
from tests.integration.mysql.binlog import position
from tests.integration.mysql.capturing import (
    Capturing,
    address_of,
    assert_log_is_the_table,
    names,
    names_at,
    reader_of,
    replayed,
)
from tests.mysql_servers import MAKES, MARIADB, MYSQL, MySqlServer, mysql_server
from tests.postgres import wait_until

from tailrace.errors import DefiniteError, GapError, MovedError
from tailrace.log.playback.play import read
from tailrace.model.kind import Kind
from tailrace.model.table import TableId
from tailrace.source.mysql.server.connection import connected
from tailrace.source.mysql.server.identity import identify
from tailrace.source.mysql.stream.places import BinlogPlace

SAFE = {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}


def write(server: MySqlServer, database: str, seed: int, transactions: int) -> None:
    """Transactions of several statements each; some are rolled back, some in parts."""
    generator = random.Random(seed)
    with server.connect(database, autocommit=False) as conn, conn.cursor() as cursor:
        for _ in range(transactions):
            for _ in range(generator.randrange(1, 4)):
                key = generator.randrange(60)
                cursor.execute(
                    generator.choice(
                        [
                            f"replace into t values ({key}, {generator.randrange(9)}, repeat('x', {key}))",
                            f"insert ignore into t values ({key}, 0, null)",
                            f"update t set n = n + 1 where id > {key}",
                            f"update ignore t set id = id + 100 where id = {key}",
                            f"delete from t where id % 13 = {key % 13}",
                        ]
                    )
                )
                if generator.random() < 0.2:
                    cursor.execute("savepoint s")
                    cursor.execute(f"delete from t where id < {key}")
                    cursor.execute("rollback to savepoint s")
            conn.rollback() if generator.random() < 0.2 else conn.commit()


TABLE = "create table t (id int primary key, n int, body text)"


def test_the_logs_transactions_are_the_servers(server: MySqlServer, database: str, tmp_path: Path) -> None:
    capturing, begin = Capturing(server, tmp_path / "log"), position(server)
    with capturing:
        server.execute(TABLE, database=database)
        write(server, database, 1, 60)
        server.execute("flush binary logs")
        write(server, database, 2, 60)
        server.execute("create table u select * from t", "truncate t", "rename table u to v", database=database)
        write(server, database, 3, 20)
        capturing.reaches()
    assert names(capturing.log) == names_at(server, begin)
    assert_log_is_the_table(server, capturing.log, database)


def test_a_log_that_is_stopped_and_begun_again_has_each_transaction_once(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    server.execute(TABLE, database=database)
    capturing, begin = Capturing(server, tmp_path / "log"), position(server)
    writers = [threading.Thread(target=write, args=(server, database, seed, 100)) for seed in (4,)]
    for thread in writers:
        thread.start()
    rounds = 0
    while any(thread.is_alive() for thread in writers) or rounds < 3:
        rounds += 1
        known = reader_of(capturing.log).head.seq if capturing.log.exists() else 0
        with capturing:
            wait_until(
                lambda known=known: (
                    reader_of(capturing.log).head.seq > known + 5 or not any(thread.is_alive() for thread in writers)
                )
            )
    with capturing:
        capturing.reaches()
    assert names(capturing.log) == names_at(server, begin)
    assert_log_is_the_table(server, capturing.log, database)


@pytest.mark.parametrize("make", MAKES)
def test_a_server_that_crashes_and_comes_again_loses_nothing_of_the_log(make: str, tmp_path: Path) -> None:
    with mysql_server(MAKES[make], **SAFE) as server:
        server.execute("create database d", "create table d.t (id int primary key, n int, body text)")
        capturing, begin = Capturing(server, tmp_path / "log"), position(server)
        with capturing:
            for seed in range(3):
                write(server, "d", seed, 20)
                server.kill()
                wait_until(lambda: "trying again" in " ".join(capturing.reports[-1:]))
                server.start()
            write(server, "d", 9, 20)
            capturing.reaches()
        assert names(capturing.log) == names_at(server, begin)
        assert_log_is_the_table(server, capturing.log, "d")


def test_a_transaction_larger_than_any_packet_is_taken_whole(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    server.execute(
        "create table t (id int primary key, body longblob)",
        "set global max_allowed_packet = 1 << 28",
        database=database,
    )
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute(
            "begin",
            "insert into t values (1, repeat('a', 30000000))",
            *(f"insert into t values ({row}, repeat('b', 500000))" for row in range(2, 30)),
            "update t set body = 'small' where id = 1",
            "commit",
            database=database,
        )
        capturing.reaches()
    assert len(names(capturing.log)) == 1
    rows = replayed(capturing.log, TableId(database, "t"))
    assert len(rows[29]["body"]) == 500000
    assert rows[1]["body"] == b"small"


def test_compressed_transactions_are_logged_as_others_are(server: MySqlServer, database: str, tmp_path: Path) -> None:
    server.execute(TABLE, database=database)
    switch = "binlog_transaction_compression" if server.make is MYSQL else "log_bin_compress"
    capturing, begin = Capturing(server, tmp_path / "log"), position(server)
    server.execute(f"set global {switch} = on")
    try:
        with capturing:
            server.execute("insert into t values (900, 1, repeat('long', 1000))", database=database)
            write(server, database, 5, 30)
            capturing.reaches()
    finally:
        server.execute(f"set global {switch} = off")
    assert names(capturing.log) == names_at(server, begin)
    assert_log_is_the_table(server, capturing.log, database)


def test_prepared_transactions_count_from_their_end_over_every_restart(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    server.execute(TABLE, "insert into t values (1, 1, 'a')", database=database)
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        for row, name in ((10, "kept"), (20, "gone")):
            server.execute(
                f"xa start '{database}-{name}'",
                f"insert into t values ({row}, 0, null)",
                f"xa end '{database}-{name}'",
                f"xa prepare '{database}-{name}'",
                database=database,
            )
        server.execute("insert into t values (2, 2, 'b')", database=database)
        capturing.reaches()
        assert replayed(capturing.log, TableId(database, "t")).keys() == {2}
    with capturing:
        assert capturing.prepared == 2
        server.execute(f"xa commit '{database}-kept'", f"xa rollback '{database}-gone'")
        server.execute("insert into t values (3, 3, 'c')", database=database)
        capturing.reaches()
        assert capturing.prepared == 0
    assert replayed(capturing.log, TableId(database, "t")).keys() == {2, 3, 10}


def test_a_prepared_transaction_that_is_older_than_the_log_is_a_gap(
    server: MySqlServer, database: str, tmp_path: Path
) -> None:
    xa = f"'{database}-old'"
    server.execute(TABLE, database=database)
    prepare = [f"xa start {xa}", "insert into t values (1, 0, null)", f"xa end {xa}", f"xa prepare {xa}"]
    server.execute(*prepare, database=database)
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute(f"xa commit {xa}")
        error = capturing.fails()
    assert isinstance(error, GapError)
    assert "prepared before the log began" in error.message


def test_definitions_are_told_as_messages_of_their_own(server: MySqlServer, database: str, tmp_path: Path) -> None:
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute(
            TABLE,
            "insert into t values (1, 1, 'a')",
            "alter table t add column more int default 5",
            "insert into t values (2, 2, 'b', 6)",
            "create view w as select 1",
            database=database,
        )
        capturing.reaches()
    reader = reader_of(capturing.log)
    ranges = reader.ranges(0, reader.head.seq, 1 << 20)
    records = [row for each in ranges for batch in read(reader.path, each, 0, 99) for row in batch.to_pylist()]
    told = [json.loads(row["payload"]) for row in records if row["kind"] == Kind.MESSAGE]
    assert [(each["verb"], each["tables"]) for each in told] == [("definition", [f"{database}.t"])] * 2
    shapes = [version.schema for version in reader.schemas() if version.schema.table.name == "t"]
    assert [len(shape.columns) for shape in shapes] == [3, 4]


def test_an_alteration_in_two_phases_is_told(mariadb: MySqlServer, tmp_path: Path) -> None:
    mariadb.execute("create database phases", "create table phases.t (id int primary key)")
    capturing, begin = Capturing(mariadb, tmp_path / "log"), position(mariadb)
    with capturing:
        mariadb.execute("set binlog_alter_two_phase = 1", "alter table phases.t add column n int default 7")
        mariadb.execute("insert into phases.t values (1, 2)")
        capturing.reaches()
    assert names(capturing.log) == names_at(mariadb, begin)
    assert_log_is_the_table(mariadb, capturing.log, "phases")
    mariadb.execute("drop database phases")


def test_a_table_that_cannot_be_read_is_marked_and_no_other(server: MySqlServer, database: str, tmp_path: Path) -> None:
    odd = "create table odd (id int primary key, body varchar(9) character set swe7)"
    server.execute(TABLE, odd, "create table p (id int)", database=database)
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute("insert into odd values (1, 'a')", "insert into t values (1, 1, 'x')", database=database)
        capturing.reaches()
    assert_log_is_the_table(server, capturing.log, database)
    reader = reader_of(capturing.log)
    ranges = reader.ranges(0, reader.head.seq, 1 << 20)
    records = [row for each in ranges for batch in read(reader.path, each, 0, 99) for row in batch.to_pylist()]
    (unsent,) = [row for row in records if row["kind"] == Kind.UNSENT]
    assert b"swe7" in unsent["payload"]


def test_rows_that_were_logged_as_statements_are_a_gap(server: MySqlServer, database: str, tmp_path: Path) -> None:
    server.execute(TABLE, database=database)
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute("set binlog_format = 'STATEMENT'", "insert into t values (1, 1, 'a')", database=database)
        error = capturing.fails()
    assert isinstance(error, GapError)
    assert "as statements" in error.message


def test_an_idle_server_is_known_to_have_nothing_more(server: MySqlServer, tmp_path: Path) -> None:
    capturing = Capturing(server, tmp_path / "log")
    with capturing:
        server.execute("flush binary logs")
        capturing.reaches()
        wait_until(lambda: capturing.reports == [""])


def test_changes_that_were_purged_meanwhile_are_a_gap(tmp_path: Path) -> None:
    with mysql_server(MYSQL) as server:
        server.execute("create database d", "create table d.t (id int primary key)")
        capturing = Capturing(server, tmp_path / "log")
        with capturing:
            server.execute("insert into d.t values (1)")
            capturing.reaches()
        server.execute("insert into d.t values (2)", "flush binary logs")
        server.execute(f"purge binary logs to '{position(server)[0]}'")
        with capturing:
            assert isinstance(capturing.fails(), GapError)
        with connected(address_of(server)) as connection:
            end = reader_of(capturing.log).position_of(1)
            capturing.claim = capturing.claim.restarted(connection, identify(connection), end)
        with capturing:
            server.execute("insert into d.t values (3)")
            capturing.reaches(history=1)
        assert replayed(capturing.log, TableId("d", "t")).keys() == {1, 3}
        assert BinlogPlace.of(reader_of(capturing.log).position_of(2).ordinal).history == 1


@pytest.mark.parametrize("make", MAKES)
def test_a_server_whose_binlog_was_reset_is_not_taken_for_the_one_that_was_read(make: str, tmp_path: Path) -> None:
    """Its file is called the same, is longer than what was read, and it has a transaction of that number."""
    with mysql_server(MAKES[make]) as server:
        server.execute("create database d", "create table d.t (id int primary key)")
        capturing = Capturing(server, tmp_path / "log")
        with capturing:
            server.execute("insert into d.t values (1)")
            capturing.reaches()
        server.execute("reset master" if server.make is MARIADB else "reset binary logs and gtids")
        server.execute("create table d.another_name (a int)")
        server.execute(*(f"insert into d.t values ({row})" for row in range(2, 40)))
        with capturing:
            assert isinstance(capturing.fails(), GapError)


def test_another_server_at_the_same_address_is_refused(mysql: MySqlServer, tmp_path: Path) -> None:
    capturing = Capturing(mysql, tmp_path / "log")
    with mysql_server(MYSQL) as other:
        capturing.server = other
        with capturing:
            assert isinstance(capturing.fails(), MovedError)


def test_a_second_reader_of_the_same_number_ends_the_first(mysql: MySqlServer, tmp_path: Path) -> None:
    first, second = Capturing(mysql, tmp_path / "first"), Capturing(mysql, tmp_path / "second")
    second.claim = first.claim
    with first:
        first.reaches()
        wait_until(lambda: first.reports == [""])
        with second:
            error = first.fails()
            second.reaches()
    assert isinstance(error, DefiniteError)
    assert "another reader" in (error.hint or "")


def test_settings_that_lose_changes_are_named(tmp_path: Path) -> None:
    with mysql_server(MYSQL) as server:
        for name, lesser, usual in (
            ("binlog_row_image", "MINIMAL", "FULL"),
            ("binlog_row_metadata", "MINIMAL", "FULL"),
            ("binlog_row_value_options", "PARTIAL_JSON", ""),
        ):
            server.execute(f"set global {name} = '{lesser}'")
            with pytest.raises(DefiniteError, match=name), connected(address_of(server)) as connection:
                identify(connection)
            server.execute(f"set global {name} = '{usual}'")


def test_what_a_rolled_back_transaction_leaves_in_a_table_without_transactions_is_logged(
    mariadb: MySqlServer, tmp_path: Path
) -> None:
    mariadb.execute("create database mixed")
    mariadb.execute(TABLE, "create table m (id int primary key) engine = myisam", database="mixed")
    capturing = Capturing(mariadb, tmp_path / "log")
    with capturing:
        mariadb.execute(
            "begin", "insert into t values (1, 1, 'a')", "insert into m values (1)", "rollback", database="mixed"
        )
        capturing.reaches()
    assert replayed(capturing.log, TableId("mixed", "m")).keys() == {1}
    assert replayed(capturing.log, TableId("mixed", "t")) == {}
    mariadb.execute("drop database mixed")
