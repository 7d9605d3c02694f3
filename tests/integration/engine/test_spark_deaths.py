"""A JVM that is killed in the middle of a job, and a session that ends under us. Each in a process of its own: a
process has one Spark, and other tests need theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.engine.processes import run

pytestmark = pytest.mark.spark

BEGIN = """
import json, os, signal, sys, time
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tailrace.engine.door import Job
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.errors import SessionError
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named
from tailrace.settings import SparkSettings

folder = Path(sys.argv[1])
job = Job("copy 2 tables", "shop copy")

def ours(**settings):
    chosen = SparkSettings("local[2]", **settings)
    return LazySession(lambda: session(format_named("delta"), settings=chosen), master=chosen.master)

def jvm_pid():
    return SparkContext._gateway.proc.pid

def kill_once(item):
    killed = folder / "killed"
    if item == 1 and not killed.exists():
        killed.touch()
        os.kill(int((folder / "jvm").read_text()), signal.SIGKILL)
        time.sleep(600)
    return item
"""
KILLED = """
with SparkEngine(ours()) as engine:
    assert engine.map(job, [0], str) == ["0"]
    (folder / "jvm").write_text(str(jvm_pid()))
    before = jvm_pid()
    assert engine.map(job, range(3), kill_once) == [0, 1, 2]
    assert jvm_pid() != before
    assert engine.map(job, [0], str) == ["0"]
    os.kill(jvm_pid(), signal.SIGKILL)
    assert engine.map(job, [0, 1], str) == ["0", "1"]
print("survived")
"""
GIVEN = """
given = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with SparkEngine(LazySession(lambda: given, given)) as engine:
    assert engine.master == "local[2]"
    (folder / "jvm").write_text(str(jvm_pid()))
    for _ in range(2):
        try:
            engine.map(job, range(3), kill_once)
        except SessionError as error:
            print(error.message)
"""
STOPPED = """
given = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with SparkEngine(LazySession(lambda: given, given)) as engine:
    given.stop()
    try:
        engine.map(job, [0], str)
    except SessionError as error:
        print(error.message, "|", error.hint)
with SparkEngine(ours()) as engine:
    assert engine.map(job, [0], str) == ["0"]
    SparkSession.getActiveSession().stop()
    assert engine.map(job, [0], str) == ["0"]
    print("started again")
"""
NAMED = """
events = folder / "events"
events.mkdir()
names = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
conf = tuple((f"spark.eventLog.{name}", value) for name, value in names.items())
with SparkEngine(ours(conf=conf, ui=True)) as engine:
    assert engine.ui_address is None
    assert (engine.master, engine.cores) == ("local[2]", 2)
    engine.map(job, [0, 1], str)
    assert engine.master == "local[2]"
    assert SparkSession.getActiveSession().sparkContext.master == "local[2,4]"
    import urllib.request, psutil
    print(engine.ui_address.rpartition(":")[0])
    jobs = urllib.request.urlopen(engine.ui_address + "/api/v1/applications/" +
        SparkSession.getActiveSession().sparkContext.applicationId + "/jobs").read()
    assert json.loads(jobs)[0]["description"] == job.description, jobs
    listening = [each for each in psutil.Process(jvm_pid()).net_connections("inet") if each.status == "LISTEN"]
    print({each.laddr.ip.removeprefix("::ffff:") for each in listening})
lines = [json.loads(line) for path in events.rglob("events_*") for line in path.read_text().splitlines()]
[started] = [line for line in lines if line["Event"] == "SparkListenerJobStart"]
print(started["Properties"]["spark.job.description"], "|", started["Properties"]["spark.jobGroup.id"])
"""


def test_a_jvm_that_is_killed_in_the_middle_of_a_job_is_started_again_and_the_job_is_done(tmp_path: Path) -> None:
    assert run(BEGIN + KILLED, tmp_path) == ["survived"]


def test_a_session_that_was_given_and_has_died_is_not_started_again(tmp_path: Path) -> None:
    assert run(BEGIN + GIVEN, tmp_path) == [
        "Spark has ended: copy 2 tables",
        "the Spark session that was given has ended",
    ]


def test_a_session_that_was_stopped_is_started_again_if_it_is_ours(tmp_path: Path) -> None:
    ended = "the Spark session that was given has ended | begin again with a new session"
    assert run(BEGIN + STOPPED, tmp_path) == [ended, "started again"]


def test_sparks_page_and_its_event_log_show_what_a_job_does_and_only_this_machine_sees_it(tmp_path: Path) -> None:
    shown = run(BEGIN + NAMED, tmp_path)
    assert shown == ["http://127.0.0.1", "{'127.0.0.1'}", "copy 2 tables | shop copy"]


def test_a_job_runs_wherever_the_temporary_folder_is(tmp_path: Path) -> None:
    """A Unix socket's path must be short."""
    folders = [tmp_path / ("x" * length) for length in (20, 200)]
    for each in folders:
        each.mkdir()
    program = f"""
for scratch in {list(map(str, folders))}:
    with SparkEngine(LazySession(lambda: session(format_named("delta"), scratch=Path(scratch)))) as engine:
        print(engine.map(job, [0, 1], str))
        print(SparkSession.getActiveSession().conf.get("spark.python.unix.domain.socket.enabled"))
"""
    assert run(BEGIN + program, tmp_path) == ["['0', '1']", "true"] * 2
