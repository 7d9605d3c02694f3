"""The same verbs in Spark Connect, where there is no SparkContext. In a process of its own: one that has a Spark of the
other kind cannot have both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.engine.processes import run

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys, threading
from pathlib import Path
from pyspark.sql import SparkSession
from tailrace.engine.door import Job
from tailrace.engine.spark.cluster import has_context
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.door import CancelledWorkError
from tailrace.engine.spark.errors import JobError, SessionError
from tailrace.engine.spark.session import LazySession
from tailrace.errors import TextKeyError

folder, job = Path(sys.argv[1]), Job("publish 2 tables", "shop, publish")

def refuse(item):
    raise TextKeyError.found("public.t", "the value 'x'", 7, [2, "day"])

def fail(item):
    raise ValueError("an odd value")

def split(item):
    yield item % 2, b"%d" % item
    yield 3, b""
    if item == 9:
        refuse(item)

def package(item):
    import tailrace
    return Path(tailrace.__file__).parent.parent.name

def wait(item):
    import time
    (folder / "begun").touch()
    time.sleep(600)

def error_of(work):
    try:
        work()
    except Exception as error:
        return type(error).__name__, str(error)

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert not has_context(spark)
engine = SparkEngine(LazySession(lambda: spark, spark))
with engine:
    assert (engine.master, engine.cores, engine.ui_address) == ("local[2]", 2, None)
    assert engine.map(job, range(5), lambda item: 10 * item, 2) == [0, 10, 20, 30, 40]
    assert engine.map(job, [0, 1], package) == ["tailrace.zip"] * 2
    assert engine.shuffle(job, range(6), split, 5, sorted) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"], [b""] * 6]
    print(error_of(lambda: engine.shuffle(job, [9], split, 5, sorted)))
    try:
        engine.map(job, [0], refuse)
    except TextKeyError as error:
        print(error.hint, error.table, error.columns)
    print(error_of(lambda: engine.map(job, [0], fail)))

    def cancel():
        while not (folder / "begun").exists():
            threading.Event().wait(0.05)
        engine.cancel(job.group)

    threading.Thread(target=cancel).start()
    print(error_of(lambda: engine.map(job, [0], wait)))
    with SparkEngine(LazySession(lambda: spark, spark)) as second:
        assert second.map(job, [0, 1], package) == ["tailrace.zip"] * 2
    spark.stop()
    print(error_of(lambda: engine.map(job, [0], str)))
"""


def test_the_same_verbs_run_without_a_context(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    assert run(PROGRAM, tmp_path) == [
        "('TextKeyError', \"public.t: the value 'x'\")",
        "it is copied again by a running or the next tailrace sync public.t [2, 'day']",
        "('JobError', 'ValueError: an odd value (publish 2 tables)')",
        "('CancelledWorkError', 'cancelled: publish 2 tables')",
        "('SessionError', 'the Spark session that was given has ended')",
    ]
