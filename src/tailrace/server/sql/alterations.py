"""What `ALTER SOURCE` makes of a source's properties. Pure: properties in, properties out.

A source without a list of tables follows all of them. So the last table of a list cannot be dropped: an empty list
would mean every table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailrace.configuration.properties import words_of
from tailrace.model.table_pattern import split_list
from tailrace.server.sql import tables as table_lists
from tailrace.server.sql.language.printing import name_text, table_text
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import (
    AddTables,
    AlterSource,
    DropTables,
    ResetOptions,
    SetOptions,
    TableName,
)
from tailrace.server.sql.properties import EXCLUDE, INCLUDE, plain, require_settable

_SCHEMA_LISTS = ("schema.include.list", "schema.exclude.list")


def altered(statement: AlterSource, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties afterwards. A SqlError where the statement makes no sense for this source."""
    match statement.alteration:
        case AddTables(tables, if_not_exists):
            return _changed(statement, properties, tables, lambda lists, table: lists.add(table, if_not_exists))
        case DropTables(tables, if_exists):
            return _changed(statement, properties, tables, lambda lists, table: lists.drop(table, if_exists))
        case SetOptions(options):
            for option in options:
                require_settable(option)
            return dict(properties) | {option.key: plain(option.value) for option in options}
        case ResetOptions(keys):
            return _without(statement, properties, keys)


def _without(statement: AlterSource, properties: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    for key in keys:
        if key not in properties:
            raise SqlError(statement.place, f"{key} is not set for this source", _see(statement.name))
    return {key: value for key, value in properties.items() if key not in keys}


@dataclass
class _Lists:
    """Both lists of tables of one source."""

    source: str
    include: list[str]
    exclude: list[str]
    schema_list: str | None
    """The list of schemas that narrows the choice further."""

    def add(self, table: TableName, if_not_exists: bool) -> None:
        item = table_lists.expression(table)
        if self.schema_list is not None:
            hint = f"ALTER SOURCE {name_text(self.source)} SET ({self.schema_list} = …)"
            raise SqlError(table.place, f"this source chooses its tables by {self.schema_list}", hint)
        allowed = [each for each in self.exclude if not self._is_within(each, table)]
        if self._follows(table) and allowed == self.exclude:
            if not if_not_exists:
                raise SqlError(table.place, f"the source has {table_text(table)} already", _see(self.source))
            return
        self.exclude = allowed
        if self.include and not any(table_lists.matches(each, table) for each in self.include):
            self.include.append(item)
        if any(table_lists.matches(each, table) for each in self.exclude):
            hint = f"ALTER SOURCE {name_text(self.source)} RESET ({EXCLUDE})"
            raise SqlError(table.place, f"{EXCLUDE} leaves out {table_text(table)}, and more", hint)

    def drop(self, table: TableName, if_exists: bool) -> None:
        left = [each for each in self.include if not self._is_within(each, table)]
        is_named = len(left) < len(self.include)
        if not is_named and not self._may_follow(table):
            if not if_exists:
                raise SqlError(table.place, f"the source has no table {table_text(table)}", _see(self.source))
            return
        if self.include and not left:
            hint = f"DROP SOURCE {name_text(self.source)}"
            raise SqlError(table.place, "a source has at least one table, and this would be its last", hint)
        self.include = left
        if self._may_follow(table):
            self.exclude.append(table_lists.expression(table))

    def _follows(self, table: TableName) -> bool:
        is_in = not self.include or any(table_lists.matches(each, table) for each in self.include)
        return is_in and not any(table_lists.matches(each, table) for each in self.exclude)

    def _may_follow(self, table: TableName) -> bool:
        """Also where an expression may choose some of the namespace's tables, which cannot be told from here."""
        if table.name is not None or self._follows(table):
            return self._follows(table)
        is_excluded = any(table_lists.matches(each, table) for each in self.exclude)
        return not is_excluded and any(table_lists.table_of(each) is None for each in self.include)

    @staticmethod
    def _is_within(item: str, table: TableName) -> bool:
        """Whether an expression names this table, or one of the namespace whose tables are all meant."""
        named = table_lists.table_of(item)
        if named is None:
            return False
        if table.name is None and named.namespace is not None:
            return _folded(TableName(named.namespace, None)) == _folded(table)
        return _folded(named) == _folded(table)


def _changed(
    statement: AlterSource,
    properties: Mapping[str, str],
    tables: tuple[TableName, ...],
    change: Callable[[_Lists, TableName], None],
) -> dict[str, str]:
    schema_list = next((key for key in _SCHEMA_LISTS if properties.get(key, "").strip()), None)
    was = [split_list(properties.get(key, "")) for key in (INCLUDE, EXCLUDE)]
    lists = _Lists(statement.name, [*was[0]], [*was[1]], schema_list)
    for table in tables:
        change(lists, table_lists.placed(table, words_of(properties).default_namespace))
    if [lists.include, lists.exclude] == was:
        return dict(properties)
    rest = {key: value for key, value in properties.items() if key not in (INCLUDE, EXCLUDE)}
    given = {INCLUDE: ",".join(lists.include), EXCLUDE: ",".join(lists.exclude)}
    return rest | {key: value for key, value in given.items() if value}


def _folded(table: TableName) -> str:
    """Debezium's lists do not mind the case of letters."""
    return table_lists.expression(table).lower()


def _see(source: str) -> str:
    return f"SHOW CREATE SOURCE {name_text(source)}"
