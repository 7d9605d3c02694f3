"""The part of the grammar that the kinds of sources bring: what stands after FROM, and their clauses."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from tailrace.source import kinds
from tailrace.source.door.property import Type
from tailrace.source.door.words import SourceWords


def grammar() -> str:
    """The whole grammar, of every kind that there is."""
    ours = files("tailrace.server.sql.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return ours + "\n".join(_rules(kinds.all_words()))


def kind_named(word: str) -> SourceWords:
    """The words of the kind that stands after FROM."""
    return next(each for each in kinds.all_words() if word.lower() in each.sql_names)


def examples() -> tuple[str, str]:
    """What people call the databases that can be read, and what stands after FROM for the first."""
    every = kinds.all_words()
    return " and ".join(each.name for each in every), every[0].sql_names[0].upper()


def other_names() -> frozenset[str]:
    """Names of kinds that are another way to write the first."""
    return frozenset(name.upper() for each in kinds.all_words() for name in each.sql_names[1:])


def _rules(every: Iterable[SourceWords]) -> Iterable[str]:
    names = [name.upper() for words in every for name in words.sql_names]
    clauses = {clause.upper(): key for words in every for clause, key in words.clauses.items()}
    numbers = {each.name for words in every for each in words.properties if each.type is Type.INT}
    yield f"kind: {' | '.join(names)}"
    alternatives = [f"{clause} {'(NUMBER | value)' if key in numbers else 'value'}" for clause, key in clauses.items()]
    yield f"value_clause: {' | '.join(alternatives)}"
    for word in dict.fromkeys([*names, *" ".join(clauses).split()]):
        yield rf"{word}.1: /{word}(?![\w$])/i"
