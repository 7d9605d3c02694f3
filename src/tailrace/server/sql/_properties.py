"""A statement as the properties of a connector, and back.

HOST, PORT, DATABASE, USER, PASSWORD, SSL MODE   database.*
PUBLICATION, SLOT, LAKE                          publication.name, slot.name, lake.path
NAMESPACE, TABLES                                table.include.list
WITH                                             as they are
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.configuration.properties import MASK, is_secret
from tailrace.server.sql import _tables
from tailrace.server.sql._addresses import DSN, HOSTNAME, address_properties
from tailrace.server.sql.problems import SqlError
from tailrace.server.sql.statements import (
    Clause,
    ClauseValue,
    CreateSources,
    Option,
    Place,
    Secret,
    TableName,
    Value,
)

CLASS, NAME, INCLUDE, EXCLUDE = "connector.class", "name", "table.include.list", "table.exclude.list"
OUR_CLASS = "tailrace.postgresql"
DATABASE = "database.dbname"
CLAUSE_PROPERTIES = {
    Clause.HOST: HOSTNAME,
    Clause.PORT: "database.port",
    Clause.DATABASE: DATABASE,
    Clause.USER: "database.user",
    Clause.PASSWORD: "database.password",
    Clause.SSL_MODE: "database.sslmode",
    Clause.PUBLICATION: "publication.name",
    Clause.SLOT: "slot.name",
    Clause.LAKE: "lake.path",
}


@dataclass
class Wanted:
    """The properties of a source that is to be, and which word of the statement each is from."""

    name: str
    properties: dict[str, str] = field(default_factory=dict, repr=False)
    places: dict[str, tuple[str, Place]] = field(default_factory=dict)

    def put(self, key: str, value: Value, word: str, place: Place) -> None:
        if key in self.properties:
            other = self.places[key][0]
            raise SqlError(place, f"{word}: {other} says {key} already", "leave one out")
        require_no_mask(value, word, place)
        self.properties[key] = plain(value)
        self.places[key] = word, place


def wanted(statement: CreateSources) -> Wanted:
    """What `CREATE SOURCES` asks for."""
    found = Wanted("")
    for each in statement.clauses:
        for key, value in _clause_properties(each).items():
            found.put(key, value, each.clause.upper(), each.place)
    include = _include(statement)
    if include:
        found.put(INCLUDE, include, "TABLES" if statement.tables else "NAMESPACE", statement.place)
    for option in statement.options:
        require_settable(option)
        found.put(option.key, option.value, option.key, option.place)
    found.name = _name(statement, found.properties)
    found.properties = {NAME: found.name, CLASS: OUR_CLASS} | found.properties
    return found


def statement_of(name: str, properties: Mapping[str, str]) -> CreateSources:
    """The statement that makes a source with these properties. Texts in it are those of `properties`: give it what may
    be shown."""
    rest = {key: value for key, value in properties.items() if key not in (NAME, CLASS)}
    clauses = []
    for clause, key in CLAUSE_PROPERTIES.items():
        value = rest.pop(key, None)
        if clause is Clause.HOST:
            value = _whole_address(rest, value)
        if value is not None:
            clauses.append(ClauseValue(clause, _value(key, value)))
    tables = _tables_of(rest.get(INCLUDE, ""))
    if tables:
        del rest[INCLUDE]
    options = tuple(Option(key, _value(key, value)) for key, value in sorted(rest.items()))
    return CreateSources(name, tuple(clauses), None, tables, options)


def plain(value: Value) -> str:
    return value.reference if isinstance(value, Secret) else value


def require_settable(option: Option) -> None:
    if option.key in (NAME, CLASS):
        raise SqlError(option.place, f"{option.key} is not an option", "name and kind stand before the clauses")


def require_no_mask(value: Value, word: str, place: Place) -> None:
    if value == MASK:
        hint = "write the secret itself, or SECRET '${env:NAME}'"
        raise SqlError(place, f"{word}: {MASK} only stands in place of a secret", hint)


def _clause_properties(each: ClauseValue) -> dict[str, Value]:
    if each.clause is not Clause.HOST:
        return {CLAUSE_PROPERTIES[each.clause]: each.value}
    if isinstance(each.value, Secret):
        return {DSN: each.value}
    return dict(address_properties(each.value))


def _include(statement: CreateSources) -> str:
    tables = statement.tables
    if not tables and statement.namespace is not None:
        tables = (TableName(statement.namespace, None),)
    found: dict[str, None] = {}
    for table in tables:
        item = _tables.expression(_tables.placed(table, statement.namespace))
        if item in found:
            raise SqlError(table.place, "this table is named twice", "leave one out")
        found[item] = None
    return ",".join(found)


def _name(statement: CreateSources, properties: Mapping[str, str]) -> str:
    if statement.name is not None:
        return statement.name
    database = properties.get(DATABASE, "")
    if not database or "${" in database:
        raise SqlError(statement.place, "the source has no name", "CREATE SOURCES name FROM POSTGRES …")
    return database


def _whole_address(rest: dict[str, str], hostname: str | None) -> str | None:
    """The address that comes to these properties again; a host that does not is left to the options."""
    if hostname is None:
        return rest.pop(DSN, None)
    if address_properties(hostname) == {HOSTNAME: hostname}:
        return hostname
    rest[HOSTNAME] = hostname
    return None


def _tables_of(include: str) -> tuple[TableName, ...]:
    """Empty where the list says more than names can."""
    found = [_tables.table_of(item) for item in _tables.items(include)]
    return () if None in found else tuple(dict.fromkeys(each for each in found if each is not None))


def _value(key: str, value: str) -> Value:
    is_reference = value.startswith(("${env:", "${file:")) and value.endswith("}") and value.count("}") == 1
    return Secret(value) if is_reference and (is_secret(key) or key == DSN) else value
