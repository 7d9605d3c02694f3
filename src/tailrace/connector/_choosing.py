"""Which tables are copied: what the connector was told at its start, and what people have chosen since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tailrace.errors import DefiniteError
from tailrace.lake.choices import Choice, is_chosen
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.door import Problem, Source, SourceTable


class Chooser:
    """Chooses from a source's tables."""

    def __init__(self, settings: ConnectorSettings, source: Source, home: LakeHome) -> None:
        self.settings = settings
        self.source = source
        self._choices = home.choices
        self._folds_case = home.folds_case

    def mark(self) -> int:
        """Another number when people have chosen otherwise. Cheap."""
        return self._choices.mark()

    def tables(self, known: Sequence[TableId] | None = None) -> list[SourceTable]:
        """By name. A definite error for a pattern of the start that names nothing; where the `known` tables are given,
        its table is gone, and the others are meant."""
        try:
            told = self.source.tables(self.settings.tables, self.settings.exclude)
        except DefiniteError:
            if known is None:
                raise
            told = list(self.source.describe(known).values())
        choices = self._choices.all()
        names = {each.table for each in told}
        more = [each for each in self._taken(choices) if each.table not in names]
        found = [each for each in [*told, *more] if is_chosen(each.table, choices, otherwise=each.table in names)]
        found.sort(key=lambda each: each.table)
        return without_twins(found) if self._folds_case else found

    def _taken(self, choices: Sequence[Choice]) -> list[SourceTable]:
        """What people have taken since, as far as it is there."""
        found: dict[TableId, SourceTable] = {}
        for pattern in [each.pattern for each in choices if each.is_taken]:
            try:
                found |= {each.table: each for each in self.source.tables([pattern], [])}
            except DefiniteError:
                continue
        return list(found.values())


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
