"""Statements carried out, one after another.

All of a text is understood before the first statement is carried out. Each stands alone: what was done before one that
fails stays done. A statement that changes a source reads it, decides, and writes only if it is still what was read;
otherwise it decides again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tailrace.configuration.reading import ConfigurationError, redacted, unredacted
from tailrace.errors import DefiniteError, TransientError
from tailrace.server.sql.alterations import altered
from tailrace.server.sql.language.parsing import parse
from tailrace.server.sql.language.printing import name_text, printed
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import (
    NOWHERE,
    AlterSource,
    CreateSources,
    DropSource,
    SetOptions,
    ShowCreateSource,
    ShowSources,
    Statement,
    TextPlace,
)
from tailrace.server.sql.properties import new_source, statement_of
from tailrace.server.sql.sources import (
    NameTakenError,
    NoSuchSourceError,
    SourceConfig,
    Sources,
    SourceStatus,
    SourceTableStatus,
    StaleVersionError,
)

TRIES_MAX = 10
Places = Mapping[str, tuple[str, TextPlace]]
"""By property: the word that set it, and where it stands."""


@dataclass(frozen=True)
class ResultRows:
    """A table as an answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class ResultMessage:
    """What was done, and what there is to say about it."""

    text: str
    notes: tuple[str, ...] = ()


Result = ResultRows | ResultMessage


def execute(text: str, sources: Sources) -> Iterator[Result]:
    """The result of each statement, as it is done. Ends with the first error: a `SqlError`, or a transient
    one."""
    for statement in parse(text):
        try:
            result = carry_out(statement, sources)
        except SqlError as error:
            raise error.in_text(text) from None
        except DefiniteError as error:
            status = getattr(error, "status", 400)
            raise SqlError(_place(statement), error.message, error.hint, status=status).in_text(text) from None
        yield result


def carry_out(statement: Statement, sources: Sources) -> Result:
    """One statement."""
    match statement:
        case CreateSources():
            return _create(statement, sources)
        case AlterSource():
            return _alter(statement, sources)
        case DropSource():
            return _drop(statement, sources)
        case ShowSources(like):
            return _show(like, sources.statuses())
        case ShowCreateSource(name, place):
            config = sources.config(name)
            if config is None:
                raise _unknown(name, place, sources)
            text = printed(statement_of(name, redacted(config.properties)))
            return ResultRows(("source", "create_sql"), ((name, text),))


def _create(statement: CreateSources, sources: Sources) -> Result:
    new = new_source(statement)
    if sources.config(new.name) is not None:
        return _existing(statement, new.name)
    try:
        notes = sources.create(new.name, new.properties)
    except NameTakenError:
        return _existing(statement, new.name)
    except ConfigurationError as error:
        raise _error_at(error, new.places, statement.place) from None
    return ResultMessage(f"created source {name_text(new.name)}", tuple(notes))


def _existing(statement: CreateSources, name: str) -> ResultMessage:
    if statement.if_not_exists:
        return ResultMessage(f"source {name_text(name)} is there already: nothing was done")
    hint = f"ALTER SOURCE {name_text(name)} ADD TABLE …, or give the new one another name"
    raise SqlError(statement.place, f"there is a source named {name_text(name)}", hint, status=409)


def _alter(statement: AlterSource, sources: Sources) -> Result:
    for _ in range(TRIES_MAX):
        config = sources.config(statement.name)
        if config is None:
            break
        try:
            return _alter_from(statement, config, sources)
        except StaleVersionError:
            continue
        except NoSuchSourceError:
            break
    else:
        raise TransientError(f"source {name_text(statement.name)} is being changed by someone else", "try it again")
    if statement.if_exists:
        return ResultMessage(f"there is no source {name_text(statement.name)}: nothing was done")
    raise _unknown(statement.name, statement.place, sources)


def _alter_from(statement: AlterSource, config: SourceConfig, sources: Sources) -> Result:
    was = dict(config.properties)
    # With secrets as they are shown: one that the statement does not give is not given again by it.
    changed = altered(statement, redacted(was))
    name = name_text(statement.name)
    if unredacted(changed, was) == was:
        return ResultMessage(f"source {name} already matches; nothing changed")
    try:
        notes = sources.alter(statement.name, changed, config.version)
    except ConfigurationError as error:
        raise _error_at(error, _places(statement), statement.place) from None
    return ResultMessage(f"altered source {name}", tuple(notes))


def _drop(statement: DropSource, sources: Sources) -> Result:
    """None is dropped unless all are there."""
    known = {status.name for status in sources.statuses()}
    for each in statement.names:
        if each.name not in known and not statement.if_exists:
            raise _unknown(each.name, each.place, sources)
    dropped: list[str] = []
    notes: list[str] = []
    for each in statement.names:
        try:
            notes += sources.drop(each.name, cascade=statement.cascade)
        except NoSuchSourceError:
            continue
        dropped.append(name_text(each.name))
    if not dropped:
        return ResultMessage("there is no such source: nothing was done")
    many = "s" if len(dropped) > 1 else ""
    return ResultMessage(f"dropped source{many} {', '.join(dropped)}; what the lake has stays", tuple(notes))


def _show(like: str | None, statuses: Sequence[SourceStatus]) -> ResultRows:
    rows: list[tuple[str | None, ...]] = []
    for status in statuses:
        if like is None or fnmatchcase(status.name, _pattern(like)):
            tables = status.tables or (SourceTableStatus("", ""),)
            rows += [
                (status.name, status.state, each.table or None, each.state or None, each.problem or status.problem)
                for each in tables
            ]
    return ResultRows(("source", "state", "table", "table_state", "problem"), tuple(rows))


def _pattern(like: str) -> str:
    """SQL's pattern as a shell's."""
    parts, escaped = [], False
    for character in like:
        if not escaped and character in "\\%_":
            escaped = character == "\\"
            parts.append({"%": "*", "_": "?"}.get(character, ""))
        else:
            parts.append(f"[{character}]" if character in "*?[" else character)
            escaped = False
    return "".join(parts)


def _place(statement: Statement) -> TextPlace:
    match statement:
        case DropSource(names):
            return names[0].place
        case ShowSources():
            return NOWHERE
    return statement.place


def _places(statement: AlterSource) -> Places:
    alteration = statement.alteration
    options = alteration.options if isinstance(alteration, SetOptions) else ()
    return {option.key: (option.key, option.place) for option in options}


def _error_at(error: ConfigurationError, places: Places, place: TextPlace) -> SqlError:
    """Every problem, each by the word of the statement that it is about, at the place of the first."""
    told = [
        (places[key][0] if key in places else key, problem)
        for key, problems in error.problems.items()
        for problem in problems
    ]
    first = next((places[key][1] for key in error.problems if key in places), place)
    return SqlError(first, "; ".join(f"{word}: {problem}" for word, problem in told), error.hint)


def _unknown(name: str, place: TextPlace, sources: Sources) -> SqlError:
    statuses = sources.statuses()
    problem = f"there is no source named {name_text(name)}"
    for status in statuses:
        for each in status.tables:
            if name in (each.table, each.table.rpartition(".")[2]):
                source = name_text(status.name)
                hint = f"{each.table} is a table of {source}: ALTER SOURCE {source} ADD TABLE or DROP TABLE"
                return SqlError(place, problem, hint, status=404)
    names = [status.name for status in statuses]
    close = difflib.get_close_matches(name, names, n=1) or names[:5]
    hint = f"there is {', '.join(map(name_text, close))}" if close else "there are no sources yet"
    return SqlError(place, problem, hint, status=404)
