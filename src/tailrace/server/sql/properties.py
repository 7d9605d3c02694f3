"""A statement as the properties of a connector, and back.

LAKE                 lake.path
NAMESPACE, TABLES    table.include.list
WITH                 as they are
HOST and the others  as the words of the source have it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.configuration.properties import MASK, is_secret, words_of
from tailrace.model.table_pattern import split_list
from tailrace.server.sql import tables as table_lists
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import (
    HOST,
    LAKE,
    ClauseValue,
    CreateSources,
    Option,
    Secret,
    TableName,
    TextPlace,
    Value,
)
from tailrace.source import kinds
from tailrace.source.door.words import SourceWords

CLASS, NAME, INCLUDE, EXCLUDE = "connector.class", "name", "table.include.list", "table.exclude.list"
LAKE_PATH = "lake.path"


@dataclass
class NewSource:
    """The properties of a source that is to be, and which word of the statement each is from."""

    name: str
    properties: dict[str, str] = field(default_factory=dict, repr=False)
    places: dict[str, tuple[str, TextPlace]] = field(default_factory=dict)

    def put(self, key: str, value: Value, word: str, place: TextPlace) -> None:
        if key in self.properties:
            other = self.places[key][0]
            raise SqlError(place, f"{word}: {other} says {key} already", "leave one out")
        require_no_mask(value, word, place)
        self.properties[key] = plain(value)
        self.places[key] = word, place


def new_source(statement: CreateSources) -> NewSource:
    """What `CREATE SOURCES` asks for."""
    words = kinds.words_of(statement.kind)
    new = NewSource("")
    for each in statement.clauses:
        for key, value in _clause_properties(each, words).items():
            new.put(key, value, each.clause.upper(), each.place)
    include = _include(statement, words.default_namespace)
    if include:
        new.put(INCLUDE, include, "TABLES" if statement.tables else "NAMESPACE", statement.place)
    for option in statement.options:
        require_settable(option)
        new.put(option.key, option.value, option.key, option.place)
    new.name = _name(statement, new.properties, words)
    new.properties = {NAME: new.name, CLASS: words.classes[-1]} | new.properties
    return new


def statement_of(name: str, properties: Mapping[str, str]) -> CreateSources:
    """The statement that makes a source with these properties. Texts in it are those of `properties`: give it what may
    be shown."""
    words = words_of(properties)
    rest = {key: value for key, value in properties.items() if key not in (NAME, CLASS)}
    clauses = []
    for clause, key in {**words.clauses, LAKE: LAKE_PATH}.items():
        value = rest.pop(key, None)
        if clause == HOST:
            value = _whole_address(rest, value, words)
        if value is not None:
            clauses.append(ClauseValue(clause, _value(key, value, words)))
    tables = _tables_of(rest.get(INCLUDE, ""))
    if tables:
        del rest[INCLUDE]
    options = tuple(Option(key, _value(key, value, words)) for key, value in sorted(rest.items()))
    return CreateSources(name, words.kind, tuple(clauses), None, tables, options)


def plain(value: Value) -> str:
    return value.reference if isinstance(value, Secret) else value


def require_settable(option: Option) -> None:
    if option.key in (NAME, CLASS):
        raise SqlError(option.place, f"{option.key} is not an option", "name and kind stand before the clauses")


def require_no_mask(value: Value, word: str, place: TextPlace) -> None:
    if value == MASK:
        hint = "write the secret itself, or SECRET '${env:NAME}'"
        raise SqlError(place, f"{word}: {MASK} only stands in place of a secret", hint)


def _clause_properties(each: ClauseValue, words: SourceWords) -> dict[str, Value]:
    if each.clause != HOST:
        return {LAKE_PATH if each.clause == LAKE else words.clauses[each.clause]: each.value}
    if isinstance(each.value, Secret):
        return {words.whole_address: each.value}
    return dict(words.address(each.value))


def _include(statement: CreateSources, default_namespace: str) -> str:
    tables = statement.tables
    if not tables and statement.namespace is not None:
        tables = (TableName(statement.namespace, None),)
    items: dict[str, None] = {}
    for table in tables:
        item = table_lists.expression(table_lists.placed(table, statement.namespace or default_namespace))
        if item in items:
            raise SqlError(table.place, "this table is named twice", "leave one out")
        items[item] = None
    return ",".join(items)


def _name(statement: CreateSources, properties: Mapping[str, str], words: SourceWords) -> str:
    if statement.name is not None:
        return statement.name
    database = properties.get(words.clauses["database"], "")
    if not database or "${" in database:
        hint = f"CREATE SOURCES name FROM {words.sql_names[0].upper()} …"
        raise SqlError(statement.place, "the source has no name", hint)
    return database


def _whole_address(rest: dict[str, str], hostname: str | None, words: SourceWords) -> str | None:
    """The address that comes to these properties again; a host that does not is left to the options."""
    if hostname is None:
        return rest.pop(words.whole_address, None)
    key = words.clauses[HOST]
    if words.address(hostname) == {key: hostname}:
        return hostname
    rest[key] = hostname
    return None


def _tables_of(include: str) -> tuple[TableName, ...]:
    """Empty where the list says more than names can."""
    named = [table_lists.table_of(item) for item in split_list(include)]
    return () if None in named else tuple(dict.fromkeys(each for each in named if each is not None))


def _value(key: str, value: str, words: SourceWords) -> Value:
    is_reference = value.startswith(("${env:", "${file:")) and value.endswith("}") and value.count("}") == 1
    return Secret(value) if is_reference and (is_secret(key) or key == words.whole_address) else value
