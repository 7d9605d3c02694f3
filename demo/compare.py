"""Is the lake the source? Row by row, without trusting any code that made the lake.

Source rows are read with plain SQL and lake rows with DuckDB or Spark, both as one text per column, chosen by the
lake's column type. A value that a lake column cannot hold is the text that the row keeps of it, in a column that is a
map. The two sides are compared as multisets, so a row that is there twice is a difference.
Neither side may change meanwhile: the source's writers are stopped and the lake has caught up.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

import tailrace

Row = tuple[Any, ...]

_OUTPUT_SETTINGS = (
    "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
)


@dataclass(frozen=True)
class TableComparison:
    """What differs in one table. `different` counts keys that are on both sides with unequal rows."""

    table: str
    source_rows: int
    lake_rows: int
    missing: int
    extra: int
    different: int
    examples: tuple[str, ...] = ()
    """One source row that the lake has not, one lake row that the source has not."""

    @property
    def equal(self) -> bool:
        return self.missing == self.extra == self.different == 0


def compare(dsn: str, lake: str | Path, tables: Iterable[str]) -> list[TableComparison]:
    """Compares the tables (`namespace.name`) at the last published cut with the source as it is now."""
    return compare_tables(dsn, {table: tailrace.arrow(lake, table, published=True) for table in tables})


def compare_tables(dsn: str, tables: Mapping[str, pa.Table]) -> list[TableComparison]:
    """Compares each with the source table it is named after."""
    with psycopg.connect(dsn, options=_OUTPUT_SETTINGS) as connection:
        connection.execute("set transaction isolation level repeatable read read only")
        return [_compare_table(connection, table, rows) for table, rows in tables.items()]


def _compare_table(connection: psycopg.Connection[Row], table: str, rows: pa.Table) -> TableComparison:
    source = Counter(source_rows(connection, table, rows.schema))
    lake = Counter(lake_rows(rows))
    only_source, only_lake = source - lake, lake - source
    key = _key_places(connection, table, [field.name for field in rows.schema if not pa.types.is_map(field.type)])
    different = (_keys(only_source, key) & _keys(only_lake, key)).total() if key else 0
    return TableComparison(
        table=table,
        source_rows=source.total(),
        lake_rows=lake.total(),
        missing=only_source.total() - different,
        extra=only_lake.total() - different,
        different=different,
        examples=tuple(
            f"only in {side}: {next(iter(rows))}"[:500]
            for side, rows in (("source", only_source), ("lake", only_lake))
            if rows
        ),
    )


def _keys(rows: Counter[Row], places: list[int]) -> Counter[Row]:
    keys: Counter[Row] = Counter()
    for row, count in rows.items():
        keys[tuple(row[place] for place in places)] += count
    return keys


def _key_places(connection: psycopg.Connection[Row], table: str, columns: list[str]) -> list[int]:
    found = connection.execute(
        """
        select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any (indkey)
        where indrelid = %s::regclass and indisprimary
        """,
        [_quoted(table).as_string()],
    ).fetchall()
    return [columns.index(name) for (name,) in found]


def source_rows(connection: psycopg.Connection[Row], table: str, shape: pa.Schema) -> list[Row]:
    """The rows of a source table, as `lake_rows` has those of the lake."""
    columns = sql.SQL(", ").join(_source_text(field) for field in shape if not pa.types.is_map(field.type))
    name = _quoted(table)
    found = connection.execute("select relkind = 'p' from pg_class where oid = %s::regclass", [name.as_string()])
    (is_partitioned,) = found.fetchone() or (False,)
    # A table's heirs are tables of their own; its partitions are not.
    only = sql.SQL("") if is_partitioned else sql.SQL("only")
    query = sql.SQL("select {} from {} {}").format(columns, only, name)
    return [tuple(map(_plain, row)) for row in connection.execute(query)]


def _quoted(table: str) -> sql.Identifier:
    """A table as a lake writes it: a part that has a dot or a quote in it is quoted."""
    parts = re.findall(r'"((?:[^"]|"")*)"|([^."]+)', table)
    return sql.Identifier(*(quoted.replace('""', '"') or plain for quoted, plain in parts))


def _source_text(field: pa.Field) -> sql.Composable:
    return sql.SQL(_pattern(field.type)).format(sql.Identifier(field.name))


def _pattern(type_: pa.DataType) -> str:
    if pa.types.is_binary(type_):
        return "encode({0}, 'hex')"
    if pa.types.is_floating(type_):
        return "{0}::float8"
    if pa.types.is_string(type_) or pa.types.is_temporal(type_) or pa.types.is_decimal(type_) or _is_list(type_):
        # Not a cast: that would take the padding off char(n). A value of a row type may be neither null nor `not null`.
        return "case when num_nulls({0}) = 0 then format('%s', {0}) end"
    return "{0}::text"


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def lake_rows(rows: pa.Table) -> list[Row]:
    """A text for each value, as the source writes it."""
    kept: list[dict[str, str]] = []
    for field in rows.schema:
        if pa.types.is_map(field.type):
            kept = [dict(each or ()) for each in rows.column(field.name).to_pylist()]
            rows = rows.drop_columns([field.name])
    return list(zip(*(_lake_values(rows, name, kept) for name in rows.column_names), strict=True))


def _lake_values(rows: pa.Table, name: str, kept: list[dict[str, str]]) -> list[object]:
    """A column's values as the source writes them: a text that is kept counts where there is no value."""
    values = _lake_texts(rows.column(name))
    if not any(kept):
        return values
    for row, texts in enumerate(kept):
        if name in texts:
            values[row] = f"both {values[row]} and {texts[name]}" if values[row] is not None else texts[name]
    return values


def _lake_texts(column: pa.ChunkedArray) -> list[object]:
    """A column's values as `_pattern` has the source write them."""
    type_ = column.type
    if _is_list(type_) or pa.types.is_timestamp(type_):
        return _array_texts(column) if _is_list(type_) else _time_texts(column)
    if pa.types.is_date(type_):
        return list(pc.cast(column, pa.string()).to_pylist())
    if pa.types.is_decimal(type_):
        return [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if pa.types.is_binary(type_):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    if pa.types.is_floating(type_) or pa.types.is_string(type_):
        return [_plain(value) for value in column.to_pylist()]
    return [None if value is None else str(value).lower() for value in column.to_pylist()]


def _time_texts(column: pa.ChunkedArray) -> list[object]:
    """Times as Postgres prints them: without the zeros after the last digit of a second's fraction."""
    zone = "+00" if column.type.tz else ""
    texts = pc.cast(pc.cast(column, pa.timestamp("us")), pa.string()).to_pylist()
    return [text and text[:19] + text[19:].rstrip("0").rstrip(".") + zone for text in texts]


def _array_texts(column: pa.ChunkedArray) -> list[object]:
    """Arrays as Postgres prints them, element by element."""
    found: list[object] = []
    for array in column:
        if not array.is_valid:
            found.append(None)
            continue
        texts = _element_texts(array.values)
        found.append("{" + ",".join("NULL" if text is None else _quoted_element(str(text)) for text in texts) + "}")
    return found


def _element_texts(values: pa.Array) -> list[object]:
    if pa.types.is_floating(values.type):
        return [_float_text(each.as_py(), values.type) for each in values]
    texts = _lake_texts(pa.chunked_array([values]))
    if pa.types.is_binary(values.type):
        return [None if text is None else f"\\x{text}" for text in texts]
    return [text and str(text)[0] for text in texts] if pa.types.is_boolean(values.type) else texts


def _float_text(value: float | None, type_: pa.DataType) -> str | None:
    """The shortest digits, with an exponent where Postgres writes one."""
    if value is None:
        return None
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    digits_max = 6 if pa.types.is_float32(type_) else 15
    shortest = np.format_float_scientific(np.float32(value) if digits_max == 6 else value, trim="-", exp_digits=2)
    exponent = int(shortest.partition("e")[2])
    if -4 <= exponent < digits_max:
        return np.format_float_positional(np.float32(value) if digits_max == 6 else value, trim="-")
    return shortest


def _quoted_element(text: str) -> str:
    if text and text.upper() != "NULL" and not re.search(r'[{}",\\ \t\n\r\v\f]', text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(value: object) -> object:
    """Floats as text, because NaN is not equal to itself and -0.0 is equal to 0.0."""
    return repr(value) if isinstance(value, float) else value
