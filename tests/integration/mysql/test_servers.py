"""The servers that tests of MySQL run on are what those tests take them for."""

from __future__ import annotations

from tests.mysql_servers import MYSQL, MySqlServer, mysql_server


def test_a_server_logs_whole_rows_with_the_names_of_their_columns(server: MySqlServer, database: str) -> None:
    settings = server.execute("select @@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata")
    assert settings == ((1, "ROW", "FULL", "FULL"),)


def test_a_server_keeps_its_data_over_a_stop_and_a_crash() -> None:
    with mysql_server(MYSQL, sync_binlog="1", innodb_flush_log_at_trx_commit="1") as server:
        server.execute("create database kept", "create table kept.t (id int primary key)", "insert kept.t values (1)")
        server.stop()
        server.start()
        server.execute("insert kept.t values (2)")
        server.kill()
        server.start()
        assert server.execute("select id from kept.t order by id") == ((1,), (2,))


def test_two_servers_are_not_taken_for_one(mysql: MySqlServer) -> None:
    with mysql_server(MYSQL) as other:
        assert other.execute("select @@server_uuid") != mysql.execute("select @@server_uuid")
