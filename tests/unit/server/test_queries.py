"""How many queries run at once, and what is said where there is no Spark to ask."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.postgres import wait_until

from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.server._answering import Query
from tailrace.server.errors import BusyError
from tailrace.server.queries import AT_ONCE, Queries
from tailrace.spark.session import LazySession
from tailrace.spark.task_errors import SessionError

IN_SPARK = Query("select 1", in_spark=True)


def never() -> SparkSession:
    raise SessionError("Spark did not start: no Java", "see spark.log")


def test_without_a_spark_a_query_is_to_be_asked_again(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="no Java"):
        Queries(LazySession(never)).ask(LakeHome(tmp_path), IN_SPARK)


def test_so_many_queries_run_at_once_and_one_more_is_told_to_wait(tmp_path: Path) -> None:
    home, go_on = LakeHome(tmp_path), threading.Event()

    def late() -> SparkSession:
        assert go_on.wait(60)
        return never()

    queries = Queries(LazySession(late))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(queries.ask, home, IN_SPARK) for _ in range(AT_ONCE)]
        wait_until(lambda: queries.running == AT_ONCE, 30)
        with pytest.raises(BusyError, match="4 queries run already") as refused:
            queries.ask(home, Query("select 1"))
        assert refused.value.status == 429
        go_on.set()
        assert [type(each.exception(60)) for each in running] == [TransientError] * AT_ONCE
    assert queries.running == 0
    with pytest.raises(TransientError):
        queries.ask(home, IN_SPARK)
