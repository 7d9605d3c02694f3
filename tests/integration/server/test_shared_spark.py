"""One Spark for all connectors and for queries: started when it is needed, started again when it dies, and confined."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Client, config_for, process, serving

from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.server.queries import Queries, Query
from tailrace.spark.session import LazySession
from tailrace.spark.task_errors import SessionError

REFUSED = [
    "create table x (id int)",
    "create temporary view v using csv options (path '/etc/passwd')",
    "drop table t",
    "insert into t values (9)",
    "with a as (select 1) insert into t select * from a",
    "from t insert into t select * insert into t select *",
    "insert overwrite directory 'OUT' using csv select 1",
    "set spark.sql.runSQLOnFiles = true",
    "add jar '/etc/passwd'",
    "show tables",
    "explain select 1",
    "select transform(id) using 'cat' as (id string) from t",
    "select * from (select transform(id) using 'cat /etc/passwd' as (id string) from t)",
    "with a as (select transform(id) using 'cat' as (id string) from t) select * from a",
    "select (select count(*) from (from t select transform(id) using 'cat' as (x string)))",
    "select java_method('java.lang.System', 'getenv', 'HOME')",
    "select reflect('java.lang.System', 'getenv', 'HOME')",
    "select try_reflect('java.lang.System', 'getenv', 'HOME')",
    "select identifier('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')",
    "select `REFLECT`('java.lang.System', 'getenv', 'HOME')",
    "select system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "select * from csv.`/etc/passwd`",
    "select * from text.`/etc/passwd`",
    "select * from delta.`LAKE/public/t`",
    "select * from parquet.`LAKE/public/t`",
    "select 1; select 2",
    "select * from nowhere",
    "nonsense",
    "",
]


def ask(server: Client, sql: str, status: int | tuple[int, ...] = 200, connector: str = "one") -> Any:
    body = {"connector": connector, "sql": sql, "engine": "spark", "seconds_max": 300}
    return server.ask("POST", "/query", body, status, timeout=900)


def jvms(pid: int) -> list[int]:
    children = psutil.Process(pid).children(recursive=True)
    return [each.pid for each in children if each.name() == "java" and each.status() != psutil.STATUS_ZOMBIE]


def test_connectors_and_queries_share_the_spark_that_there_is(
    database: str, spark: SparkSession, tmp_path: Path
) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1), (2)")
    with serving(tmp_path / "home") as server:
        server.supervisor.spark.started = spark
        jvms_before = jvms(os.getpid())
        for name in ("one", "two"):
            server.create(name, config_for(database))
            lake = server.supervisor.lake_home(name).path
            wait_until((lake / "_tailrace" / "cuts.jsonl").exists, 60)
            assert ask(server, "select count(*) as n, max(id) from public.t", connector=name)["rows"] == [[2, 2]]
        for sql in REFUSED[::6]:
            ask(server, sql.replace("OUT", str(tmp_path / "out")).replace("LAKE", str(lake)), 400)
        assert not (tmp_path / "out").exists()
        assert jvms(os.getpid()) == jvms_before
    # It was not the server's.
    assert spark.sql("select 1").collect()


def test_without_a_spark_a_query_is_to_be_asked_again(tmp_path: Path) -> None:
    def start() -> SparkSession:
        raise SessionError("Spark did not start: no Java", "see spark.log")

    with pytest.raises(TransientError, match="no Java"):
        Queries(LazySession(start)).ask(LakeHome(tmp_path), Query("select 1", in_spark=True))


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_one_spark_is_started_late_shared_confined_and_started_again(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1), (2)")
    with process(tmp_path / "home") as server:
        for name in ("one", "two"):
            server.create(name, config_for(database))
            server.wait_for(name, "RUNNING")
        lake = tmp_path / "home" / "lakes" / "one"
        wait_until((lake / "_tailrace" / "cuts.jsonl").exists, 60)
        assert jvms(server.process.pid) == []
        assert ask(server, "select count(*) as n, max(id) from public.t")["rows"] == [[2, 2]]
        assert len(jvms(server.process.pid)) == 1
        out = tmp_path / "out"
        for sql in REFUSED:
            ask(server, sql.replace("OUT", str(out)).replace("LAKE", str(lake)), 400)
        assert not out.exists()
        slow = {"connector": "one", "engine": "spark", "seconds_max": 1}
        slow["sql"] = "select sum(a.id * b.id) from range(1000000000) a cross join range(1000) b"
        server.ask("POST", "/query", slow, 408, timeout=900)
        os.kill(jvms(server.process.pid)[0], signal.SIGKILL)
        wait_until(lambda: not jvms(server.process.pid), 30)
        execute(database, "insert into t values (3)")
        wait_until(lambda: ask(server, "select count(*) from t", (200, 503)).get("rows") == [[3]], 900)
        for name in ("one", "two"):
            server.wait_for(name, "RUNNING")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        wait_until(lambda: not jvms_left(tmp_path), 30)


def jvms_left(folder: Path) -> list[int]:
    return [
        each.pid for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or [])
    ]
