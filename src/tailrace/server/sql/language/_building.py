"""Statements from what the grammar found, a rule at a time. Refuses what is well formed and means nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Transformer, v_args

from tailrace.model.table import TableId
from tailrace.server.sql.language import _literals
from tailrace.server.sql.language._dialect import kind_named
from tailrace.server.sql.language.problems import SqlError
from tailrace.server.sql.language.statements import (
    HOST,
    LAKE,
    AddTables,
    Alteration,
    AlterSource,
    ClauseValue,
    CreateSources,
    DropSource,
    DropTables,
    Option,
    ResetOptions,
    Secret,
    SetOptions,
    ShowCreateSource,
    ShowSources,
    SourceName,
    Statement,
    TableName,
    TextPlace,
    Value,
)
from tailrace.source.door.words import SourceWords

_REFERENCE = re.compile(r"\$\{(env|file):[^{}]+\}")


@dataclass(frozen=True)
class _SingleClause:
    """A clause that a statement has at most once: `NAMESPACE`, `TABLES`, `WITH`."""

    word: str
    value: Any
    place: TextPlace


@dataclass(frozen=True)
class _Head:
    name: Token | None
    if_not_exists: bool


def place_of(token: Token) -> TextPlace:
    return TextPlace(token.line or 1, token.column or 1)


def _plain(value: Any) -> Value:
    return value if isinstance(value, Secret) else str(value)


@v_args(inline=True)
class Builder(Transformer[Token, list[Statement]]):
    """One method for each rule. Holds nothing, so one serves all threads."""

    def start(self, *statements: Statement | None) -> list[Statement]:
        return [statement for statement in statements if statement is not None]

    # Words

    def name(self, token: Token) -> Token:
        meaning = _literals.plain_name(token) if token.type == "NAME" else _literals.quoted_name(token)
        return token.update(value=meaning)

    def text(self, token: Token) -> Token:
        if token.type == "TEXT":
            return token.update(value=_literals.text(token))
        try:
            return token.update(value=_literals.escaped_text(token))
        except ValueError as error:
            raise SqlError(place_of(token), str(error)) from None

    def word(self, word: Token) -> Token:
        return word

    def value(self, *words: Token) -> Token | Secret:
        if len(words) == 1:
            return words[0]
        reference = words[1]
        if not _REFERENCE.fullmatch(reference):
            hint = "SECRET '${env:NAME}' or SECRET '${file:PATH}'"
            raise SqlError(place_of(reference), "a secret is not written down, it is pointed at", hint)
        return Secret(str(reference))

    def path(self, *parts: Any) -> list[Token]:
        if len(parts) == 1:
            return [parts[0]]
        parts[0].append(parts[1])
        return parts[0]  # type: ignore[no-any-return]

    def names(self, *names: Token) -> list[Token]:
        return list(names)

    def if_not_exists(self, *words: Token) -> bool:
        return True

    def if_exists(self, *words: Token) -> bool:
        return True

    # Tables

    def table_path(self, path: list[Token]) -> TableName:
        if len(path) > 2:
            raise _of_another_database(path[0])
        namespace = str(path[0]) if len(path) == 2 else None
        return TableName(namespace, str(path[-1]), place_of(path[0]))

    def all_of_namespace(self, path: list[Token]) -> TableName:
        if len(path) > 1:
            raise _of_another_database(path[0])
        return TableName(str(path[0]), None, place_of(path[0]))

    def table_text(self, text: Token) -> TableName:
        place = place_of(text)
        if text and not re.search(r'[."]', text):
            return TableName(None, str(text), place)
        try:
            table = TableId.parse(text)
        except ValueError:
            raise SqlError(place, "this text names no table", "'public.orders', or 'orders' alone") from None
        return TableName(table.namespace, table.name, place)

    def table(self, table: TableName, as_: Token | None, alias: TableName | None, _: Token | None) -> TableName:
        if alias is not None and (alias.name != table.name or alias.namespace not in (None, table.namespace)):
            assert as_ is not None
            raise SqlError(
                place_of(as_), "AS: a table has the same name in the lake as in its source", "leave out AS …"
            )
        return table

    def tables(self, *tables: TableName) -> tuple[TableName, ...]:
        first: dict[TableName, TableName] = {}
        for table in tables:
            if first.setdefault(table, table) is not table:
                raise SqlError(table.place, "this table is named twice", "leave one out")
        return tables

    # Options

    def option(self, path: list[Token], value: Token | Secret) -> Option:
        return Option(".".join(path), _plain(value), place_of(path[0]))

    def options(self, *options: Option) -> tuple[Option, ...]:
        seen: set[str] = set()
        for option in options:
            if option.key in seen:
                raise SqlError(option.place, f"{option.key} is given twice", "leave one out")
            seen.add(option.key)
        return options

    # Clauses

    def address(self, word: Token, value: Token | Secret) -> ClauseValue:
        return ClauseValue(HOST, _plain(value), place_of(word))

    def value_clause(self, *words: Any) -> ClauseValue:
        *clause, value = words
        return ClauseValue(" ".join(map(str, clause)).lower(), _plain(value), place_of(clause[0]))

    lake = value_clause

    def kind(self, name: Token) -> SourceWords:
        return kind_named(name)

    def namespace(self, word: Token, name: Token) -> _SingleClause:
        return _SingleClause("NAMESPACE", str(name), place_of(word))

    def tables_clause(self, word: Token, tables: TableName | tuple[TableName, ...]) -> _SingleClause:
        return _SingleClause("TABLES", tables if isinstance(tables, tuple) else (tables,), place_of(word))

    def for_tables(self, for_: Token, _: Token, tables: tuple[TableName, ...]) -> _SingleClause:
        return _SingleClause("TABLES", tables, place_of(for_))

    def all_tables(self, for_: Token, *words: Token) -> _SingleClause:
        return _SingleClause("TABLES", (), place_of(for_))

    def schemas(self, for_: Token, _: Token, names: list[Token]) -> _SingleClause:
        return _SingleClause(
            "TABLES", self.tables(*(TableName(str(name), None, place_of(name)) for name in names)), place_of(for_)
        )

    def with_options(self, word: Token, options: tuple[Option, ...]) -> _SingleClause:
        return _SingleClause("WITH", options, place_of(word))

    # Statements

    def sources_head(self, _: Token, if_not_exists: bool | None, name: Token | None) -> _Head:
        return _Head(name, bool(if_not_exists))

    source_head = sources_head

    def create(self, create: Token, _: Token | None, head: _Head, *rest: Any) -> CreateSources:
        words: SourceWords = rest[1]
        clauses = [each for each in rest if isinstance(each, ClauseValue)]
        parts = [each for each in rest if isinstance(each, _SingleClause)]
        _refuse_twice([(each.clause.upper(), each.place) for each in clauses])
        _refuse_twice([(each.word, each.place) for each in parts])
        given = {part.word: part.value for part in parts}
        order = [*words.clauses, LAKE]
        for each in clauses:
            if each.clause not in order:
                raise SqlError(each.place, f"{each.clause.upper()}: {words.name} has no such clause", "leave it out")
        return CreateSources(
            name=None if head.name is None else str(head.name),
            kind=words.kind,
            clauses=tuple(sorted(clauses, key=lambda each: order.index(each.clause))),
            namespace=given.get("NAMESPACE"),
            tables=given.get("TABLES", ()),
            options=given.get("WITH", ()),
            if_not_exists=head.if_not_exists,
            place=place_of(create if head.name is None else head.name),
        )

    def add_tables(self, _: Token, __: Token, if_not_exists: bool | None, tables: tuple[TableName, ...]) -> AddTables:
        return AddTables(tables, bool(if_not_exists))

    def drop_tables(self, _: Token, __: Token, if_exists: bool | None, tables: tuple[TableName, ...]) -> DropTables:
        return DropTables(tables, bool(if_exists))

    def set_options(self, _: Token, options: tuple[Option, ...]) -> SetOptions:
        return SetOptions(options)

    def reset_options(self, _: Token, *paths: list[Token]) -> ResetOptions:
        return ResetOptions(tuple(dict.fromkeys(".".join(path) for path in paths)))

    def alter(self, _: Token, __: Token, if_exists: bool | None, name: Token, alteration: Alteration) -> AlterSource:
        return AlterSource(str(name), alteration, bool(if_exists), place_of(name))

    def source_name(self, name: Token) -> SourceName:
        return SourceName(str(name), place_of(name))

    def drop_source(self, _: Token, __: Token, if_exists: bool | None, *rest: Any) -> DropSource:
        names = tuple(dict.fromkeys(each for each in rest if isinstance(each, SourceName)))
        is_cascade = any(isinstance(each, Token) and each.type == "CASCADE" for each in rest)
        return DropSource(names, bool(if_exists), is_cascade)

    def show_sources(self, _: Token, __: Token, ___: Token | None, like: Token | None) -> ShowSources:
        return ShowSources(None if like is None else str(like))

    def show_create(self, _: Token, __: Token, ___: Token, name: Token) -> ShowCreateSource:
        return ShowCreateSource(str(name), place_of(name))


def _of_another_database(first: Token) -> SqlError:
    hint = "a source reads one database, which its address names: leave out the database's name"
    return SqlError(place_of(first), "a table has a namespace and a name, no more", hint)


def _refuse_twice(words: Sequence[tuple[str, TextPlace]]) -> None:
    seen: set[str] = set()
    for word, place in words:
        if word in seen:
            raise SqlError(place, f"{word} is given twice", "leave one out")
        seen.add(word)
