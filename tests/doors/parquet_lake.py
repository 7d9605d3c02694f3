"""A lake of plain Parquet files: a second implementation of the door, small enough to read at one sitting.

    orders/
      v00000000/rows.parquet stamp.json     a version of ours
      v00000001/rows.parquet stamp.json     another writer's: says `null`, and the stamp before it stays in force

A version is written beside the others and renamed into place as a whole. The rename fails where that number is taken:
another writer came first. A version that is there is never touched again. It survives the death of the process; a power
cut once it has been made durable.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tailrace.errors import ResyncError
from tailrace.lake.door import ConflictError, Pruned, Rewrite, Scan, TableSize, TableVersion, Wanted, WritePart
from tailrace.lake.frames import spark_schema
from tailrace.lake.stamp import Stamp, column_comment, commented_column
from tailrace.model.change import COUNT, DELETED, FRESH, ORIGIN, UNCHANGED
from tailrace.model.following import steps
from tailrace.model.rows.exact import EXACT, EXACT_TYPE, exact_of, lake_column, together
from tailrace.model.rows.key import key_of
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import Column, TableSchema
from tailrace.storage.door import Storage
from tailrace.storage.files import sync

Row = dict[str, Any]
Key = tuple[Any, ...]

_INTERFERENCE = "interfere_once"


def interfere_once(path: Path) -> None:
    """The next publish of the table in this folder meets another writer, who rewrites it without changing a row."""
    (path / _INTERFERENCE).touch()


class ParquetFormat:
    """Implements `LakeFormat`."""

    name: ClassVar[str] = "parquet"

    def configure(self, builder: Any) -> Any:
        return builder

    def table(self, place: Storage) -> ParquetTable:
        return ParquetTable(Path(place.address))


@dataclass(frozen=True)
class ParquetDraft:
    """Implements `Draft`. A part is its rows."""

    finish: Callable[[list[pa.Table], Stamp, bool], int]
    stamp: Stamp
    find_again: Callable[[list[pa.Table]], pa.Table | None] = lambda parts: None

    @property
    def write(self) -> WritePart:
        return _part

    write_alone = write

    def rest(self, parts: Iterable[pa.Table]) -> list[Rewrite]:
        return []

    def again(self, parts: Iterable[pa.Table]) -> pa.Table | None:
        return self.find_again([part for part in parts if part is not None])

    def commit(self, parts: Iterable[pa.Table], stamp: Stamp | None = None, *, replaces_all: bool = False) -> int:
        return self.finish([part for part in parts if part is not None], stamp or self.stamp, replaces_all)


def _part(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    found = list(batches)
    return together(found, found[0].schema) if found else None


def _gathered(parts: list[pa.Table], shape: pa.Schema) -> pa.Table:
    """The rows of all parts, and the column for what their columns cannot hold where one has such a value."""
    found = together(parts, shape)
    rows = found.select(shape.names).cast(shape)
    exact = exact_of(found)
    return rows if exact is None else rows.append_column(_field(lake_column(shape.names)), exact)


class ParquetTable:
    """Implements `LakeTable`. The whole table passes through this process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def version(self, at: int | None = None) -> TableVersion | None:
        number = self._newest() if at is None else at
        if number not in self._numbers():
            return None
        stamps = (self._stamp(each) for each in reversed(self._numbers()) if each <= number)
        return TableVersion(number, next(filter(None, stamps), None))

    def mark(self, version: int) -> str | None:
        return str(self._folder(version).stat().st_mtime_ns) if version == self._newest() else None

    def make_durable(self, since: int | None) -> None:
        folders = [self._folder(number) for number in self._numbers() if since is None or number > since]
        for path in (*(file for folder in folders for file in folder.iterdir()), *folders, self._path):
            sync(path)
        for parent in self._path.parents[:2]:
            sync(parent)

    def recover(self, trusted: int | None, aside: Path) -> list[int]:
        kept = min(self._numbers(), default=0) - 1
        while self._is_whole(kept + 1):
            kept += 1
        damaged = [number for number in self._numbers() if number > kept]
        if damaged:
            target = aside / str(len(list(aside.glob("*"))))
            target.mkdir(parents=True)
            for number in reversed(damaged):
                self._folder(number).rename(target / self._folder(number).name)
            sync(self._path)
        return damaged

    def copy(self, schema: TableSchema, stamp: Stamp) -> ParquetDraft:
        shape = pa.schema([_field(column) for column in schema.columns])
        base = self._newest()
        return ParquetDraft(lambda rows, carried, _: self._commit(_gathered(rows, shape), carried, base), stamp)

    def restamp(self, stamp: Stamp) -> int:
        base = self._newest()
        return self._commit(self._read(base), stamp, base)

    def evolve(self, schema: TableSchema) -> int:
        base = self._newest()
        needed = steps(self.columns(base), schema)
        if not needed:
            return base
        rows = self._read(base).drop_columns(list(needed.drop))
        rows = rows.rename_columns([needed.rename.get(name, name) for name in rows.column_names])
        for column in needed.add:
            rows = rows.append_column(_field(column), pa.nulls(rows.num_rows, arrow_type(column.type)))
        standing = self.version()
        return self._commit(rows, standing.stamp if standing else None, base)

    def publish(
        self,
        schema: TableSchema,
        stamp: Stamp,
        *,
        is_growing: bool = False,
        tells_all: bool = False,
    ) -> ParquetDraft:
        assert schema.key or not is_growing
        number = self.evolve(schema)
        base = self._read(number)

        def grown(parts: list[pa.Table], *, replaces_all: bool = False) -> tuple[list[Row], list[Row]]:
            rows = [] if replaces_all else _rows(base)
            return _grow(rows, [state for part in parts for state in part.to_pylist()], schema, tells_all=tells_all)

        def again(parts: list[pa.Table]) -> pa.Table | None:
            found = grown(parts)[1] if is_growing else []
            shape = pa.schema([base.schema.field(name) for name in schema.key])
            return pa.Table.from_pylist(found, schema=shape) if found else None

        def commit(parts: list[pa.Table], carried: Stamp, replaces_all: bool) -> int:
            rows = [] if replaces_all else _rows(base)
            states = [state for part in parts for state in part.to_pylist()]
            if is_growing:
                folded = grown(parts, replaces_all=replaces_all)[0]
            elif schema.key:
                folded = _fold(_by_key(rows, schema.key), states, schema, replaces_all=replaces_all)
            else:
                folded = _count(rows, states, schema)
            self._interfere(base, number)
            return self._commit(_table(folded, base, schema), carried, number)

        return ParquetDraft(commit, stamp, again)

    def maintain(self) -> None:
        """A version is one file already."""

    def prune(self, wanted: Wanted) -> Pruned:
        """The oldest versions go, up to the first that is to stay or that a version without a stamp follows."""
        numbers, gone = self._numbers(), []
        for number, after in pairwise(numbers):
            is_young = self._folder(number).stat().st_mtime > wanted.until
            if number in wanted.versions or is_young or self._stamp(after) is None:
                break
            gone.append(number)
        size = sum(self._file(number).stat().st_size for number in gone)
        for number in gone if not wanted.dry_run else ():
            shutil.rmtree(self._folder(number))
        return Pruned(len(numbers), len(gone), size, len(gone))

    def columns(self, version: int) -> list[Column]:
        shape = pq.read_schema(self._file(version))
        types = [field.dataType.simpleString() for field in spark_schema(shape)]
        return [
            commented_column(field.name, lake_type, _comment(field)["comment"])
            for field, lake_type in zip(shape, types, strict=True)
        ]

    def scan(self, version: int) -> Scan:
        path = str(self._file(version)).replace("'", "''")
        return Scan(f"read_parquet('{path}', can_have_nan => true)")

    def size(self, version: int) -> TableSize | None:
        file = self._file(version)
        return TableSize(pq.read_metadata(file).num_rows, file.stat().st_size) if file.exists() else None

    def open(self, spark: SparkSession, version: int, *, keep: bool = False) -> DataFrame:
        """A local file is always ready, so `keep` changes nothing."""
        shape = pq.read_schema(self._file(version))
        frame = spark.read.schema(spark_schema(shape)).parquet(str(self._file(version)))
        return frame.select([sf.col(_quote(field.name)).alias(field.name, metadata=_comment(field)) for field in shape])

    def _stamp(self, version: int) -> Stamp | None:
        return Stamp.from_json((self._folder(version) / "stamp.json").read_text())

    def _numbers(self) -> list[int]:
        return sorted(int(folder.name[1:]) for folder in self._path.glob("v[0-9]*"))

    def _newest(self) -> int:
        """The newest version; -1 when there is none."""
        return max(self._numbers(), default=-1)

    def _folder(self, version: int) -> Path:
        return self._path / f"v{version:08d}"

    def _file(self, version: int) -> Path:
        return self._folder(version) / "rows.parquet"

    def _is_whole(self, version: int) -> bool:
        """The tables are small: what was trusted is read again too."""
        try:
            self._read(version)
            json.loads((self._folder(version) / "stamp.json").read_text())
        except (OSError, ValueError, pa.ArrowException):
            return False
        return True

    def _read(self, version: int) -> pa.Table:
        return pq.ParquetFile(self._file(version), page_checksum_verification=True).read()

    def _commit(self, rows: pa.Table, stamp: Stamp | None, base: int) -> int:
        """Add the version after `base`; returns its number."""
        unfinished = self._path / f"writing_{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        pq.write_table(rows, unfinished / "rows.parquet", write_page_checksum=True)
        (unfinished / "stamp.json").write_text(stamp.to_json() if stamp else "null")
        try:
            unfinished.rename(self._folder(base + 1))
        except OSError as error:
            shutil.rmtree(unfinished)
            raise ConflictError(f"{self._path}: another writer made version {base + 1}") from error
        return base + 1

    def _interfere(self, base: pa.Table, number: int) -> None:
        """Do what `interfere_once` asked for."""
        asked = self._path / _INTERFERENCE
        if asked.exists():
            asked.unlink()
            self._commit(base, None, number)


def _fold(base: dict[Key, Row], states: list[Row], schema: TableSchema, *, replaces_all: bool) -> list[Row]:
    """The base's rows with the states laid over. `ResyncError` where they do not fit: the base is not the one that the
    states were made for."""
    rows = dict(base)
    upserts: dict[Key, Row] = {}
    for state in states:
        key = key_of(state, schema.key)
        if state[FRESH] == (key in base) and not replaces_all:
            raise _drifted(schema, key, "is there already" if state[FRESH] else "is missing")
        rows.pop(key, None)
        if not state[DELETED]:
            upserts[key] = _own(state, schema) | _left_out(state, key, base, schema)
    return list((rows | upserts).values())


def _grow(base: list[Row], states: list[Row], schema: TableSchema, *, tells_all: bool) -> tuple[list[Row], list[Row]]:
    """The rows of a table that does not have all yet with the states laid over, and the keys to read again."""
    counts = Counter(key_of(row, schema.key) for row in base)
    old = _by_key(base, schema.key)
    rows, again = dict(old), []
    for state in states:
        key, names, origin = key_of(state, schema.key), state[UNCHANGED] or [], state[ORIGIN]
        source_key = key_of(origin, schema.key) if origin else key
        for each in (key, source_key):
            if counts[each] > 1:
                raise _drifted(schema, each, "is there more than once")
        rows.pop(key, None)
        source = old.get(source_key)
        if not state[DELETED] and (source or not names):
            rows[key] = _own(state, schema) | _taken(state, source or {}, names)
        elif not state[DELETED] and (origin or tells_all):
            again.append({name: state[name] for name in schema.key})
    return list(rows.values()), again


def _count(base: list[Row], states: list[Row], schema: TableSchema) -> list[Row]:
    """The base's rows, so many more or fewer of each as the states say. `ResyncError` where there are not so many."""
    rows = {_exact(row, schema): row for row in [*base, *states]}
    counts = Counter(_exact(row, schema) for row in base)
    for state in states:
        key = _exact(state, schema)
        if counts[key] + state[COUNT] < 0:
            raise _drifted(schema, key, "is there too few times" if counts[key] else "is missing")
        counts[key] += state[COUNT]
    return [_own(rows[key], schema) for key in counts.elements()]


def _exact(row: Row, schema: TableSchema) -> Key:
    """A row as Python compares it: floats and arrays as text, because NaN is not equal to itself and -0.0 is equal to
    0.0."""
    values = (*(row[name] for name in schema.names), row.get(EXACT))
    return tuple(repr(_one_nan(v)) if isinstance(v, float | list) else v for v in values)


def _one_nan(value: Any) -> Any:
    return math.fabs(value) if isinstance(value, float) and math.isnan(value) else value


def _left_out(state: Row, key: Key, base: dict[Key, Row], schema: TableSchema) -> Row:
    """What the state takes from its old row, which may have had another key."""
    names = state[UNCHANGED] or []
    origin = state.get(ORIGIN)
    old = key_of(origin, schema.key) if origin else key
    if names and old not in base:
        raise _drifted(schema, old, "is missing")
    return _taken(state, base.get(old, {}), names)


def _own(row: Row, schema: TableSchema) -> Row:
    return {name: row[name] for name in schema.names} | {EXACT: row.get(EXACT)}


def _taken(state: Row, old: Row, names: list[str]) -> Row:
    """Some columns of an old row, and what those could not hold beside what the state's own cannot."""
    if not names:
        return {}
    kept = [(name, text) for name, text in old.get(EXACT) or () if name in names]
    exact = sorted([*kept, *(state.get(EXACT) or ())])
    return {name: old[name] for name in names} | {EXACT: exact or None}


def _rows(table: pa.Table) -> list[Row]:
    """With what columns cannot hold under one name, whatever the table calls it."""
    names = [EXACT if pa.types.is_map(field.type) else field.name for field in table.schema]
    return table.rename_columns(names).to_pylist()


def _table(rows: list[Row], base: pa.Table, schema: TableSchema) -> pa.Table:
    shape = pa.schema([base.schema.field(name) for name in schema.names])
    found = pa.Table.from_pylist(rows, schema=shape.append(pa.field(EXACT, EXACT_TYPE)))
    return _gathered([found], shape)


def _drifted(schema: TableSchema, key: Key, what: str) -> ResyncError:
    text = ", ".join(map(str, key))
    return ResyncError.of(schema.table, f"the lake had drifted from the source: row {text} {what}")


def _by_key(rows: Iterable[Row], key: Iterable[str]) -> dict[Key, Row]:
    return {key_of(row, key): row for row in rows}


def _field(column: Column) -> pa.Field:
    return pa.field(column.name, arrow_type(column.type), metadata={"comment": column_comment(column)})


def _comment(field: pa.Field) -> dict[str, str]:
    return {"comment": (field.metadata or {}).get(b"comment", b"").decode()}


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
