"""The events of real servers: every one is read, and what one cannot be sure of is refused."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest
from tests.integration.mysql.binlog import position, raw_events
from tests.integration.mysql.decoding import taken
from tests.mysql_servers import MARIADB, MYSQL, MySqlServer

from tailrace.errors import DefiniteError
from tailrace.model.kind import Kind
from tailrace.source.mysql.events.beginnings import Beginning, read_beginning
from tailrace.source.mysql.events.event import Event, EventKind, Fields, UnreadableEventError, read_event, read_format
from tailrace.source.mysql.events.gtids import Gtid, GtidSet, MariaDbPosition
from tailrace.source.mysql.events.queries import Verb, read_query, read_statement
from tailrace.source.mysql.events.row_events import is_rows, read_rows
from tailrace.source.mysql.events.table_map import read_table_map
from tailrace.source.mysql.events.transaction_payload import events_inside

BEGINNINGS = (EventKind.GTID, EventKind.ANONYMOUS_GTID, EventKind.GTID_TAGGED, EventKind.MARIADB_GTID)
QUERIES = (EventKind.QUERY, EventKind.QUERY_COMPRESSED)


def beginnings(server: MySqlServer, begin: tuple[str, int]) -> list[Beginning]:
    return [read_beginning(event) for event in taken(server, begin).events if event.kind in BEGINNINGS]


def statements(server: MySqlServer, begin: tuple[str, int]) -> list[tuple[Verb, str]]:
    queries = [read_query(event) for event in taken(server, begin).events if event.kind in QUERIES]
    return [(read_statement(query).verb, query.sql) for query in queries]


def test_every_kind_of_event_that_a_server_writes_is_known(server: MySqlServer, database: str) -> None:
    server.execute("flush binary logs", "create table t (a int)", "insert into t values (1)", database=database)
    file, _ = position(server)
    found = taken(server, (file, 4))
    assert [event.kind for event in found.events if not event.is_known] == []
    whole = [event for event in found.events if not event.is_artificial and event.kind != EventKind.FORMAT]
    assert all(event.log_pos for event in whole)
    assert sum(event.size for event in whole) <= position(server)[1]


def test_transactions_have_the_names_and_times_that_the_server_gives_them(mysql: MySqlServer) -> None:
    mysql.execute("create database named", "create table named.t (a int)")
    begin, before = position(mysql), GtidSet.parse(mysql.execute("select @@global.gtid_executed")[0][0])
    since = time.time_ns() // 1000
    for tag in ("", ":first", ":second", ":first"):
        mysql.execute(f"set gtid_next = 'AUTOMATIC{tag}'", "insert into named.t values (1)")
    found = beginnings(mysql, begin)
    until = time.time_ns() // 1000
    gtids = [each.gtid for each in found if isinstance(each.gtid, Gtid)]
    assert [gtid.tag for gtid in gtids] == ["", "first", "second", "first"]
    now = GtidSet.parse(mysql.execute("select @@global.gtid_executed")[0][0])
    assert before.with_more(gtids) == now
    assert all(since <= each.time_us <= until for each in found)
    mysql.execute("flush binary logs", "drop database named")
    (listed,) = [event for event in taken(mysql, (position(mysql)[0], 4)).events if event.kind == 35]
    assert GtidSet.from_bytes(bytes(listed.body)) == now
    assert now.to_bytes() == bytes(listed.body)


def test_transactions_of_mariadb_have_the_names_that_the_server_gives_them(mariadb: MySqlServer) -> None:
    mariadb.execute("create database named", "create table named.t (a int)")
    begin, before = position(mariadb), MariaDbPosition.parse(mariadb.execute("select @@global.gtid_binlog_pos")[0][0])
    mariadb.execute("insert into named.t values (1)", "set gtid_domain_id = 7", "insert into named.t values (2)")
    mariadb.execute("alter table named.t add column b int")
    found = beginnings(mariadb, begin)
    now = MariaDbPosition.parse(mariadb.execute("select @@global.gtid_binlog_pos")[0][0])
    assert before.with_more(each.gtid for each in found) == now
    assert [each.is_standalone for each in found] == [False, False, True]
    assert [each.is_ddl for each in found] == [False, False, True]
    mariadb.execute("drop database named")


def test_rows_of_a_compressed_transaction_are_found(server: MySqlServer, database: str) -> None:
    if server.make is MARIADB:
        server.execute("set global log_bin_compress = on", "set global log_bin_compress_min_len = 10")
    begin = position(server)
    server.execute(
        *(["set binlog_transaction_compression = on"] if server.make is MYSQL else []),
        "create table t (id int primary key, body longtext)",
        "insert into t values (1, repeat('a', 100000)), (2, repeat('b', 100)), (3, 'c')",
        "update t set body = concat(body, 'd')",
        "delete from t where id < 3",
        database=database,
    )
    if server.make is MARIADB:
        server.execute("set global log_bin_compress = off")
    found = taken(server, begin)
    expected = (EventKind.TRANSACTION_PAYLOAD,) if server.make is MYSQL else range(166, 169)
    assert set(expected) <= set(found.kinds)
    rows = found.changes("t")
    assert [(row["tailrace:op"], row["id"], row["body"] and row["body"][-2:]) for row in rows] == [
        *(("c", 1, "aa"), ("c", 2, "bb"), ("c", 3, "c")),
        *(("u", 1, "ad"), ("u", 2, "bd"), ("u", 3, "cd")),
        *(("d", None, None), ("d", None, None)),
    ]


def test_an_event_with_many_rows_is_cut_into_all_of_them(server: MySqlServer, database: str) -> None:
    server.execute("create table t (id int primary key auto_increment, body varchar(20))", database=database)
    begin = position(server)
    rows = ", ".join(f"('{number}')" for number in range(5000))
    server.execute(f"insert into t (body) values {rows}", database=database)
    found = taken(server, begin)
    assert [row["body"] for row in found.changes("t")] == [str(number) for number in range(5000)]
    assert sum(is_rows(kind) for kind in found.kinds) < 100


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_what_a_row_image_leaves_out_is_named(server: MySqlServer, database: str, image: str) -> None:
    begin = position(server)
    server.execute(
        f"set binlog_row_image = {image}",
        "create table t (id int primary key, n int, body text)",
        "insert into t values (1, 10, 'one'), (2, 20, 'two')",
        "update t set n = 11 where id = 1",
        "update t set id = 3 where id = 2",
        "delete from t where id = 1",
        database=database,
    )
    rows = taken(server, begin).changes("t")
    first, moved, gone = rows[2:]
    assert first["tailrace:before"]["id"] == 1
    assert (first["id"], first["n"], first["body"]) == (1, 11, None)
    assert first["tailrace:unchanged"] == ["body"]
    assert (moved["tailrace:before"]["id"], moved["id"]) == (2, 3)
    assert moved["tailrace:unchanged"] == (["n", "body"] if image == "MINIMAL" else ["body"])
    assert gone["tailrace:before"]["id"] == 1


def test_an_insert_that_leaves_columns_out_is_refused(server: MySqlServer, database: str) -> None:
    begin = position(server)
    server.execute(
        "set binlog_row_image = MINIMAL",
        "create table t (id int primary key, n int default 5)",
        "insert into t (id) values (1)",
        database=database,
    )
    with pytest.raises(DefiniteError, match="binlog_row_image = FULL"):
        taken(server, begin).changes("t")


def test_differences_of_documents_are_told_from_documents(mysql: MySqlServer) -> None:
    begin = position(mysql)
    mysql.execute(
        "create database partial",
        "create table partial.t (id int primary key, d json)",
        "set binlog_row_value_options = PARTIAL_JSON",
        'insert into partial.t values (1, \'{"a": "some long text that is worth a difference", "b": 1}\')',
        "update partial.t set d = json_set(d, '$.b', 2)",
        "drop database partial",
    )
    rows = [read_rows(event) for event in taken(mysql, begin).events if is_rows(event.kind)]
    assert [(each.kind, each.is_partial_json) for each in rows] == [(Kind.INSERT, False), (Kind.UPDATE, True)]


def test_prepared_transactions_and_their_ends_are_told(server: MySqlServer, database: str) -> None:
    server.execute("create table t (a int)", database=database)
    begin = position(server)
    for end in ("commit", "rollback"):
        name = f"xa {{}} 'one,{end}', 'two', 3"
        start, stop, prepare, finish = (name.format(word) for word in ("start", "end", "prepare", end))
        server.execute(start, f"insert into {database}.t values (1)", stop, prepare, finish)
    found = [each for each in statements(server, begin) if each[0].name.startswith("XA")]
    verbs = [verb for verb, _ in found]
    if server.make is MYSQL:
        assert verbs == [Verb.XA_START, Verb.XA_END, Verb.XA_COMMIT, Verb.XA_START, Verb.XA_END, Verb.XA_ROLLBACK]
    names = [read_beginning(e) for e in taken(server, begin).events if e.kind == EventKind.MARIADB_GTID]
    prepared, completed = [each.prepared for each in names], [each.completed for each in names]
    if server.make is MARIADB:
        assert prepared[0] == completed[1] == b"\x03\0\0\0" + bytes((10, 3)) + b"one,committwo"
        assert prepared[2] == completed[3]
        assert verbs[-1] == Verb.XA_ROLLBACK


def test_statements_are_read_as_they_were_sent(server: MySqlServer, database: str) -> None:
    begin = position(server)
    with server.connect(database, charset="latin1") as conn, conn.cursor() as cursor:
        cursor.execute("create table `größe` (a int)")
        cursor.execute("set sql_mode = 'ANSI_QUOTES'")
        cursor.execute('truncate "größe"')
    queries = [read_query(event) for event in taken(server, begin).events if event.kind in QUERIES]
    found = [read_statement(query) for query in queries]
    assert [(each.verb, [str(table) for table in each.tables]) for each in found] == [
        (Verb.DEFINITION, [f"{database}.größe"]),
        (Verb.TRUNCATE, [f"{database}.größe"]),
    ]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("varchar(10) character set swe7", "swe7"),
        ("enum('a') character set sjis", "sjis"),
        ("varchar(5000) compressed", "compressed"),
    ],
)
def test_a_table_with_a_column_that_cannot_be_read_says_so(
    server: MySqlServer, database: str, column: str, why: str
) -> None:
    if why == "compressed" and server.make is MYSQL:
        return
    begin = position(server)
    server.execute(f"create table t (id int, odd {column})", "insert into t values (1, 'a')", database=database)
    problem = taken(server, begin).announced("t").problem
    assert problem is not None
    assert problem.startswith("column odd: ")
    assert why in problem


def test_a_table_without_the_names_of_its_columns_has_a_problem(server: MySqlServer, database: str) -> None:
    lesser = "MINIMAL" if server.make is MYSQL else "NO_LOG"
    begin = position(server)
    server.execute(f"set global binlog_row_metadata = {lesser}")
    try:
        server.execute("create table t (id int)", "insert into t values (1)", database=database)
    finally:
        server.execute("set global binlog_row_metadata = FULL")
    assert "binlog_row_metadata = FULL" in (taken(server, begin).announced("t").problem or "")


def test_a_damaged_event_is_never_taken_for_another_one(server: MySqlServer, database: str) -> None:
    begin = position(server)
    server.execute("create table t (a int, b text)", "insert into t values (1, 'x'), (2, null)", database=database)
    generator = random.Random(11)
    events = list(raw_events(server, begin))
    for data in events[1:]:
        read_event(data, has_checksum=True)
        for _ in range(30):
            place = generator.randrange(len(data))
            damaged = bytearray(data)
            damaged[place] ^= 1 << generator.randrange(8)
            with pytest.raises(DefiniteError):
                read_event(bytes(damaged), has_checksum=True)
            with pytest.raises(DefiniteError):
                read_event(data[:place], has_checksum=True)


def read_whole(event: Event, is_mariadb: bool) -> None:
    """Whatever we read of an event of this kind."""
    if event.kind == EventKind.FORMAT:
        read_format(event)
    elif event.kind in BEGINNINGS:
        read_beginning(event)
    elif event.kind == EventKind.TABLE_MAP:
        read_table_map(event, is_mariadb=is_mariadb)
    elif event.kind in QUERIES:
        read_statement(read_query(event))
    elif event.kind == EventKind.TRANSACTION_PAYLOAD:
        list(events_inside(event))
    elif is_rows(event.kind):
        read_rows(event)


def test_no_body_is_read_beyond_its_end(server: MySqlServer, database: str) -> None:
    begin = position(server)
    server.execute(
        *(["set binlog_transaction_compression = on"] if server.make is MYSQL else []),
        "create table t (a int primary key, b text, c enum('x', 'y'), d varchar(20) character set latin1)",
        "insert into t values (1, 'x', 'x', 'y'), (2, null, null, null)",
        "update t set b = 'y'",
        database=database,
    )
    generator = random.Random(13)
    for event in taken(server, begin).events:
        body = bytes(event.body)
        for length in range(0, len(body), max(1, len(body) // 40)):
            changed = bytearray(body[: length or len(body)])
            for _ in range(generator.randrange(4)):
                changed[generator.randrange(len(changed))] = generator.randrange(256)
            odd = Event(event.kind, 0, 1, len(changed), 0, 0, memoryview(bytes(changed)))
            # A table map may name a character set and then have other bytes.
            with suppress(DefiniteError):
                read_whole(odd, server.make is MARIADB)


def test_fields_end_where_their_event_ends() -> None:
    fields = Fields(Event(2, 0, 1, 3, 0, 0, memoryview(b"abc")))
    assert fields.text(2) == "ab"
    with pytest.raises(UnreadableEventError, match="too early"):
        fields.bytes(2)
