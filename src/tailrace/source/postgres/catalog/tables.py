"""What the server's catalog knows of the tables to copy: where their rows lie and how a row is recognised.

The catalog shows the present; the stream tells of the past. So a shape that comes with the
stream is made from its relation message (`schema_from_relation`) and only what the message lacks is
looked up. Both ways give equal schemas for an unchanged table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from tailrace.model.rows.column_names import distinct
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres.catalog._type_choices import TEXT, chosen_type
from tailrace.source.postgres.catalog.patterns import TABLE_KINDS, Candidate, choose, obstacle
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.values.messages import Relation
from tailrace.source.postgres.values.types import RULE, RULE_TEXT_ARRAYS, TypeInfo, is_numeric, lake_type

QUERIES = load("catalog/tables.sql")
MEASURE_MS_MAX = 2000
PEEK_MS_MAX = 10
ROW_BYTES_GUESSED = 128
"""Of a row that no one has counted."""


@dataclass(frozen=True)
class DeclaredType:
    """A type with a modifier, as a column declares it."""

    type: TypeInfo
    typmod: int
    source_type: str
    """As Postgres writes it: `numeric(12,2)`."""

    def lake(self, *, arrays: bool = True) -> str:
        return lake_type(self.type, self.typmod, arrays=arrays)


@dataclass(frozen=True)
class CatalogColumn:
    name: str
    type: DeclaredType
    generated: str = ""
    """`attgenerated`: `s` stored, `v` virtual."""
    number: int = 0
    is_sent: bool = True
    """The stream has it, and so has the lake."""
    chosen: str | None = None
    """The lake type that a person wants."""

    @property
    def is_text(self) -> bool:
        """A person wants it copied as text."""
        return self.chosen == TEXT

    @property
    def decimal(self) -> str | None:
        """The lake type of a `numeric` that would be text, where a person wants it copied as a number."""
        is_open = is_numeric(self.type.type) and self.type.lake() == TEXT
        return self.chosen if is_open and self.chosen != TEXT else None


@dataclass(frozen=True)
class CatalogPart:
    """A table that stores rows: an ordinary table, or a leaf partition."""

    table: TableId
    relation: int
    obstacle: str | None
    replica_identity: str
    identity_key: frozenset[str]
    blocks: int
    """As of the last `vacuum` or `analyze`, unless measured; 0 before the first."""
    size_bytes: int
    """With its TOAST table."""
    rows_estimated: int


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalog describes it now."""

    table: TableId
    relation: int
    replica_identity: str
    """`d` default (the primary key), `i` an index, `f` full, `n` nothing."""
    primary_key: frozenset[str]
    identity_key: frozenset[str]
    """The columns that every update and delete in the stream is sure to carry; empty under `n`."""
    columns: tuple[CatalogColumn, ...]
    parts: tuple[CatalogPart, ...]
    server_version: int
    obstacle: str | None = None
    """Why its changes cannot be captured, for a person; None where they can."""
    condition: str | None = None
    """Which rows are sent, in SQL; None: all."""
    by_inserts: bool = False
    """Nothing identifies its rows, and a person has said that they are only added: inserts and truncates are sent."""

    @property
    def has_identity(self) -> bool:
        """The stream tells which row an update or a delete is of: by a key, or by the whole old row."""
        return bool(self.identity_key) or self.replica_identity == "f"

    @property
    def is_partitioned(self) -> bool:
        return all(part.relation != self.relation for part in self.parts)

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def rows_estimated(self) -> int:
        return sum(part.rows_estimated for part in self.parts)

    @property
    def row_bytes_estimated(self) -> int | None:
        """None before the first `vacuum` or `analyze`."""
        return self.size_bytes // self.rows_estimated if self.rows_estimated and self.size_bytes else None


@dataclass(frozen=True)
class _Keys:
    """Key columns by relation."""

    primary: Mapping[int, frozenset[str]]
    immediate: Mapping[int, frozenset[str]]
    """Primary keys that are not deferrable: only their rows can be told apart within a transaction."""
    identity: Mapping[int, frozenset[str]]

    def of(self, relation: int, replica_identity: str) -> frozenset[str]:
        chosen = {"d": self.immediate, "i": self.identity, "f": self.immediate}.get(replica_identity, {})
        return chosen.get(relation, frozenset())


def candidates(conn: psycopg.Connection, *, by_leaves: bool = False) -> list[Candidate]:
    """Every relation of the database that a pattern may name; with `by_leaves`, partitions as tables of their own."""
    return [
        Candidate(
            TableId(namespace, name),
            relation,
            obstacle(kind, persistence, is_partition, by_leaves=by_leaves),
            kind in TABLE_KINDS,
            extension,
        )
        for relation, namespace, name, kind, persistence, is_partition, extension in conn.execute(QUERIES["relations"])
    ]


def list_tables(
    conn: psycopg.Connection,
    include: Sequence[str],
    exclude: Sequence[str] = (),
    known: Collection[TableId] = (),
    *,
    by_leaves: bool = False,
) -> list[CatalogTable]:
    """The tables that the patterns choose, by name. A pattern that names nothing, nor a `known` table that is gone,
    is a definite error."""
    return _infos(conn, choose(candidates(conn, by_leaves=by_leaves), include, exclude, known))


def find_tables(
    conn: psycopg.Connection, tables: Collection[TableId], *, by_leaves: bool = False
) -> list[CatalogTable]:
    """Those of the tables that are there, by name, also if their changes cannot be captured any more."""
    found = candidates(conn, by_leaves=by_leaves)
    return _infos(conn, [each for each in found if each.table in tables and each.is_table])


def _infos(conn: psycopg.Connection, chosen: Sequence[Candidate]) -> list[CatalogTable]:
    by_oid = {found.relation: found for found in chosen}
    oids = list(by_oid)
    parts = conn.execute(QUERIES["parts"], {"oids": oids}).fetchall()
    keys = _keys(conn, oids + [row[1] for row in parts])
    columns = _columns(conn, oids)
    by_table = defaultdict(list)
    for table, *row in parts:
        by_table[table].append(_part(row, keys))
    infos = [
        CatalogTable(
            table=by_oid[oid].table,
            relation=oid,
            replica_identity=identity,
            primary_key=keys.primary.get(oid, frozenset()),
            identity_key=keys.of(oid, identity),
            columns=tuple(columns[oid]),
            parts=tuple(by_table[oid]),
            server_version=conn.info.server_version,
            obstacle=by_oid[oid].obstacle,
        )
        for oid, identity in conn.execute(QUERIES["tables"], {"oids": oids})
    ]
    return sorted(infos, key=lambda info: info.table)


def append_only(infos: Sequence[CatalogTable], patterns: Sequence[str]) -> list[CatalogTable]:
    """The tables, and of those whose rows nothing identifies, the ones that the patterns name marked `by_inserts`."""
    return [
        replace(info, by_inserts=not info.has_identity and any(info.table.matches(each) for each in patterns))
        for info in infos
    ]


def measured(conn: psycopg.Connection, info: CatalogTable) -> CatalogTable:
    """With the present size of each part. Where another process has locked one, with the estimates: only the size of
    chunks depends on them."""
    try:
        with conn.transaction():
            conn.execute(sql.SQL("set local lock_timeout = {}").format(MEASURE_MS_MAX))
            rows = conn.execute(QUERIES["sizes"], {"oids": [part.relation for part in info.parts]}).fetchall()
    except psycopg.errors.LockNotAvailable:
        return info
    sizes = {relation: (blocks, size_bytes) for relation, blocks, size_bytes in rows}
    parts = [replace(part, blocks=sizes[part.relation][0], size_bytes=sizes[part.relation][1]) for part in info.parts]
    return replace(info, parts=tuple(parts))


def peeked(conn: psycopg.Connection, infos: Sequence[CatalogTable]) -> list[CatalogTable]:
    """With the present sizes of tables that were never vacuumed or analyzed, of which the catalog says nothing, and how
    many rows that may be. No one waits for a table that is locked: then there are no estimates of any."""
    unknown = [part.relation for info in infos for part in info.parts if not part.blocks]
    if not unknown:
        return list(infos)
    try:
        with conn.transaction():
            conn.execute(sql.SQL("set local lock_timeout = {}").format(PEEK_MS_MAX))
            rows = conn.execute(QUERIES["sizes"], {"oids": unknown}).fetchall()
    except psycopg.errors.LockNotAvailable:
        return list(infos)
    sizes = {relation: (blocks, size_bytes) for relation, blocks, size_bytes in rows}
    return [
        replace(info, parts=tuple(_peeked(part, sizes.get(part.relation)) for part in info.parts)) for info in infos
    ]


def _peeked(part: CatalogPart, size: tuple[int, int] | None) -> CatalogPart:
    blocks, size_bytes = size or (0, 0)
    if not blocks:
        return part
    rows = part.rows_estimated or size_bytes // ROW_BYTES_GUESSED
    return replace(part, blocks=blocks, size_bytes=size_bytes, rows_estimated=rows)


def primary_key(conn: psycopg.Connection, relation: int) -> frozenset[str]:
    """The columns of a table's primary key; none if there is none, or it is deferrable."""
    return _keys(conn, [relation]).immediate.get(relation, frozenset())


def declared_types(
    conn: psycopg.Connection, declared: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], DeclaredType]:
    """Look up types by (oid, modifier). A type that was dropped since has no name and becomes text."""
    pairs = list(set(declared))
    oids = [oid for oid, _ in pairs]
    types = type_info(conn, oids)
    named = conn.execute(QUERIES["type_names"], {"oids": oids, "typmods": [typmod for _, typmod in pairs]})
    return {(oid, typmod): DeclaredType(types[oid], typmod, name) for oid, typmod, name in named}


def type_info(conn: psycopg.Connection, oids: Iterable[int]) -> dict[int, TypeInfo]:
    """Look up types by oid, domains with all they are made of."""
    wanted = list(set(oids))
    rows = {row[0]: row for row in conn.execute(QUERIES["types"], {"oids": wanted})}

    def build(oid: int) -> TypeInfo:
        if oid not in rows:
            return TypeInfo(oid, "unknown")
        _, name, base, base_typmod, element = rows[oid]
        return TypeInfo(oid, name, build(base) if base else None, base_typmod, build(element) if element else None)

    return {oid: build(oid) for oid in wanted}


def schema_of(info: CatalogTable, rule: int = RULE) -> TableSchema:
    """The table's shape as the stream will tell it: columns that are not sent are left out. Lake types are those of one
    rule, names those of the lake."""
    columns = tuple(
        Column(column.name, _lake_type(info.identity_key, column, rule), column.type.source_type, column.number)
        for column in info.columns
        if column.is_sent
    )
    key = tuple(column.name for column in columns if column.name in info.identity_key)
    return distinct(TableSchema(info.table, info.relation, columns, key))


def _lake_type(key: frozenset[str], column: CatalogColumn, rule: int = RULE) -> str:
    """An array in a key is text: rows are told apart by it, and every array has one."""
    if column.is_text:
        return TEXT
    return column.decimal or column.type.lake(arrays=rule > RULE_TEXT_ARRAYS and column.name not in key)


def identity_keys(conn: psycopg.Connection, relations: Sequence[int]) -> dict[int, frozenset[str]]:
    """The identifying columns of some tables by oid; those of a table that is gone are missing."""
    keys = _keys(conn, relations)
    rows = conn.execute(QUERIES["tables"], {"oids": list(relations)})
    return {relation: keys.of(relation, identity) for relation, identity in rows}


def schema_from_relation(
    relation: Relation,
    types: Mapping[tuple[int, int], DeclaredType],
    primary_key: frozenset[str],
    text_columns: Sequence[str] = (),
) -> TableSchema:
    """A table's shape at the point of the stream where this relation message stands, with the source's names.

    The primary key counts only under replica identity full, where the message marks every column.
    """
    table = TableId(relation.namespace, relation.name)
    marked = frozenset(column.name for column in relation.columns if column.is_key)
    identity = primary_key if relation.replica_identity == "f" else marked
    declared = [
        CatalogColumn(
            column.name,
            types[column.type_oid, column.typmod],
            chosen=chosen_type(text_columns, table, column.name),
        )
        for column in relation.columns
    ]
    columns = tuple(Column(each.name, _lake_type(identity, each), each.type.source_type) for each in declared)
    key = tuple(column.name for column in columns if column.name in identity)
    return TableSchema(table, relation.oid, columns, key)


def quoted(table: TableId) -> str:
    """The table's name as SQL."""
    return sql.Identifier(table.namespace, table.name).as_string(None)


def _keys(conn: psycopg.Connection, oids: Sequence[int]) -> _Keys:
    primary, immediate, identity = {}, {}, {}
    for relation, is_primary, is_identity, is_immediate, names in conn.execute(QUERIES["keys"], {"oids": list(oids)}):
        if is_primary:
            primary[relation] = frozenset(names)
            if is_immediate:
                immediate[relation] = frozenset(names)
        if is_identity:
            identity[relation] = frozenset(names)
    return _Keys(primary, immediate, identity)


def _columns(conn: psycopg.Connection, oids: Sequence[int]) -> Mapping[int, list[CatalogColumn]]:
    rows = conn.execute(QUERIES["columns"], {"oids": list(oids)}).fetchall()
    types = declared_types(conn, [(type_oid, typmod) for _, _, type_oid, typmod, _, _ in rows])
    found: dict[int, list[CatalogColumn]] = defaultdict(list)
    for relation, name, type_oid, typmod, generated, number in rows:
        found[relation].append(CatalogColumn(name, types[type_oid, typmod], generated, number, is_sent=not generated))
    return found


def _part(row: Sequence[Any], keys: _Keys) -> CatalogPart:
    relation, namespace, name, kind, persistence, identity, blocks, size_bytes, rows_estimated = row
    return CatalogPart(
        table=TableId(namespace, name),
        relation=relation,
        obstacle=obstacle(kind, persistence, is_partition=False),
        replica_identity=identity,
        identity_key=keys.of(relation, identity),
        blocks=blocks,
        size_bytes=size_bytes,
        rows_estimated=rows_estimated,
    )
