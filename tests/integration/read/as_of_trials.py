"""Every statement of the schema-change table with changes around it, and every commit of that read back.

Each statement has a schema of its own in one database, so one lake tries many of them, in four phases:

    setup   the tables are made, and copied
    before  changes, published before the next phase begins
    among   the statement among changes, while the connector runs, is stopped, or is killed at random moments
    later   changes after every table has been copied again that had to be

A commit of a table that needs no copy must be readable, and so must every one of `before` and of `later`. Only between
a statement that has its table copied again and that copy may a read be refused.
"""

from __future__ import annotations

import random
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property

import psycopg
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.ddl import STATEMENTS, TABLE, UNPUBLISHED, Statement, split_script
from tests.integration.read.as_of_reading import (
    REFUSED,
    VERDICTS,
    WRONG,
    Judge,
    Judged,
    Read,
    Session,
    live_reader,
    read_commit,
    read_live,
)
from tests.integration.read.as_of_record import Commit, Recorder
from tests.journey import start
from tests.running import Running, running, sync_once

from tailrace.model.table_state import COPYING
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

BEFORE, AMONG, LATER = "before", "among", "later"
PUBLISHED = (
    "do $$ begin execute format('alter publication %I add table t', pubname) from pg_publication; "
    "exception when duplicate_object then null; end $$"
)
SIMPLE = "create table t (id int primary key, v int); insert into t values (1, 1), (2, 2), (3, 3)"
ALL = STATEMENTS | {
    "drop and create alike": Statement(
        "drop table t; create table t (id int primary key, v int); insert into t values (122, 5)",
        copied=True,
        setup=SIMPLE,
    ),
    "swap names of one type": Statement(
        "alter table t rename v to x; alter table t rename w to v; alter table t rename x to w",
        copied=True,
        setup="create table t (id int primary key, v int, w int); insert into t values (1, 1, 10), (2, 2, 20)",
    ),
    "left out of the publication": Statement(
        f"{UNPUBLISHED}; update t set v = v + 1000 where id = 1; {PUBLISHED}", copied=True
    ),
    "partition emptied and left so": Statement(
        "truncate t1",
        copied=True,
        setup=STATEMENTS["partition emptied"].setup,
        before=STATEMENTS["partition emptied"].before,
        after="insert into t values (40, 5), (41, 15)",
    ),
}
SLICE = (
    "add with a default",
    "rename label",
    "add attribute",
    "upper",
    "swap names",
    "swap names of one type",
    "swap tables",
    "drop and create",
    "drop and create alike",
    "drop and add again",
    "partition emptied and left so",
    "partition detached",
    "partition attached",
    "left out of the publication",
    "no key",
    "add",
    "rename",
    "truncate",
    "options",
    "partition made",
)
"""Every kind of statement that changes rows without a word, one that has its table refused, and harmless ones."""
MORE = """
insert into t (id, v, c, i, w, m, ms, p, n, e, s)
select k, k, 'c' || k, k, 'word', 'sad', '{sad,ok}', row(1, 2)::pair, 1.25, '2024-02-29 01:02:03.004', k
from generate_series(21, 24) k
"""
"""Rows that no change around a statement is about: they show what the statement does to old rows."""
TOUCH = "delete from {0} where (tableoid, ctid) = (select tableoid, ctid from {0} r order by r desc limit 1)"
DEATHS = 3
LIFE_SECONDS_MIN, LIFE_SECONDS_MAX = 0.5, 3.0


@dataclass(frozen=True)
class Trial:
    """A statement with a schema of its own."""

    schema: str
    name: str
    statement: Statement
    together: bool
    """The statement and the changes around it are one transaction."""

    @property
    def is_harmless(self) -> bool:
        """Changes from before a type was dropped cannot be typed once it is gone."""
        return self.statement.copied is False and not self.statement.refused and self.name != "drop type"

    @property
    def setup(self) -> str:
        return self.statement.setup.replace(TABLE, TABLE + MORE)

    def fill(self, script: str) -> str:
        return script.replace("{schema}", self.schema)


@dataclass
class Scenario:
    """Trials in one database, with a lake of it."""

    recorder: Recorder
    trials: Mapping[str, Trial]
    settings: ConnectorSettings
    seed: int
    pause_seconds_max: float = 0.0

    @cached_property
    def chance(self) -> random.Random:
        return random.Random(self.seed)

    @classmethod
    def make(
        cls, server: EmbeddedPostgres, dsn: str, settings: ConnectorSettings, names: tuple[str, ...], turn: int
    ) -> Scenario:
        """With another `turn`, what was one transaction is several, and the other way round."""
        trials = {}
        for number, name in enumerate(names):
            statement = ALL[name]
            if server.version >= statement.since:
                together = (number + turn) % 2 == 1 and not statement.alone
                trials[f"s{number}"] = Trial(f"s{number}", name, statement, together)
        scenario = cls(Recorder(dsn), trials, settings, turn)
        scenario._make_tables()
        return scenario

    def _make_tables(self) -> None:
        with self.recorder.connect("public") as conn:
            conn.execute("set allow_in_place_tablespaces = on")
            if not conn.execute("select 1 from pg_tablespace where spcname = 'ddl_space'").fetchone():
                conn.execute("create tablespace ddl_space location ''")
            self.recorder.commit(
                conn, "public", "create table ticks (id int primary key); insert into ticks values (0)"
            )
        for trial in self.trials.values():
            with self.recorder.connect(trial.schema) as conn:
                self.recorder.commit(conn, trial.schema, f"create schema {trial.schema}; {trial.setup}")

    def write_before(self) -> None:
        """Changes, each a transaction."""
        self.recorder.phase = BEFORE
        for trial in self.trials.values():
            with self.recorder.connect(trial.schema) as conn:
                for statement in split_script(trial.fill(trial.statement.before)):
                    self.recorder.commit(conn, trial.schema, statement)
        self._tick()

    def write_among(self) -> None:
        """Each statement among changes. After one that is a transaction of its own, only another table changes."""
        self.recorder.phase = AMONG
        for trial in self.trials.values():
            self._pause()
            with self.recorder.connect(trial.schema) as conn:
                self._touch(conn, trial)
                ddl, after = trial.fill(trial.statement.ddl), trial.fill(trial.statement.after)
                if trial.together:
                    self.recorder.commit(conn, trial.schema, "; ".join(part for part in (ddl, after) if part))
                else:
                    for statement in split_script(ddl):
                        self.recorder.commit(conn, trial.schema, statement, alone=trial.statement.alone)
                        self._tick()
                    for statement in split_script(after):
                        self.recorder.commit(conn, trial.schema, statement)
                self._touch(conn, trial)
        self._tick()

    def _pause(self) -> None:
        """So that looks, publishes and deaths come between statements."""
        threading.Event().wait(self.chance.uniform(0, self.pause_seconds_max))

    def write_later(self) -> None:
        self.recorder.phase = LATER
        for trial in self.trials.values():
            with self.recorder.connect(trial.schema) as conn:
                self._touch(conn, trial)
        self._tick()

    def _touch(self, conn: psycopg.Connection, trial: Trial) -> None:
        """One row less in each table of a trial that is there."""
        for table in self.recorder.tables_of(trial.schema):
            if self.recorder.entry(table, len(self.recorder.commits)) is not None:
                self.recorder.try_commit(conn, trial.schema, TOUCH.format(table))

    def _tick(self) -> None:
        with self.recorder.connect("public") as conn:
            self.recorder.commit(conn, "public", "insert into ticks select max(id) + 1 from ticks")

    def sync(self) -> None:
        sync_once(replace(self.settings, once=True), source_of(self.recorder.dsn))

    def live_reader(self) -> AbstractContextManager[list[Read]]:
        return live_reader(self.settings.lake, lambda: self.recorder.tables, self.seed)

    def judge(self, reads: Sequence[Read] = ()) -> Judge:
        judge = Judge(self.recorder, self.settings.lake)
        judge.take(reads)
        return judge

    def read_back(self, judge: Judge, session: Session, every: int = 1) -> int:
        """Every commit since the first copy, with the tables of its trial and one other. Returns how many."""
        commits = [each for each in self.recorder.commits if each.phase in (BEFORE, AMONG, LATER)][::every]
        for commit in commits:
            tables = set(self.recorder.tables_of(commit.trial))
            if commit.number % 2:
                tables.add(self.chance.choice(self.recorder.tables))
            judge.take(list(read_commit(session, self.settings.lake, commit, sorted(tables))))
        return len(commits)

    def needless(self, judge: Judge) -> list[Judged]:
        """Refusals of what must be readable."""
        return [
            each
            for each in judge.of(REFUSED)
            if each.read.wanted and self._must(judge, each.read.wanted, each.read.table)
        ]

    def _must(self, judge: Judge, commit: Commit, table: str) -> bool:
        if self.recorder.entry(table, commit.number) is None or judge.is_unclear(table, commit.number):
            return False
        trial = self._trial(table)
        if trial is None or commit.phase == BEFORE:
            return True
        if commit.phase == LATER:
            return table.split(".")[1] not in trial.statement.refused
        return trial.is_harmless and table == f"{trial.schema}.t" and self._is_always_there(table)

    def _is_always_there(self, table: str) -> bool:
        """A look at the source may have found it gone otherwise."""
        since = len(self.recorder.commits)
        return all(found is not None for _, found in self.recorder.entries(table, since)[:-1])

    def report(self, judge: Judge, said: str) -> str:
        """One line, and one for each wrong read by statement."""
        counts, wrong = judge.count(), Counter(self._name(each.read.table) for each in judge.of(WRONG))
        statements, commits = len(self.trials), len(self.recorder.commits)
        listed = ", ".join(f"{counts[each]} {each}" for each in VERDICTS)
        needless = len(self.needless(judge))
        line = f"as of: {said}: {statements} statements, {commits} commits, {len(judge.judged)} reads: {listed}"
        lines = [f"{line}, {needless} refused without need", *(f"  wrong: {name}: {n}" for name, n in wrong.items())]
        return "\n".join(lines)

    def _name(self, table: str) -> str:
        trial = self._trial(table)
        return f"{trial.name} ({'one transaction' if trial.together else 'several'})" if trial else table

    def _trial(self, table: str) -> Trial | None:
        return self.trials.get(table.partition(".")[0].removesuffix("_away").removesuffix("_new"))


def run_running(scenario: Scenario) -> Judge:
    """The connector runs all the time, and a reader beside it."""
    scenario.pause_seconds_max = 0.2
    with running(scenario.settings, source_of(scenario.recorder.dsn)) as run:
        settle(run)
        with scenario.live_reader() as reads:
            for write in (scenario.write_before, scenario.write_among, scenario.write_later):
                write()
                settle(run)
    return scenario.judge(reads)


def run_stopped(scenario: Scenario) -> Judge:
    """Nothing runs while the statements do."""
    scenario.sync()
    for write in (scenario.write_before, scenario.write_among, scenario.write_later):
        write()
        scenario.sync()
    return scenario.judge()


def run_killed(scenario: Scenario) -> Judge:
    """The connector is killed again and again while the statements run, and after them. What the lake shows between its
    last death and the next start counts, too."""
    scenario.pause_seconds_max = 0.5
    scenario.sync()
    scenario.write_before()
    scenario.sync()
    with scenario.live_reader() as reads:
        with _killed_again_and_again(scenario):
            scenario.write_among()
        with closing(connect(is_private=True)) as connection:
            reads.extend(read_live(connection, scenario.settings.lake, scenario.recorder.tables))
        scenario.sync()
        scenario.write_later()
        scenario.sync()
    return scenario.judge(reads)


@contextmanager
def _killed_again_and_again(scenario: Scenario) -> Iterator[None]:
    """A sync that dies at random moments, at least so many times, and is started again until the `with` ends."""
    over, chance = threading.Event(), random.Random(scenario.seed)

    def live_and_die() -> None:
        deaths = 0
        while deaths < DEATHS or not over.is_set():
            process = _start(scenario)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(LIFE_SECONDS_MIN, LIFE_SECONDS_MAX))
            process.kill()
            process.communicate()
            deaths += 1

    with ThreadPoolExecutor(1) as pool:
        dying = pool.submit(live_and_die)
        try:
            yield
        finally:
            over.set()
            dying.result()


def _start(scenario: Scenario) -> subprocess.Popen[str]:
    return start("sync", scenario.recorder.dsn, str(scenario.settings.lake), "--publish-every", "0.2")


def settle(run: Running) -> None:
    """Until every table is copied or refused, and everything that is committed is published."""
    run.catch_up()
    run.wait_for(lambda: all(each.state not in COPYING for each in run.connector.tables().values()) or None)
    run.catch_up()
