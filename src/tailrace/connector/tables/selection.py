"""Which tables are copied: what the connector was told at its start, and what people have chosen since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.lake.records.choices import Choice, is_chosen
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.door.tables import Tables
from tailrace.source.door.values import Problem, SourceTable


class Chooser:
    """Chooses from a source's tables."""

    def __init__(self, settings: ConnectorSettings, source: Tables, home: LakeHome) -> None:
        self.settings = settings
        self._source = source
        self._choices = home.choices
        self._folds_case = home.folds_case
        self.passed_over: DefiniteError | None = None
        """What the last call found to be gone that a person named, beside tables."""

    def mark(self) -> int:
        """Changes when people choose otherwise. Cheap."""
        return self._choices.mark()

    def tables(self, known: Collection[TableId] = (), *, starting: bool = True) -> list[SourceTable]:
        """By name. A definite error for a pattern that names nothing, neither in the source nor among the `known`
        tables of the lake. One that names a known table names one that is gone: the others are meant. Not when
        `starting`, no pattern is an error: it was none at the start."""
        include, exclude = self.settings.tables, self.settings.exclude
        self.passed_over = None
        try:
            told = self._source.tables(include, exclude)
        except DefiniteError as error:
            if not known:
                raise
            told = self._left(known, starting=starting)
            if all(any(each.table.matches(pattern) for each in told) for pattern in include):
                # A table that is gone is told of by its own record.
                self.passed_over = error
        choices = self._choices.all()
        names = {each.table for each in told}
        more = [each for each in self._taken(choices, known) if each.table not in names]
        found = [each for each in [*told, *more] if is_chosen(each.table, choices, otherwise=each.table in names)]
        found.sort(key=lambda each: each.table)
        return without_twins(found) if self._folds_case else found

    def wanted(self, tables: Sequence[TableId]) -> list[TableId]:
        """Those of the tables that are chosen, whether or not they are there."""
        choices = self._choices.all()
        include, exclude = self.settings.tables, self.settings.exclude
        return [each for each in tables if is_chosen(each, choices, otherwise=_is_named(each, include, exclude))]

    def _left(self, known: Collection[TableId], *, starting: bool) -> list[SourceTable]:
        """What the patterns choose, without what they named and is gone. A table of the lake that can no longer be
        copied is among them, with its problem."""
        include, exclude = self.settings.tables, self.settings.exclude
        try:
            told = self._source.tables(include, exclude, known)
        except DefiniteError:
            if starting:
                raise
            told = []
        names = {each.table for each in told}
        others = [each for each in known if each not in names and _is_named(each, include, exclude)]
        return [*told, *(self._source.describe(others).values() if others else ())]

    def _taken(self, choices: Sequence[Choice], known: Collection[TableId]) -> list[SourceTable]:
        """What people have taken since, as far as it is there."""
        found: dict[TableId, SourceTable] = {}
        for pattern in [each.pattern for each in choices if each.is_taken]:
            try:
                found |= {each.table: each for each in self._source.tables([pattern], [], known)}
            except DefiniteError:
                continue
        return list(found.values())


def _is_named(table: TableId, include: Sequence[str], exclude: Sequence[str]) -> bool:
    is_included = not include or any(table.matches(pattern) for pattern in include)
    return is_included and not any(table.matches(pattern) for pattern in exclude)


def without_twins(tables: Sequence[SourceTable]) -> list[SourceTable]:
    """For a disk that takes names which differ only in case for one: tables that have such names have a problem."""
    folded: dict[str, list[TableId]] = defaultdict(list)
    for each in tables:
        folded[str(each.table).lower()].append(each.table)
    return [
        replace(each, problem=each.problem or _twin(folded[str(each.table).lower()], each.table))
        if len(folded[str(each.table).lower()]) > 1
        else each
        for each in tables
    ]


def _twin(twins: Sequence[TableId], table: TableId) -> Problem:
    names = " and ".join(map(str, twins))
    message = f"tables {names} differ only in upper and lower case, which the lake's disk does not tell apart"
    return Problem(message, f"leave one out: --exclude {table.argument}")
