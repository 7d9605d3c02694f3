"""Copies by windows under load, stopped and killed at random points, again and again: the lake equals the source."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from tests.conftest import ROOT
from tests.load import Load, writers
from tests.postgres import wait_until

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep
from tailrace.model.signal import SignalState
from tailrace.model.table_state import TableState
from tailrace.settings import Watermarking

ROUNDS = int(os.environ.get("TAILRACE_ROUNDS", "12"))
SETTLED_EVERY = 4
SPARK_EVERY = 4
"""Rounds; what Spark takes to start is most of their time. In the others, all work is done by one thread."""
ROWS = 600
WRITERS = 4
TABLES = ("public.orders", "public.pairs")
SIGNALS = "public.signals"
HANGS_SECONDS = 220
"""A run that takes so long prints where it is."""
RUN_SECONDS_MAX = 280.0
UNDER_WAY = (SignalState.WAITING, SignalState.RECEIVED, SignalState.RUNNING)
LARGE = "repeat(md5({0}::text), 200)"
SETUP = f"""
create table orders (id int primary key, n int not null, large text);
alter table orders alter large set storage external;
insert into orders select n, 0, {LARGE.format("n")} from generate_series(1, {ROWS}) n;
create table pairs (a text, b int, n int not null, primary key (a, b));
insert into pairs select chr(65 + n % 26), n, 0 from generate_series(1, {ROWS}) n;
create table signals (id text primary key, type text not null, data text);
"""
STATEMENTS = (
    "update orders set n = n + 1 where id = %(key)s",
    f"update orders set large = {LARGE.format('random()')} where id = %(key)s",
    "delete from orders where id = %(key)s",
    f"insert into orders values (%(key)s, 0, {LARGE.format('random()')}) on conflict do nothing",
    "update orders set id = %(other)s where id = %(key)s and not exists (select from orders where id = %(other)s)",
    "update orders set id = -id where id between %(key)s and %(key)s + 3",
    "delete from orders where id < 0",
    "update pairs set n = n + 1 where b %% 10 = %(key)s %% 10",
    "update pairs set a = chr(65 + %(other)s %% 26) where b = %(key)s",
    "delete from pairs where b = %(key)s",
    "insert into pairs values (chr(65 + %(other)s %% 26), %(key)s, 0) on conflict do nothing",
)
RARE = ("truncate pairs", "alter table pairs add column c int", "alter table pairs drop column if exists c")
LOAD = Load(STATEMENTS, ROWS + 50, RARE, together=0.2)
POINTS = {
    "window.begun": 2,
    "window.read": 15,
    "window.published": 20,
    "window.landed": 2,
    "storage.draft": 30,
    "storage.link": 30,
    "publish.cut": 10,
    "signals.ordered": 1,
    "signals.asked": 1,
    "signals.ended": 2,
    "signals.stopped": 1,
    "capture.flushed": 50,
}
RUN = f"""
import faulthandler
import sys
from pathlib import Path
from tests.doors.one_thread import OneThread
from tailrace.connector.connector import Connector
from tailrace.lake.formats import format_named
from tailrace.settings import ConnectorSettings, TaskSizes, Watermarking
from tailrace.source.kinds import source_of
from tailrace.engine.spark.session import session
faulthandler.dump_traceback_later({HANGS_SECONDS})
settings = ConnectorSettings(
    Path(sys.argv[2]), publish_every_seconds=0.1, look_at_tables_seconds=1.0, readers_max=int(sys.argv[4]),
    window_rows=int(sys.argv[3]), once=sys.argv[5] == "once", signal_table="{SIGNALS}",
    watermarking=Watermarking(sys.argv[6]),
    sizes=TaskSizes(portion_bytes=1),
)
engine = session(format_named("delta")) if sys.argv[7] == "spark" else OneThread()
connector = Connector(settings, source_of(sys.argv[1], signal_table="{SIGNALS}"), engine)
connector.start()
if not settings.once:
    sys.stdin.read()
    connector.stop()
connector.wait()
"""


def started(
    dsn: str, lake: Path, chance: random.Random, point: str | None = None, where: str = "here"
) -> subprocess.Popen[bytes]:
    """With chunks of any small size and any way to mark windows. Without a point to die at, until it has caught up."""
    watermarking = chance.choice([each.value for each in Watermarking])
    arguments = [dsn, str(lake), str(chance.randint(1, 50)), str(chance.choice([1, 2, 4]))]
    arguments += ["once" if point is None else "", watermarking, where]
    environment = os.environ | {"TAILRACE_FAILPOINT": point or ""}
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments], stdin=subprocess.PIPE, env=environment, cwd=ROOT)


def caught_up(dsn: str, lake: Path, chance: random.Random) -> None:
    with started(dsn, lake, chance) as process:
        process.communicate(timeout=RUN_SECONDS_MAX)
    assert process.returncode == 0


def ask(lake: Path, chance: random.Random) -> str:
    """A signal of any kind; its id."""
    kinds = ["execute-snapshot"] * 5 + ["stop-snapshot", "pause-snapshot", "resume-snapshot", "resume-snapshot"]
    kind = chance.choice(kinds)
    data: dict[str, object] = {"data-collections": chance.choice([["public.orders"], ["public.pairs"], list(TABLES)])}
    if kind == "execute-snapshot" and chance.random() < 0.4:
        data["additional-condition"] = f"n < {chance.randint(0, 9)}"
    if kind == "execute-snapshot" and chance.random() < 0.2:
        data["surrogate-key"] = "n"
    return tailrace.signal(lake, kind, data if kind == "execute-snapshot" else None)


def answered(lake: Path, id_: str, doomed: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Until a signal has ended, is paused, or has brought so many windows; or its process is dead."""
    home, windows = LakeHome(lake), chance.randint(0, 12)

    def is_far_enough() -> bool:
        record = next(each for each in lake_signals(home) if each.signal.id == id_)
        told = [
            each
            for each in home.signals.notifications.all()
            if each.signal == id_ and each.step is CopyStep.IN_PROGRESS
        ]
        is_running = record.state is SignalState.RUNNING
        return doomed.poll() is not None or record.state not in UNDER_WAY or (is_running and len(told) >= windows)

    wait_until(is_far_enough, RUN_SECONDS_MAX)


@pytest.mark.timeout(3600)
def test_under_load_and_killed_at_random_points_the_lake_equals_the_source(database: str, tmp_path: Path) -> None:
    """What decides all but the timing is printed."""
    seed = int(os.environ.get("TAILRACE_SEED", random.randrange(1 << 30)))
    print(f"TAILRACE_SEED={seed}")
    chance, lake = random.Random(seed), tmp_path / "lake"
    with psycopg.connect(database) as conn:
        conn.execute(SETUP)
    caught_up(database, lake, chance)
    for number in range(ROUNDS):
        with writers(database, LOAD, WRITERS):
            point = chance.choice(list(POINTS))
            where = "spark" if number % SPARK_EVERY == 1 else "here"
            doomed = started(database, lake, chance, f"{point}:{chance.randint(1, POINTS[point])}", where)
            for _ in range(chance.randint(1, 3)):
                answered(lake, ask(lake, chance), doomed, chance)
            if chance.random() < 0.5:
                doomed.kill()
            doomed.communicate(timeout=RUN_SECONDS_MAX)
            assert doomed.returncode in (0, -signal.SIGKILL), (number, point)
            print(f"round {number}: {point}, {where}, {doomed.returncode}", flush=True)
        if number % SETTLED_EVERY == SETTLED_EVERY - 1:
            assert_settled(database, lake, chance)


def assert_settled(database: str, lake: Path, chance: random.Random) -> None:
    """Everything that was asked for is done, and the lake is the source. What was stopped is asked for once more."""
    tailrace.signal(lake, "resume-snapshot")
    tailrace.signal(lake, "execute-snapshot", {"data-collections": list(TABLES)})
    caught_up(database, lake, chance)
    records = LakeHome(lake).tables.load().values()
    assert [(record.state, record.reason) for record in records] == [(TableState.LIVE, None)] * len(TABLES)
    assert [each for each in compare(database, lake, TABLES) if not each.equal] == []
    ended = {SignalState.DONE, SignalState.STOPPED}
    wait_until(lambda: {each.state for each in lake_signals(LakeHome(lake))} <= ended, 1)
    command = [sys.executable, "-m", "tailrace.cli.main", "verify", database, str(lake), "--signal-table", SIGNALS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    assert done.returncode == 0, done.stdout + done.stderr
