"""Reads of a lake as of recorded commits, each judged by the record: right, refused, or wrong.

A read is right when it shows what the source showed at the commit that its cut names. It is *behind* when it shows a
table as it was before statements that changed no value of it and sent nothing: a column or the table was renamed, say.
The log has no word of those until the table's next change. A name that stands for another table or column now is wrong.
It is *earlier* when its cut is a commit before the one that was asked for, and says so, because the log has nothing of
what came between: a statement, or a change that was not sent.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession
from tests.integration.read.as_of_record import Commit, Recorder, State, parse_lsn

import tailrace
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.read.duckdb import connect

RIGHT, BEHIND, EARLIER, REFUSED, WRONG = VERDICTS = "right", "behind", "earlier", "refused", "wrong"
REFUSALS = (DefiniteError, KeyError)
"""For a table that a cut cannot show, and for one that the lake does not know."""
Session = duckdb.DuckDBPyConnection | SparkSession
LIVE_TABLES = 4
PAUSE_SECONDS = 0.01


@dataclass(frozen=True)
class Read:
    """What a lake showed of a table, or why it did not."""

    table: str
    shown: State | Exception
    """An error where it was refused."""
    wanted: Commit | None = None
    """None for a live read."""
    seq: int | None = None
    position: int | None = None
    """Of the cut; None where only rows are given."""


@dataclass(frozen=True)
class Judged:
    """A read and what is to be said of it."""

    read: Read
    verdict: str
    expected: str = ""

    def __str__(self) -> str:
        wanted = self.read.wanted
        where = f"commit {wanted.number} ({wanted.phase}: {wanted.script[:80]})" if wanted else "live"
        return f"{self.read.table} at {where}\n    shown    {self.read.shown}\n    expected {self.expected}"


def read_commit(session: Session, lake: Path, commit: Commit, tables: Sequence[str]) -> Iterator[Read]:
    """The tables as of a commit, by one of the ways there are to ask for them."""
    try:
        cut = tailrace.cut(session, lake, as_of=commit.text, register=False)
    except DefiniteError as error:
        yield from (Read(table, error, commit) for table in tables)
        return
    known = {str(each) for each in cut.tables.known}
    for place, table in enumerate(tables):
        way = (commit.number + place) % 6
        if way in (0, 1) and table in known:
            namespace, name = table.split(".")
            shown = _shown(session, lambda query=f'select * from {namespace}."{name}"': cut.sql(query))
        elif way == 2 and not isinstance(session, SparkSession):
            shown = _shown(session, lambda table=table: tailrace.arrow(lake, table, as_of=commit.text))
            yield Read(table, shown, commit)
            continue
        else:
            shown = _shown(session, lambda table=table: cut.tables[table])
        yield Read(table, shown, commit, cut.seq, parse_lsn(cut.text))


def read_live(session: Session, lake: Path, tables: Sequence[str]) -> list[Read]:
    """Some tables of the newest cut there is."""
    try:
        cut = tailrace.cut(session, lake, register=False)
    except DefiniteError:
        return []
    reads = [(table, _shown(session, lambda table=table: cut.tables[table])) for table in tables]
    return [Read(table, shown, None, cut.seq, parse_lsn(cut.text)) for table, shown in reads]


def _shown(session: Session, ask: Callable[[], Any]) -> State | Exception:
    try:
        frame = ask()
        if not isinstance(frame, pa.Table):
            frame = frame.toArrow() if isinstance(session, SparkSession) else frame.to_arrow_table()
    except Exception as error:
        return error
    return State.in_lake(frame)


@contextmanager
def live_reader(lake: Path, tables: Callable[[], Sequence[str]], seed: int) -> Iterator[list[Read]]:
    """Reads the newest cut again and again inside the `with`, some tables each time."""
    chance, over, reads = random.Random(seed), threading.Event(), list[Read]()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with closing(connect(is_private=True)) as connection:
                while not over.wait(PAUSE_SECONDS):
                    there = tables()
                    reads.extend(read_live(connection, lake, chance.sample(there, min(len(there), LIVE_TABLES))))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield reads
    finally:
        over.set()
        thread.join()
    if errors:
        raise errors[0]


@dataclass
class Judge:
    """Judges reads of one lake by the record, after everything has been recorded."""

    recorder: Recorder
    lake: Path
    judged: list[Judged] = field(default_factory=list)

    def __post_init__(self) -> None:
        reader = LogReader(self.lake / "_tailrace" / "log")
        transactions = reader.transactions(reader.oldest_seq - 1, reader.head.seq)
        ordinals = transactions.column("commit_ordinal").to_pylist()
        self._positions = dict(zip(transactions.column("seq").to_pylist(), ordinals, strict=True))
        self._logged = {self.recorder.of_logged(each) for each in ordinals}

    def take(self, reads: Sequence[Read]) -> None:
        self.judged += [self._judge(each) for each in reads]

    def _judge(self, read: Read) -> Judged:
        if isinstance(read.shown, Exception):
            return Judged(read, REFUSED if isinstance(read.shown, REFUSALS) else WRONG, "a definite error at least")
        numbers = self._meant(read)
        found = next((found for number in numbers if (found := self._fits(read, number)) is not None), None)
        if found is not None:
            return Judged(read, found if read.wanted is None else self._fits(read, read.wanted.number) or EARLIER)
        expected = [self.recorder.entry(read.table, number) for number in numbers]
        texts = [str(each.state) if each else "no such table" for each in expected]
        return Judged(read, WRONG, " or ".join(texts) or "the commit that was asked for")

    def _fits(self, read: Read, number: int) -> str | None:
        """The verdict of a read that shows a commit; None if it does not."""
        there = self.recorder.entry(read.table, number)
        if there is not None and there.state == read.shown:
            return RIGHT
        return BEHIND if self._is_behind(read, number) else None

    def _meant(self, read: Read) -> list[int]:
        """The commits that a read may show."""
        numbers = range(len(self.recorder.commits))
        if read.position is not None and read.seq is not None:
            is_logged = self._positions.get(read.seq) == read.position
            at = self.recorder.of_logged(read.position)
            numbers = range(at, at + 1) if is_logged else self.recorder.at_point(read.position)
        if read.wanted is None:
            return [number for number in numbers if number >= 0]
        # What was asked for is the last commit up to there that sent anything, or a copy's point after it.
        wanted = read.wanted.number
        last = max((number for number in self._logged if number <= wanted), default=0)
        return [number for number in numbers if last <= number <= wanted]

    def _is_behind(self, read: Read, number: int) -> bool:
        """Whether the table was as it is shown before its last statements, which sent nothing and changed no value."""
        entries = self.recorder.entries(read.table, number)
        there = self.recorder.entry(read.table, number)
        for (since, _), (_, before) in itertools.pairwise(entries):
            if since in self._logged:
                return False
            if before is not None and before.state == read.shown:
                now = self.recorder.of_relation(before.relation, number)
                return now is not None and there in (None, now) and now.has_values_of(before)
        return False

    def is_unclear(self, table: str, number: int) -> bool:
        """Whether a statement that sent nothing changed the table's columns, between the table's last change up to this
        commit and its next one: nobody can tell on which side of the commit that was. Or whether the table had columns
        that no look may have seen, between two statements."""
        entries, all_entries = (self.recorder.entries(table, each) for each in (number, len(self.recorder.commits)))
        known = [each for _, each in all_entries if each is not None]
        there = self.recorder.entry(table, number)
        if there is not None and there.columns not in (known[0].columns, known[-1].columns):
            return True
        for (since, found), (_, before) in itertools.pairwise(entries):
            if since in self._logged:
                break
            if found is None or before is None or found.columns != before.columns:
                return True
        if number in self._logged and entries and entries[0][0] == number:
            return False
        later = [(since, found) for since, found in reversed(all_entries) if since > number]
        unsent = itertools.takewhile(lambda each: each[0] not in self._logged, later)
        return any(found is None or there is None or found.columns != there.columns for _, found in unsent)

    def count(self) -> Counter[str]:
        return Counter(each.verdict for each in self.judged)

    def of(self, verdict: str) -> list[Judged]:
        return [each for each in self.judged if each.verdict == verdict]
